import asyncio
import threading
import traceback

import pytest

from openai_responses_mcp.adapters.process import WarmUp, affordable_connections, shortfalls
from tests.fakes import WAIT_SECONDS

MIB = 1024 * 1024


def test_a_limit_that_is_too_low_is_said_with_what_is_needed() -> None:
    assert shortfalls({"RLIMIT_NOFILE": 12, "RLIMIT_AS": 250 * MIB}.get) == [
        "only 12 files and connections may be open at once (ulimit -n); calls may fail, at least 32 are needed",
        "only 250 MiB of memory may be reserved (ulimit -v); the server may crash, at least 512 MiB are needed",
    ]
    assert shortfalls({"RLIMIT_NOFILE": 32, "RLIMIT_AS": 512 * MIB}.get) == []
    assert shortfalls(lambda name: None) == []
    assert isinstance(shortfalls(), list)


@pytest.mark.parametrize(("limit", "most"), [(12, 1), (64, 32), (256, 128)])
def test_connections_leave_descriptors_for_the_rest(limit: int, most: int) -> None:
    assert 1 <= affordable_connections(256, {"RLIMIT_NOFILE": limit}.get) <= most


def test_no_more_connections_than_wanted() -> None:
    assert affordable_connections(3, {"RLIMIT_NOFILE": 4096}.get) == 3
    assert affordable_connections(256, lambda name: None) == 256
    assert affordable_connections(2) >= 1


class Loader:
    """Loads once `may_load` is set, remembers its threads, and may fail."""

    def __init__(self, failure: BaseException | None = None) -> None:
        self.failure = failure
        self.threads: list[threading.Thread] = []
        self.may_load = threading.Event()

    def __call__(self) -> str:
        self.threads.append(threading.current_thread())
        assert self.may_load.wait(WAIT_SECONDS)
        if self.failure:
            raise self.failure
        return "loaded"


async def within_limit(warm_up: WarmUp[str]) -> str:
    async with asyncio.timeout(WAIT_SECONDS):
        return await warm_up.result()


async def test_loading_happens_once_in_a_thread_that_does_not_keep_the_process() -> None:
    loader = Loader()
    warm_up = WarmUp(loader)
    assert loader.threads == []
    warm_up.start()
    warm_up.start()
    loader.may_load.set()
    assert await asyncio.gather(*(within_limit(warm_up) for _ in range(3))) == ["loaded"] * 3
    assert len(loader.threads) == 1
    assert loader.threads[0].daemon
    assert loader.threads[0] is not threading.current_thread()


async def test_a_call_that_comes_early_starts_the_loading_itself() -> None:
    loader = Loader()
    loader.may_load.set()
    assert await within_limit(WarmUp(loader)) == "loaded"


@pytest.mark.parametrize("failure", [ImportError("no such package"), SystemExit(3)])
async def test_a_failure_is_given_to_every_call_with_its_cause_and_does_not_grow(failure: BaseException) -> None:
    loader = Loader(failure)
    loader.may_load.set()
    warm_up, lengths = WarmUp(loader), set[int]()
    for _ in range(5):
        with pytest.raises(RuntimeError, match="could not be loaded") as raised:
            await within_limit(warm_up)
        assert raised.value.__cause__ is failure
        lengths.add(len(traceback.format_exception(raised.value)))
    assert (len(loader.threads), len(lengths)) == (1, 1)


async def test_a_cancelled_waiter_does_not_disturb_the_others() -> None:
    loader = Loader()
    warm_up = WarmUp(loader)
    impatient, patient = asyncio.create_task(within_limit(warm_up)), asyncio.create_task(within_limit(warm_up))
    await asyncio.sleep(0)
    impatient.cancel()
    with pytest.raises(asyncio.CancelledError):
        await impatient
    loader.may_load.set()
    assert await patient == "loaded"
    assert await within_limit(warm_up) == "loaded"


async def test_waiting_for_the_end_of_it_begins_nothing() -> None:
    loader = Loader()
    warm_up = WarmUp(loader)
    waiting = asyncio.create_task(warm_up.settled())
    await asyncio.sleep(0)
    assert loader.threads == []
    loader.may_load.set()
    warm_up.start()
    async with asyncio.timeout(WAIT_SECONDS):
        await waiting
