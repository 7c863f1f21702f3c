"""What runs need from outside: a place for paused runs, and the engine that runs agents."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from openai_responses_mcp.agents.calls import PlannedCall, ToolDescription
from openai_responses_mcp.agents.gate.models import Turn
from openai_responses_mcp.agents.gate.ports import TurnGuard
from openai_responses_mcp.agents.json_values import JsonObject, JsonValue, OwnJson
from openai_responses_mcp.agents.runs.models import RunStatus, UsageStats
from openai_responses_mcp.agents.runs.results import RunEvent


@dataclass(frozen=True, slots=True)
class RunRecord:
    """`payload` is JSON and holds a paused run."""

    run_id: str
    status: RunStatus
    agent_name: str
    created_at: str
    updated_at: str
    payload: str = ""


class RunStateStore(Protocol):
    """Any text can be stored."""

    async def begin(self, record: RunRecord) -> None:
        """A new run. This process sees it at once, others no later than anything else that is stored about it."""
        await self.save(record)

    async def save(self, record: RunRecord) -> None:
        """Create or replace."""
        ...

    async def get(self, run_id: str) -> RunRecord | None: ...

    async def list_runs(self, status: RunStatus | None = None) -> list[RunRecord]:
        """Oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """`sdk` is handed to the SDK as it is."""

    requested_calls: tuple[PlannedCall, ...] = ()
    max_turns: int | None = None
    sdk: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineOutcome:
    """How a run went on or ended. `saved` is set when it paused and holds all that a resume needs, as JSON."""

    result: object
    output_text: str = ""
    messages: tuple[JsonValue, ...] = ()
    usage: UsageStats = field(default_factory=UsageStats)
    last_agent: object = None
    saved: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """One step of a streamed run: the SDK's event, what callers see of it, or the outcome at the end."""

    raw: object = None
    event: RunEvent | None = None
    outcome: EngineOutcome | None = None


class AgentEngine(Protocol):
    """Runs agents so that nothing executes without its guard. Raises `AgentsError`."""

    async def describe(self, agent: object, guard: TurnGuard, context: object = None) -> list[ToolDescription]:
        """The agent's own tools and handoffs; some tools are there only for some of the callers' contexts.

        `AGENTS-E-AGENT-CAPABILITY-RESOLVE` where they cannot be told.
        """
        ...

    async def run(self, agent: object, input: object, guard: TurnGuard, options: EngineOptions) -> EngineOutcome: ...

    def stream(
        self, agent: object, input: object, guard: TurnGuard, options: EngineOptions
    ) -> AsyncGenerator[EngineEvent, None]: ...

    async def restore(self, agent: object, saved: OwnJson, guard: TurnGuard, options: EngineOptions) -> "PausedRun":
        """Read a saved run back, without running anything. Unreadable: `AGENTS-E-RUNNER`."""
        ...


class PausedRun(Protocol):
    @property
    def turns(self) -> Sequence[Turn]:
        """The calls of the pause as they stand now, with who made them."""
        ...

    @property
    def calls(self) -> Mapping[str, PlannedCall]:
        """The same by their id."""
        return {call.call_id: call for turn in self.turns for call in turn.calls}

    async def resume(self, human_response: str | None = None) -> EngineOutcome:
        """Run on. Each call of the pause is let through, or the guard says what the model is told instead."""
        ...

    def stream(self, human_response: str | None = None) -> AsyncGenerator[EngineEvent, None]:
        """The same, step by step; the last step has the outcome."""
        ...
