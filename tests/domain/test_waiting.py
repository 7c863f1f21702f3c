import asyncio

from openai_responses_mcp.domain.waiting import has_happened_within
from tests.fakes import FakeClock


async def test_an_event_ends_the_wait() -> None:
    clock, event = FakeClock(), asyncio.Event()
    waiting = asyncio.create_task(has_happened_within(event, 60, clock))
    await asyncio.sleep(0)
    event.set()
    async with asyncio.timeout(5):
        assert await waiting


async def test_the_time_ends_the_wait() -> None:
    clock, event = FakeClock(), asyncio.Event()
    waiting = asyncio.create_task(has_happened_within(event, 60, clock))
    async with asyncio.timeout(5):
        await clock.wait_for_sleepers(1)
        await clock.advance(60)
        assert not await waiting


async def test_what_has_happened_needs_no_wait() -> None:
    event = asyncio.Event()
    event.set()
    async with asyncio.timeout(5):
        assert await has_happened_within(event, 60, FakeClock())
