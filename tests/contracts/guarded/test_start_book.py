"""What every book of starts must do, asked of the fake and of the real one on each database."""

import asyncio

import pytest

from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.budgets import Spending
from openai_responses_mcp.gate.calls import GuardedServer
from openai_responses_mcp.gate.errors import DuplicateRecord
from openai_responses_mcp.gate.stores import CallStart, KnownTool, StartBook, Stores

FILES = GuardedServer("files", "f1", "npx server-filesystem")
OTHER = GuardedServer("files", "f2", "python3 evil.py")
A, B, C = "aaaa {}", 'bbbb {"x": 1}', 'cccc {"x": 2}'
WINDOW = "calls per day files"


@pytest.fixture
def book(stores: Stores) -> StartBook:
    assert stores.starts is not None
    return stores.starts


def record(number: int, event: str = "started") -> ExecutionLog:
    return ExecutionLog("run", f"call_{number}", event, "started", timestamp="2026-11-17T00:00:00+00:00")


def start(
    number: int = 1,
    pin: str = A,
    seen: str | None = None,
    server: GuardedServer = FILES,
    most: int | None = None,
) -> CallStart:
    spends = () if most is None else (Spending(WINDOW, most),)
    return CallStart(server, "files/read", pin, seen, spends, (record(number),))


async def written(stores: Stores) -> list[str]:
    return [log.tool_call_id for log in await stores.logs.query()]


async def test_a_tool_that_never_ran_is_not_known(book: StartBook) -> None:
    assert await book.known(FILES, "files/read") == KnownTool(None)


async def test_a_start_pins_the_definition_and_writes_its_records(book: StartBook, stores: Stores) -> None:
    assert await book.start([record(0, "outcome")], [start()]) == ["started"]
    assert await book.known(FILES, "files/read") == KnownTool(A)
    assert await written(stores) == ["call_0", "call_1"]


async def test_a_definition_that_was_not_decided_on_does_not_start(book: StartBook, stores: Stores) -> None:
    await book.start([], [start(1, A)])
    assert await book.start([], [start(2, B), start(3, B, seen=C), start(4, A)]) == ["changed", "changed", "started"]
    assert await book.known(FILES, "files/read") == KnownTool(A)
    assert await written(stores) == ["call_1", "call_4"]


async def test_a_change_that_was_decided_on_takes_the_place_of_what_was_seen(book: StartBook) -> None:
    await book.start([], [start(1, A)])
    assert await book.start([], [start(2, B, seen=A)]) == ["started"]
    assert await book.start([], [start(3, C, seen=A)]) == ["changed"]
    assert await book.known(FILES, "files/read") == KnownTool(B)


async def test_a_definition_is_known_by_its_hash(book: StartBook) -> None:
    await book.start([], [start(1, "aaaa")])
    assert await book.start([], [start(2, A), start(3, "aaab {}")]) == ["started", "changed"]


async def test_another_command_of_the_name_has_pins_of_its_own(book: StartBook) -> None:
    await book.start([], [start(1, A)])
    assert await book.known(OTHER, "files/read") == KnownTool(None, ("npx server-filesystem",))
    assert await book.start([], [start(2, B, server=OTHER)]) == ["started"]
    assert await book.known(OTHER, "files/read") == KnownTool(B)
    assert await book.known(FILES, "files/read") == KnownTool(A)


async def test_a_budget_is_spent_as_long_as_there_is_room(book: StartBook, stores: Stores) -> None:
    outcomes = await book.start([], [start(number, most=2) for number in range(4)])
    assert outcomes == ["started", "started", "over_budget", "over_budget"]
    await stores.budgets.allow_to(WINDOW, 3)
    assert await book.start([], [start(4, most=2), start(5, most=2)]) == ["started", "over_budget"]
    assert await stores.budgets.read(WINDOW) == (3, 3)
    assert await written(stores) == ["call_0", "call_1", "call_4"]


async def test_a_start_that_cannot_be_recorded_spends_and_pins_nothing(book: StartBook, stores: Stores) -> None:
    await book.start([], [start(1, A, most=5)])
    with pytest.raises(DuplicateRecord):
        await book.start([], [start(1, B, seen=A, most=5)])
    assert await book.known(FILES, "files/read") == KnownTool(A)
    assert (await stores.budgets.read(WINDOW))[0] == 1


async def test_of_many_at_once_exactly_the_budget_starts(book: StartBook) -> None:
    starts = (book.start([], [start(number, most=7)]) for number in range(20))
    outcomes = [outcome for [outcome] in await asyncio.gather(*starts)]
    assert outcomes.count("started") == 7
