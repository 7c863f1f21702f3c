import asyncio

import pytest

from openai_responses_mcp.adapters.openai.gateway import Turns
from tests.fakes import WAIT_SECONDS


class Loop:
    """Counts the turns of the event loop, and notes who began in which."""

    def __init__(self) -> None:
        self.turns = Turns()
        self.begun: list[tuple[str, int]] = []
        self._count = 0

    async def begin(self, name: str) -> None:
        await self.turns.next()
        self.begun.append((name, self._count))

    async def counting(self) -> None:
        while True:
            self._count += 1
            await asyncio.sleep(0)


async def test_one_alone_begins_at_once() -> None:
    loop = Loop()
    with pytest.raises(StopIteration):
        loop.begin("a").send(None)
    assert loop.begun == [("a", 0)]


async def test_many_begin_in_their_order_and_no_two_in_one_turn() -> None:
    loop = Loop()
    counting = asyncio.create_task(loop.counting())
    async with asyncio.timeout(WAIT_SECONDS):
        await asyncio.gather(*(loop.begin(name) for name in "abcd"))
    counting.cancel()
    assert [name for name, _ in loop.begun] == ["a", "b", "c", "d"]
    assert len({turn for _, turn in loop.begun}) == 4


async def test_one_that_is_cancelled_while_it_waits_holds_up_nobody() -> None:
    loop = Loop()
    first, second, third = (asyncio.create_task(loop.begin(name)) for name in "abc")
    await asyncio.sleep(0)
    second.cancel()
    async with asyncio.timeout(WAIT_SECONDS):
        await asyncio.wait({first, second, third})
        await loop.begin("d")
    assert [name for name, _ in loop.begun] == ["a", "c", "d"]


async def test_one_that_is_cancelled_when_its_turn_has_come_passes_it_on() -> None:
    loop = Loop()
    first, second, third = (asyncio.create_task(loop.begin(name)) for name in "abc")
    await asyncio.sleep(0)  # The first has begun.
    await asyncio.sleep(0)  # The second has been told to, and has not run yet.
    second.cancel()
    async with asyncio.timeout(WAIT_SECONDS):
        await asyncio.wait({first, second, third})
    assert second.cancelled()
    assert [name for name, _ in loop.begun] == ["a", "c"]
