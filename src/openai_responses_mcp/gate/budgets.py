"""Budgets: after so many calls or tokens a human is asked whether to go on.

A limit counts in a window: a run, a session of the guard, an hour or a day (both by the clock, in UTC). Counts are kept
in the store, so that they hold across pauses and processes. When a window is used up, the next call asks; an approval
allows as much again. A call counts when it starts, so a refused one does not count.

There is one `SessionBudget` for each run, and one for each process of the guard. Before a call is decided,
`questions()` go to the gate as `GateContext.over_budget`. `spend` counts a call that starts, and `go_on` follows when a
human has approved the call that asked.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal, Protocol

from openai_responses_mcp.gate.calls import BudgetQuestion
from openai_responses_mcp.gate.clock import Clock
from openai_responses_mcp.gate.policy.rules import Budget
from openai_responses_mcp.gate.reasons import Reason

Unit = Literal["calls", "tokens"]
Window = Literal["run", "session", "hour", "day"]


class BudgetStore(Protocol):
    """Counts of calls and tokens, by the name of their window. Any text is a name. Raises `StoreUnavailable`."""

    async def read(self, window: str) -> tuple[int, int]:
        """The used amount, and the amount that a human has allowed; both 0 for an unknown window."""
        ...

    async def spend(self, window: str, amount: int) -> None:
        """Add to the used amount. Concurrent additions all count."""
        ...

    async def allow_to(self, window: str, amount: int) -> None:
        """Raise the allowed amount; it never goes down."""
        ...


@dataclass(frozen=True, slots=True)
class Limit:
    """`of` names the owner of hours and days, where several share a store."""

    most: int
    unit: Unit
    per: Window
    of: str = ""

    @property
    def reason(self) -> Reason:
        return Reason("budget", "needs_human", {"most": self.most, "unit": self.unit, "per": self.per})

    def window(self, session_id: str, now: datetime) -> str:
        moment = now.astimezone(UTC)
        places = {
            "hour": f"{moment:%Y-%m-%dT%H} {self.of}",
            "day": f"{moment:%Y-%m-%d} {self.of}",
        }
        return f"{self.unit} per {self.per} {places.get(self.per, session_id)}".rstrip()


@dataclass(frozen=True, slots=True)
class Spending:
    """One call counted in a window with a limit of `most`, or a higher one that a human allowed."""

    window: str
    most: int


def limits_of(budget: Budget | None, of: str) -> tuple[Limit, ...]:
    """The limit that a policy file sets."""
    return () if budget is None else (Limit(budget.calls, "calls", budget.per, of),)


class SessionBudget:
    """The budgets that hold for one session. `limits` is asked each time: a policy file may change."""

    def __init__(
        self, store: BudgetStore, clock: Clock, session_id: str, limits: Callable[[], Sequence[Limit]]
    ) -> None:
        self._store = store
        self._clock = clock
        self._session_id = session_id
        self._limits = limits

    async def questions(self, calls: int = 1) -> list[list[BudgetQuestion]]:
        """The questions before each call of a turn, in order."""
        asked: list[list[BudgetQuestion]] = [[] for _ in range(calls)]
        for limit in self._limits():
            window = limit.window(self._session_id, self._clock.now())
            used, allowed_to = await self._store.read(window)
            allowed_to = max(allowed_to, limit.most)
            for questions in asked if limit.unit == "calls" else asked[:1]:
                if used >= allowed_to:
                    allowed_to = used + limit.most
                    questions.append(BudgetQuestion(window, limit.reason, allowed_to))
                used += 1
        return asked

    def spendings(self) -> tuple[Spending, ...]:
        """What one call spends in the windows that are open now."""
        now = self._clock.now()
        return tuple(
            Spending(limit.window(self._session_id, now), limit.most)
            for limit in self._limits()
            if limit.unit == "calls"
        )

    async def spend(self, *, calls: int = 0, tokens: int = 0) -> None:
        """Raises `StoreUnavailable`: what cannot be counted must not go on."""
        amounts: dict[Unit, int] = {"calls": calls, "tokens": tokens}
        for limit in self._limits():
            if amount := amounts[limit.unit]:
                await self._store.spend(limit.window(self._session_id, self._clock.now()), amount)

    async def go_on(self, questions: Sequence[BudgetQuestion]) -> None:
        """A human has said yes to these."""
        for question in questions:
            await self._store.allow_to(question.window, question.allowed_to)
