"""Limits for each caller, so that one person cannot use up what a whole team shares.

`UsageBook` counts: in this process, or in a store that several processes share. A call over a limit gets a result that
says when to come back.
"""

import itertools
from collections import deque
from datetime import date, datetime, timedelta
from typing import Literal, NamedTuple, Protocol

from openai_responses_mcp.domain.ports import WallClock

MINUTE_SECONDS = 60.0


class CallerLimits(NamedTuple):
    """None means no limit."""

    calls_per_minute: int | None = None
    calls_at_once: int | None = None
    tokens_per_day: int | None = None


class OverLimit(NamedTuple):
    """A call that must not start. It can be retried after `seconds`. `uncounted` means that the store failed."""

    limit: Literal["calls_per_minute", "calls_at_once", "tokens_per_day", "uncounted"]
    most: int = 0
    seconds: float = 0.0

    @property
    def sentence(self) -> str:
        minutes = max(1, round(self.seconds / 60))
        return {
            "tokens_per_day": f"You have used all {self.most} tokens for today."
            f" Come back in {minutes // 60} h {minutes % 60} min.",
            "calls_at_once": f"You already have {self.most} {'call' if self.most == 1 else 'calls'} in flight, which is"
            " the limit. Wait for one to end.",
            "calls_per_minute": f"You may call {'once' if self.most == 1 else f'{self.most} times'} a minute."
            f" Come back in {max(1, round(self.seconds))} s.",
            "uncounted": f"Your calls cannot be counted now. Come back in {max(1, round(self.seconds))} s.",
        }[self.limit]


class UsageBook(Protocol):
    """Never raises: a call that cannot be counted is treated as over the limit."""

    async def begin(self, caller: str, limits: CallerLimits) -> str | OverLimit:
        """Count a call that starts. Returns the id for `end`, or the limit that stops it; then it is not counted."""
        ...

    async def end(self, call_id: str, tokens: int = 0) -> None:
        """The call has ended, and took this many tokens."""
        ...


class _Usage:
    """What one caller has used."""

    def __init__(self) -> None:
        self.started: deque[float] = deque()
        self.in_flight = 0
        self.day: date | None = None
        self.tokens = 0


class ProcessUsage(UsageBook):
    """Counts in this process."""

    def __init__(self, clock: WallClock) -> None:
        self._clock = clock
        self._usage: dict[str, _Usage] = {}
        self._callers: dict[str, str] = {}
        self._numbers = itertools.count(1)

    async def begin(self, caller: str, limits: CallerLimits) -> str | OverLimit:
        usage = self._usage_of(caller)
        over = self._over(usage, limits)
        if over is not None:
            return over
        usage.started.append(self._clock.monotonic())
        usage.in_flight += 1
        call_id = str(next(self._numbers))
        self._callers[call_id] = caller
        return call_id

    async def end(self, call_id: str, tokens: int = 0) -> None:
        usage = self._usage_of(self._callers.pop(call_id))
        usage.in_flight -= 1
        usage.tokens += tokens

    def _usage_of(self, caller: str) -> _Usage:
        usage = self._usage.setdefault(caller, _Usage())
        while usage.started and self._clock.monotonic() - usage.started[0] >= MINUTE_SECONDS:
            usage.started.popleft()
        if usage.day != self._clock.today():
            usage.day, usage.tokens = self._clock.today(), 0
        return usage

    def _over(self, usage: _Usage, limits: CallerLimits) -> OverLimit | None:
        if limits.tokens_per_day is not None and usage.tokens >= limits.tokens_per_day:
            return OverLimit("tokens_per_day", limits.tokens_per_day, seconds_until_tomorrow(self._clock.now()))
        if limits.calls_at_once is not None and usage.in_flight >= limits.calls_at_once:
            return OverLimit("calls_at_once", limits.calls_at_once)
        if limits.calls_per_minute is not None and len(usage.started) >= limits.calls_per_minute:
            waited = self._clock.monotonic() - usage.started[-limits.calls_per_minute]
            return OverLimit("calls_per_minute", limits.calls_per_minute, MINUTE_SECONDS - waited)
        return None


def seconds_until_tomorrow(now: datetime) -> float:
    tomorrow = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), now.tzinfo)
    return (tomorrow - now).total_seconds()
