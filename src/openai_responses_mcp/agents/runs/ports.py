"""What runs need from outside: the engine that runs agents. It must ask the ledger of the run before every execution."""

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.agents.runs.models import RunEvent, UsageStats
from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription, Turn
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, OwnJson


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """`sdk` is passed on to the SDK. With `is_streamed` the model is asked for a stream.

    A `state` of the engine takes the place of the input; its calls are decided before anything runs.
    """

    requested_calls: tuple[PlannedCall, ...] = ()
    max_turns: int | None = None
    sdk: Mapping[str, object] = field(default_factory=dict)
    is_streamed: bool = False
    state: object = None


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
    """One step of a run: the SDK's event, what callers see of it, or the outcome at the end."""

    raw: object = None
    event: RunEvent | None = None
    outcome: EngineOutcome | None = None


@dataclass(frozen=True, slots=True)
class Said:
    """What the model gets when a run goes on: a text, more items of input, and the texts for denied calls.

    `rejections` are by call and replace the ledger's texts; None leaves the text to the SDK.
    """

    text: str | None = None
    input: tuple[JsonValue, ...] = ()
    rejections: Mapping[str, str | None] = field(default_factory=dict)


NOTHING_SAID = Said()


@dataclass(frozen=True, slots=True)
class Resumption:
    """The run to resume, and what is passed in again. Without a token the decisions themselves are used up.

    Where `tools_may_be_gone`, the engine reports a tool that is no longer there; its call cannot run.
    """

    run_id: str | None
    token: str | None = None
    agent: object = None
    sdk: Mapping[str, object] = field(default_factory=dict)
    human_response: str | None = None
    is_streamed: bool = False
    said: Said = NOTHING_SAID
    tools_may_be_gone: bool = False


@dataclass(frozen=True, slots=True)
class PausedRun:
    """A run that was read back. `turns` are the calls of the pause as they are now, with the agents that made them.

    `stream` continues the run: each call of the pause runs, or the model gets the reason why not.
    """

    turns: Sequence[Turn]
    stream: Callable[[Said], AsyncGenerator[EngineEvent, None]]

    @property
    def calls(self) -> Mapping[str, PlannedCall]:
        """By their id."""
        return {call.call_id: call for turn in self.turns for call in turn.calls}


class AgentEngine(Protocol):
    """Runs agents so that nothing executes without its ledger. Raises `AgentsError`."""

    async def describe(self, agent: object, ledger: RunLedger, context: object = None) -> list[ToolDescription]:
        """The agent's own tools and handoffs. Which tools it has may depend on the context.

        `AGENTS-E-AGENT-CAPABILITY-RESOLVE` if they cannot be determined.
        """
        ...

    def stream(
        self, agent: object, input: object, ledger: RunLedger, options: EngineOptions
    ) -> AsyncGenerator[EngineEvent, None]:
        """The last step has the outcome. Unless the model is asked for a stream, it may be the only one."""
        ...

    async def restore(self, agent: object, saved: OwnJson, ledger: RunLedger, options: EngineOptions) -> PausedRun:
        """Read a saved run back, without running anything. Unreadable: `AGENTS-E-RUNNER`."""
        ...
