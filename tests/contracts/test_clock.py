"""What may be relied on from a `WallClock`."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from openai_responses_mcp.adapters.clocks import TokyoClock, ZonedClock
from openai_responses_mcp.domain.ports import WallClock
from tests.fakes import WAIT_SECONDS, FakeClock

PassTime = Callable[[float], Awaitable[None]]


def fake() -> tuple[WallClock, PassTime]:
    clock = FakeClock()
    return clock, clock.advance


def tokyo() -> tuple[WallClock, PassTime]:
    async def passes_by_itself(seconds: float) -> None:
        pass

    return TokyoClock(), passes_by_itself


def zoned() -> tuple[WallClock, PassTime]:
    _, passes_by_itself = tokyo()
    return ZonedClock("Asia/Tokyo"), passes_by_itself


@pytest.fixture(params=[pytest.param(make, id=make.__name__) for make in (fake, tokyo, zoned)])
def clock_and_time(request: pytest.FixtureRequest) -> tuple[WallClock, PassTime]:
    pair: tuple[WallClock, PassTime] = request.param()
    return pair


@pytest.fixture
def clock(clock_and_time: tuple[WallClock, PassTime]) -> WallClock:
    return clock_and_time[0]


@pytest.fixture
def pass_time(clock_and_time: tuple[WallClock, PassTime]) -> PassTime:
    return clock_and_time[1]


def test_now_is_in_tokyo(clock: WallClock) -> None:
    assert clock.now().utcoffset() == timedelta(hours=9)


def test_today_is_the_day_of_now(clock: WallClock) -> None:
    before = clock.now().date()
    assert before <= clock.today() <= clock.now().date()


async def test_a_sleep_lasts_as_long_as_was_asked(clock: WallClock, pass_time: PassTime) -> None:
    started, started_at = clock.monotonic(), clock.now()
    sleeping = asyncio.ensure_future(clock.sleep(0.02))
    await asyncio.sleep(0)
    assert not sleeping.done()
    await pass_time(0.02)
    await asyncio.wait_for(sleeping, WAIT_SECONDS)
    # A little less, because the event loop rounds.
    assert clock.monotonic() - started >= 0.019
    assert clock.now() > started_at


@pytest.mark.parametrize("seconds", [0, -0.5])
async def test_no_time_at_all_gives_way_to_others_once(clock: WallClock, seconds: float) -> None:
    turns: list[str] = []

    async def sleep() -> None:
        turns.append("before")
        await clock.sleep(seconds)
        turns.append("after")

    async def other() -> None:
        turns.append("other")

    await asyncio.wait_for(asyncio.gather(sleep(), other()), WAIT_SECONDS)
    assert turns == ["before", "other", "after"]


async def test_a_sleep_can_be_cancelled(clock: WallClock) -> None:
    sleeping = asyncio.ensure_future(clock.sleep(1000))
    await asyncio.sleep(0)
    sleeping.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(sleeping, WAIT_SECONDS)
