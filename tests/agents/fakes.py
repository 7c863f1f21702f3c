"""Fakes of the ports of gate and agents, and the few objects that most tests need."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from openai_responses_mcp.agents.mcp.gateway import McpClient
from openai_responses_mcp.agents.runs.models import RunEvent, RunResult
from openai_responses_mcp.gate.audit.records import ExecutionLog, ExecutionLogStore
from openai_responses_mcp.gate.calls import (
    GateDecision,
    ToolCallRequest,
)
from openai_responses_mcp.gate.clock import Clock
from openai_responses_mcp.gate.errors import AgentsError, RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.policy.rules import PolicyProfile
from openai_responses_mcp.gate.safety_gate import Judge

WAIT_SECONDS = 30.0  # long enough for a run of the SDK, or a process

# Texts that databases and encodings often reject.
ODD_TEXTS = ("\0", "\ud800", "a\udfff\0b\ud83d", "\x10", "\x100000", "\x10d800", "\ud83d\ude00", "😀", "' \\ %s :x ?")

T = TypeVar("T")


async def within(work: Awaitable[T]) -> T:
    return await asyncio.wait_for(work, WAIT_SECONDS)


async def collected(events: AsyncIterator[T]) -> list[T]:
    return [event async for event in events]


def last_result(events: Sequence[RunEvent]) -> RunResult:
    """The result in the last event of a stream."""
    result = events[-1].result
    assert result is not None
    return result


async def code_of(work: Awaitable[Any]) -> str:
    """The code of the error that the work raises, or an empty string."""
    try:
        await within(work)
    except AgentsError as exc:
        return exc.code
    return ""


class FakeClock(Clock):
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.moment = datetime(2026, 11, 16, 9, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.moment

    def move(self, seconds: float) -> None:
        self.moment += timedelta(seconds=seconds)


class FakeJudge(Judge):
    """Returns or raises what was enqueued, else allows; records its requests."""

    def __init__(self, *verdicts: GateDecision | Exception) -> None:
        self.requests: list[ToolCallRequest] = []
        self.agents: list[Any] = []
        self._verdicts = deque(verdicts)
        self._by_tool: dict[str, GateDecision] = {}

    def enqueue(self, *verdicts: GateDecision | Exception) -> None:
        self._verdicts.extend(verdicts)

    def on(self, tool_name: str, verdict: GateDecision) -> None:
        self._by_tool[tool_name] = verdict

    async def evaluate(self, agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        self.requests.append(request)
        self.agents.append(agent)
        if request.tool_name in self._by_tool:
            return self._by_tool[request.tool_name]
        verdict = self._verdicts.popleft() if self._verdicts else GateDecision("allow", 1, "fine")
        if isinstance(verdict, Exception):
            raise verdict
        return verdict


class BreakableLogStore(ExecutionLogStore):
    """Wraps a store. It can be made to fail, refuse or wait, always or at certain records."""

    def __init__(self, inner: ExecutionLogStore) -> None:
        self._inner = inner
        self.waits_at: Callable[[ExecutionLog], bool] = lambda log: False
        self.is_reached, self.goes_on = asyncio.Event(), asyncio.Event()
        self.tries = 0
        self.is_broken = False
        self.breaks_at: Callable[[ExecutionLog], bool] = lambda log: False
        self.refuses: Callable[[ExecutionLog], bool] = lambda log: False

    async def append(self, log: ExecutionLog) -> ExecutionLog:
        return (await self.append_all([log]))[0]

    async def append_all(self, logs: Sequence[ExecutionLog]) -> list[ExecutionLog]:
        self.tries += 1
        if any(map(self.waits_at, logs)):
            self.is_reached.set()
            await self.goes_on.wait()
        if self.is_broken or any(map(self.breaks_at, logs)):
            raise StoreUnavailable("broken on purpose")
        if any(map(self.refuses, logs)):
            raise RecordRefused("refused on purpose")
        return await self._inner.append_all(logs)

    async def query(self, run_id: str | None = None, since: str | None = None) -> list[ExecutionLog]:
        if self.is_broken:
            raise StoreUnavailable("broken on purpose")
        return await self._inner.query(run_id, since)


DENY = GateDecision("deny", 1, "not today")
ASK = GateDecision("needs_human", 1, "ask somebody")


ENTRY = {"name": "echo", "title": "Echo", "inputSchema": {"type": "object"}}
BROKEN = AgentsError("AGENTS-E-MCP-EXEC", "broke", details={"reason": "broken"})
REJECTED = AgentsError("AGENTS-E-MCP-EXEC", "no", details={"reason": "rejected"})


class FakeMcpClient(McpClient):
    """Lists what it was given, and answers calls with what was enqueued."""

    def __init__(self, entries: Any = (ENTRY,)) -> None:
        self.entries = list(entries)
        self.outcomes: deque[Any] = deque()
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.is_closed = False

    async def list_tools(self) -> list[Mapping[str, Any]]:
        return self.entries

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> Any:
        self.calls.append((name, args))
        outcome = self.outcomes.popleft()
        if isinstance(outcome, AgentsError):
            raise outcome
        return outcome

    async def close(self) -> None:
        self.is_closed = True
