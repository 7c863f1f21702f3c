"""Doubles of the guarded half's ports, and the few objects that most tests need."""

import asyncio
import posixpath
import re
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.audit.ports import ExecutionLogStore
from openai_responses_mcp.agents.clock import Clock
from openai_responses_mcp.agents.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.agents.gate.models import GateDecision, ToolCallRequest
from openai_responses_mcp.agents.gate.ports import Judge
from openai_responses_mcp.agents.mcp.ports import McpClient
from openai_responses_mcp.agents.policy.ports import Paths, Patterns, PolicySource
from openai_responses_mcp.agents.policy.profiles import PolicyProfile
from openai_responses_mcp.agents.policy.rules import Policy, Rule

WAIT_SECONDS = 5.0

T = TypeVar("T")


async def within(work: Awaitable[T]) -> T:
    return await asyncio.wait_for(work, WAIT_SECONDS)


async def collected(events: AsyncIterator[T]) -> list[T]:
    return [event async for event in events]


async def code_of(work: Awaitable[Any]) -> str:
    """The code that the work fails with, or nothing."""
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
    """Says what was enqueued, else allows; remembers what it was asked."""

    def __init__(self, *verdicts: GateDecision) -> None:
        self.requests: list[ToolCallRequest] = []
        self.agents: list[Any] = []
        self._verdicts = deque(verdicts)
        self._by_tool: dict[str, GateDecision] = {}

    def enqueue(self, *verdicts: GateDecision) -> None:
        self._verdicts.extend(verdicts)

    def on(self, tool_name: str, verdict: GateDecision) -> None:
        self._by_tool[tool_name] = verdict

    async def evaluate(self, agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        self.requests.append(request)
        self.agents.append(agent)
        if request.tool_name in self._by_tool:
            return self._by_tool[request.tool_name]
        return self._verdicts.popleft() if self._verdicts else GateDecision("allow", 1, "fine")


class BreakableLogStore(ExecutionLogStore):
    """Another store that can be made to fail, at once or when a certain event comes."""

    def __init__(self, inner: ExecutionLogStore) -> None:
        self._inner = inner
        self.is_broken = False
        self.breaks_at: Callable[[ExecutionLog], bool] = lambda log: False

    async def append(self, log: ExecutionLog) -> ExecutionLog:
        if self.is_broken or self.breaks_at(log):
            raise StoreUnavailable("broken on purpose")
        return await self._inner.append(log)

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


class FakePaths(Paths):
    """A file system of links alone: everything else is as it is written."""

    def __init__(
        self,
        links: Mapping[str, str] | None = None,
        *,
        home: str = "/home/me",
        here: str = "/srv",
        ignores_case: bool = False,
    ) -> None:
        self.links = dict(links or {})
        self._home = home
        self._here = here
        self._ignores_case = ignores_case
        self._anchors: dict[str, str | None] = {}

    @property
    def ignores_case(self) -> bool:
        return self._ignores_case

    def readings(self, path: str, directory: str) -> frozenset[str]:
        whole = self._whole(path, directory)
        found = {self._resolved(form) for form in (whole, posixpath.normpath(whole))}
        return frozenset(one for one in found if one is not None) if None not in found else frozenset()

    def anchor(self, folder: str, directory: str) -> str | None:
        whole = self._whole(folder, directory)
        return self._anchors.setdefault(whole, self._resolved(whole))

    def _whole(self, path: str, directory: str) -> str:
        expanded = self._home + path[1:] if path == "~" or path.startswith("~/") else path
        return posixpath.join(directory or self._here, expanded)

    def _resolved(self, path: str) -> str | None:
        if "\0" in path:
            return None
        names, at, followed = deque(path.split("/")), "", 0
        while names:
            name = names.popleft()
            if name == "..":
                at = at.rpartition("/")[0]
            elif name not in ("", "."):
                at = f"{at}/{name}"
            if at in self.links:
                followed += 1
                if followed > len(self.links):
                    return None
                names.extendleft(reversed(self.links[at].split("/")))
                at = "" if self.links[at].startswith("/") else at.rpartition("/")[0]
        return at or "/"


class FakePatterns(Patterns):
    """Python's own engine, which is good enough for patterns that no attacker wrote."""

    def compile(self, pattern: str) -> Callable[[str], bool]:
        try:
            compiled = re.compile(pattern)
        except re.error as exc:
            raise ValueError(f"is no pattern that can be used: {exc}") from exc
        return lambda text: compiled.fullmatch(text) is not None


class FakePolicySource(PolicySource):
    """Has the policy that it was given last."""

    def __init__(self, *rules: Rule, **said: Any) -> None:
        self.policy = Policy(rules=rules, **said)

    def current(self) -> Policy:
        return self.policy
