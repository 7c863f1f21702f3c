"""Budgets: when a human is asked whether to go on, and what their yes is worth."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from openai_responses_mcp.gate.budgets import Limit, SessionBudget, Spending, limits_of
from openai_responses_mcp.gate.policy.rules import Budget
from openai_responses_mcp.gate.reasons import reason_in_record
from tests.agents.fake_stores import FakeBudgetStore
from tests.agents.fakes import FakeClock


class Room:
    def __init__(self, *limits: Limit) -> None:
        self.limits = list(limits)
        self.clock = FakeClock()
        self.store = FakeBudgetStore()
        self.budget = self.session("r1")

    def session(self, session_id: str) -> SessionBudget:
        return SessionBudget(self.store, self.clock, session_id, lambda: self.limits)

    async def asks(self, calls: int = 1) -> list[bool]:
        return [bool(questions) for questions in await self.budget.questions(calls)]


async def test_of_a_large_turn_one_call_asks_for_as_much_again() -> None:
    room = Room(Limit(2, "calls", "run"))
    assert await room.asks(7) == [False, False, True, False, True, False, True]


async def test_a_yes_allows_as_much_again() -> None:
    room = Room(Limit(2, "calls", "run"))
    await room.budget.spend(calls=3)  # two at once may both have been the last
    [[question]] = await room.budget.questions()
    assert reason_in_record([question.reason], "needs_human") == "the budget of 2 calls per run is used up"
    await room.budget.go_on([question])
    assert await room.asks(3) == [False, False, True]
    await room.budget.go_on([question])
    assert await room.asks(3) == [False, False, True]


async def test_tokens_are_asked_about_once_for_a_turn() -> None:
    room = Room(Limit(100, "tokens", "run"))
    await room.budget.spend(tokens=99, calls=50)
    assert await room.asks(2) == [False, False]
    await room.budget.spend(tokens=250)
    assert await room.asks(2) == [True, False]
    [questions, _] = await room.budget.questions(2)
    await room.budget.go_on(questions)
    await room.budget.spend(tokens=99)
    assert await room.asks() == [False]
    await room.budget.spend(tokens=1)
    assert await room.asks() == [True]


async def test_a_session_has_its_own_budget_and_an_hour_is_shared() -> None:
    room = Room(Limit(1, "calls", "session"))
    await room.budget.spend(calls=1)
    assert await room.session("r2").questions() == [[]]
    room.limits = [Limit(1, "calls", "hour", "files")]
    await room.budget.spend(calls=1)
    assert await room.session("r2").questions() != [[]]
    room.limits = [Limit(1, "calls", "hour", "others")]
    assert await room.session("r2").questions() == [[]]


@pytest.mark.parametrize(("per", "seconds"), [("hour", 3600), ("day", 24 * 3600)])
async def test_a_new_hour_and_a_new_day_begin_at_zero(per: str, seconds: int) -> None:
    room = Room(*limits_of(Budget(1, per), "files"))  # type: ignore[arg-type]
    room.clock.moment = datetime(2026, 11, 16, 23, 59, 59, tzinfo=UTC)
    await room.budget.spend(calls=1)
    assert await room.asks() == [True]
    room.clock.move(1)
    assert await room.asks() == [False]
    await room.budget.spend(calls=1)
    room.clock.move(seconds - 1)
    assert await room.asks() == [True]
    room.clock.move(1)
    assert await room.asks() == [False]


def test_windows_keep_their_names_in_the_store_in_any_time_zone() -> None:
    """Otherwise amounts used before an update would not count."""
    now = datetime(2026, 11, 17, 8, 0, tzinfo=timezone(timedelta(hours=9)))
    limits = (
        Limit(1, "calls", "run"),
        Limit(1, "calls", "hour", "files"),
        Limit(1, "tokens", "day", "files"),
        Limit(1, "calls", "day"),
    )
    names = [limit.window("r1", now) for limit in limits]
    assert names == [
        "calls per run r1",
        "calls per hour 2026-11-16T23 files",
        "tokens per day 2026-11-16 files",
        "calls per day 2026-11-16",
    ]


async def test_a_call_takes_one_from_each_window_of_calls() -> None:
    room = Room(Limit(3, "calls", "session"), Limit(10, "tokens", "session"), Limit(5, "calls", "hour"))
    hour = room.limits[2].window("r1", room.clock.now())
    assert room.budget.spendings() == (Spending("calls per session r1", 3), Spending(hour, 5))
    await room.budget.spend()
    assert [await room.store.read(one) for one in (hour, "tokens per session r1")] == [(0, 0), (0, 0)]
