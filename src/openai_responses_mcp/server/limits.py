"""How much one caller may ask for, so that one person cannot spend what is meant for a team.

Counted in this process. A call over a limit gets a result that says when to come back, in every era, because a model
reads results.
"""

from collections import deque
from collections.abc import Mapping
from datetime import date, datetime, timedelta
from typing import NamedTuple

from openai_responses_mcp.domain.jsonrpc import JsonObject, Request
from openai_responses_mcp.domain.ports import Clock
from openai_responses_mcp.server.calling import Caller, Send
from openai_responses_mcp.server.clients import CallingClient
from openai_responses_mcp.server.jsonrpc import result_message
from openai_responses_mcp.server.tasks import Tasks
from openai_responses_mcp.server.tool_results import failed_tool_result, tokens_in
from openai_responses_mcp.server.tools import Tool

_MINUTE_SECONDS = 60.0


class CallerLimits(NamedTuple):
    """None stands for no limit."""

    calls_per_minute: int | None = None
    calls_at_once: int | None = None
    tokens_per_day: int | None = None


class _Usage:
    """What one caller has used."""

    def __init__(self) -> None:
        self.started: deque[float] = deque()
        self.in_flight = 0
        self.day: date | None = None
        self.tokens = 0


class LimitedCaller(Caller):
    def __init__(self, caller: Caller, limits: CallerLimits, clock: Clock) -> None:
        self._caller = caller
        self._limits = limits
        self._clock = clock
        self._usage: dict[str, _Usage] = {}

    @property
    def tasks(self) -> Tasks:
        return self._caller.tasks

    async def call(self, tool: Tool, request: Request, client: CallingClient, send: Send) -> JsonObject:
        usage = self._usage_of(client.caller)
        refusal = self._refusal(usage)
        if refusal is not None:
            return result_message(request.id, client.era.result(failed_tool_result(refusal)))
        usage.started.append(self._clock.monotonic())
        usage.in_flight += 1
        try:
            reply = await self._caller.call(tool, request, client, send)
        finally:
            usage.in_flight -= 1
        self._count_tokens(usage, reply)
        return reply

    def _usage_of(self, caller: str) -> _Usage:
        usage = self._usage.setdefault(caller, _Usage())
        while usage.started and self._clock.monotonic() - usage.started[0] >= _MINUTE_SECONDS:
            usage.started.popleft()
        if usage.day != self._clock.today():
            usage.day, usage.tokens = self._clock.today(), 0
        return usage

    def _refusal(self, usage: _Usage) -> str | None:
        most = self._limits
        if most.tokens_per_day is not None and usage.tokens >= most.tokens_per_day:
            return f"Your {most.tokens_per_day} tokens of today are used up. Come back in {self._until_tomorrow()}."
        if most.calls_at_once is not None and usage.in_flight >= most.calls_at_once:
            return (
                f"You have {usage.in_flight} calls in flight, and may have {most.calls_at_once}. Wait for one to end."
            )
        if most.calls_per_minute is not None and len(usage.started) >= most.calls_per_minute:
            seconds = _MINUTE_SECONDS - (self._clock.monotonic() - usage.started[-most.calls_per_minute])
            return f"You may call {most.calls_per_minute} times a minute. Come back in {max(1, round(seconds))} s."
        return None

    def _until_tomorrow(self) -> str:
        now = self._clock.now()
        tomorrow = datetime.combine(now.date() + timedelta(days=1), datetime.min.time(), now.tzinfo)
        minutes = max(1, round((tomorrow - now).total_seconds() / 60))
        return f"{minutes // 60} h {minutes % 60} min"

    def _count_tokens(self, usage: _Usage, reply: Mapping[str, JsonObject]) -> None:
        usage.tokens += tokens_in(reply.get("result") or {})


def maybe_limited(caller: Caller, limits: CallerLimits, clock: Clock) -> Caller:
    return caller if limits == CallerLimits() else LimitedCaller(caller, limits, clock)
