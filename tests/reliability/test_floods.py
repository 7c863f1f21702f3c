"""Whatever floods in from the API, the event loop stays free: pings are answered, and the server ends in time."""

import asyncio
import gc
import signal
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.openai.retrying import RetryingGateway
from tests.contracts.openai_gateways import forget_proxies, openai_gateway
from tests.e2e.client import COMMAND, Server, call, environment
from tests.fakes import SLOW_SECONDS, FakeClock, FakeLogger
from tests.reliability.floods import FLOODS, MIB, Flood, player
from tests.server.wired import Wired, tool_call
from tests.stand_in.server import StandInThread

pytestmark = pytest.mark.slow

# What one turn of the loop may take. In CPU time of this thread, which other processes do not count into; the promise
# is 50 ms, and the rest is for machines that are slower than ours.
MOST_BUSY_SECONDS = 0.2
LONGEST_REPLY_BYTES = 6 * MIB
MOST_MEMORY_MIB = 400
# A hundred megabytes, written and read by Python, on a busy machine.
LONGEST_FLOOD_SECONDS = 100


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_proxies(monkeypatch)


@asynccontextmanager
async def watched() -> AsyncIterator[list[float]]:
    """The CPU time of every turn of the event loop."""
    turns: list[float] = []
    # What thousands of other tests have left in this process is not the loop's work to look through.
    gc.collect()
    gc.freeze()

    async def watch() -> None:
        while True:
            before = time.thread_time()
            await asyncio.sleep(0)
            turns.append(time.thread_time() - before)

    watching = asyncio.create_task(watch())
    try:
        yield turns
    finally:
        watching.cancel()
        gc.unfreeze()


@pytest.fixture(params=FLOODS)
def flood(request: pytest.FixtureRequest) -> Flood:
    return FLOODS[request.param]


@pytest.fixture
def base_url(flood: Flood) -> Iterator[str]:
    """In a thread of its own, so that the loop of the test has only our own work to do."""
    with StandInThread() as stand_in:
        stand_in.server.handler = player(flood)
        yield stand_in.base_url


async def test_the_event_loop_is_never_busy_for_long(base_url: str) -> None:
    logger = FakeLogger(is_debugging=False)
    gateway = openai_gateway(base_url, timeout_seconds=SLOW_SECONDS)
    await asyncio.to_thread(gateway.prepare)
    retrying = RetryingGateway(gateway, FakeClock(), logger, max_retries=0, is_ending=asyncio.Event())
    wired = Wired(gateway=retrying)
    async with asyncio.timeout(SLOW_SECONDS), watched() as turns:
        wired.handle(tool_call(1, meta={"progressToken": 1}))
        await wired.dispatcher.drain()
    await gateway.close()
    reply = next(sent for sent in wired.transport.sent if b'"id":1' in sent)
    assert len(reply) < LONGEST_REPLY_BYTES
    assert max(turns) < MOST_BUSY_SECONDS


def test_a_flooded_server_answers_pings_and_ends_in_time(base_url: str, tmp_path: Path) -> None:
    environ = environment(tmp_path, OPENAI_BASE_URL=base_url, OPENAI_MAX_RETRIES="3")
    with closing(Server([*COMMAND, "--stdio"], environ)) as server:
        server.send(*(call(name, "Why?") for name in "abc"))
        assert server.result_of("ping") == {}
        assert all(server.replies_to("abc", LONGEST_FLOOD_SECONDS))
        server.send(*(call(name, "Why?") for name in "def"))
        assert server.result_of("ping") == {}
        peak = memory_peak(server.process.pid)
        server.process.send_signal(signal.SIGTERM)
        assert server.exit_code() == 143
        assert server.stderr == ""
    assert peak is None or peak < MOST_MEMORY_MIB


def memory_peak(pid: int) -> float | None:
    """In MiB; None where the system does not tell."""
    status = Path(f"/proc/{pid}/status")
    if not status.exists():
        return None
    lines = status.read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024
