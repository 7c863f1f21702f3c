"""What every book of usage must do: in a process, and in a store that processes share."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from openai_responses_mcp.domain.usage import CallerLimits, OverLimit, ProcessUsage, UsageBook
from openai_responses_mcp.gate.clock import LEASE_SECONDS
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_stores import SqlUsageBook
from tests.fakes import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=["process", "sqlite-file", pytest.param("postgres", marks=pytest.mark.slow)])
def book(request: pytest.FixtureRequest, clock: FakeClock, tmp_path: Path) -> UsageBook:
    if request.param == "process":
        return ProcessUsage(clock)
    url = f"sqlite:///{tmp_path}/usage.db" if request.param == "sqlite-file" else request.getfixturevalue("postgres")()
    return SqlUsageBook(SqlDatabase(url), clock)


async def begun(book: UsageBook, caller: str, limits: CallerLimits) -> str:
    call_id = await book.begin(caller, limits)
    assert isinstance(call_id, str)
    return call_id


async def test_calls_of_a_minute_are_counted_for_each_caller(book: UsageBook, clock: FakeClock) -> None:
    limits = CallerLimits(calls_per_minute=2)
    for _ in range(2):
        await book.end(await begun(book, "ann", limits))
    await clock.advance(20)
    assert await book.begin("ann", limits) == OverLimit("calls_per_minute", 2, 40.0)
    await book.end(await begun(book, "bob", limits))
    await clock.advance(40)
    await book.end(await begun(book, "ann", limits))


async def test_calls_at_once_are_those_that_have_not_ended(book: UsageBook) -> None:
    limits = CallerLimits(calls_at_once=2)
    first, _ = await begun(book, "ann", limits), await begun(book, "ann", limits)
    assert await book.begin("ann", limits) == OverLimit("calls_at_once", 2)
    await book.end(first)
    assert isinstance(await book.begin("ann", limits), str)


async def test_tokens_of_a_day_are_counted_until_the_next_one(book: UsageBook, clock: FakeClock) -> None:
    limits = CallerLimits(tokens_per_day=100)
    await book.end(await begun(book, "ann", limits), tokens=60)
    await book.end(await begun(book, "ann", limits), tokens=60)
    over = await book.begin("ann", limits)
    assert isinstance(over, OverLimit)
    assert over.limit == "tokens_per_day"
    assert over.sentence.startswith("You have used all 100 tokens for today. Come back in ")
    await clock.advance(over.seconds + 1)
    assert isinstance(await book.begin("ann", limits), str)


async def test_processes_on_one_store_share_their_limits(clock: FakeClock, tmp_path: Path) -> None:
    url, limits = f"sqlite:///{tmp_path}/usage.db", CallerLimits(calls_at_once=3)
    here, there = (SqlUsageBook(SqlDatabase(url), clock) for _ in range(2))
    found = await asyncio.gather(*(one.begin("ann", limits) for one in (here, there) * 5))
    assert sum(isinstance(one, str) for one in found) == 3


@pytest.mark.slow
async def test_two_connections_of_postgres_take_the_last_place_once(
    clock: FakeClock, postgres: Callable[[], str]
) -> None:
    url, limits = postgres(), CallerLimits(calls_per_minute=10)
    books = [SqlUsageBook(SqlDatabase(url), clock) for _ in range(2)]
    found = await asyncio.gather(*(one.begin("ann", limits) for one in books * 20))
    assert sum(isinstance(one, str) for one in found) == 10


async def test_a_call_whose_process_was_killed_stops_counting(clock: FakeClock, tmp_path: Path) -> None:
    url, limits = f"sqlite:///{tmp_path}/usage.db", CallerLimits(calls_at_once=1)
    killed, here = (SqlUsageBook(SqlDatabase(url), clock) for _ in range(2))
    await begun(killed, "ann", limits)
    assert killed._renewing is not None
    killed._renewing.cancel()
    assert isinstance(await here.begin("ann", limits), OverLimit)
    await clock.advance(LEASE_SECONDS + 1)
    call_id = await begun(here, "ann", limits)
    # This one renews its lease.
    for _ in range(8):
        await clock.advance(LEASE_SECONDS / 4)
        await here._renewed()
    assert isinstance(await here.begin("ann", limits), OverLimit)
    await here.end(call_id)


async def test_what_cannot_be_counted_does_not_run(clock: FakeClock, tmp_path: Path) -> None:
    book = SqlUsageBook(SqlDatabase(f"sqlite:///{tmp_path}/nowhere.db", must_exist=True), clock)
    over = await book.begin("ann", CallerLimits(calls_at_once=1))
    assert isinstance(over, OverLimit)
    assert over.sentence == "Your calls cannot be counted now. Come back in 10 s."
