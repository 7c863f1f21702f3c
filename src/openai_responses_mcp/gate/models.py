"""What the gate looks at, and what it decides."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import get_args

from openai_responses_mcp.gate.calls import PlannedCall, ToolDescription, ToolKind, is_risk_level
from openai_responses_mcp.gate.errors import require
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.reasons import Decision, Reason
from openai_responses_mcp.gate.sentences import reason_in_record

_DECISIONS = get_args(Decision)


@dataclass(frozen=True, slots=True)
class McpCapabilitySummary:
    name: str
    description: str
    risk_level: int


@dataclass(frozen=True, slots=True)
class AgentCapabilitySnapshot:
    """What an agent can do, read from the agent itself when the call is judged."""

    agent_name: str
    tool_names: tuple[str, ...] = ()
    skill_ids: tuple[str, ...] = ()
    mcp_capabilities: tuple[McpCapabilitySummary, ...] = ()

    @classmethod
    def of(cls, agent: object, catalog: Sequence[ToolDescription]) -> "AgentCapabilitySnapshot":
        return cls(
            agent_name=str(getattr(agent, "name", "")),
            tool_names=tuple(tool.name for tool in catalog),
            skill_ids=tuple(tool.name for tool in catalog if tool.kind == "skill"),
            mcp_capabilities=tuple(
                McpCapabilitySummary(tool.name, tool.description, tool.own_risk)
                for tool in catalog
                if tool.kind == "mcp"
            ),
        )


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """One call to judge. `user_intent` is what the user typed; a judge that asks a model leaves it out by default.

    `attempt` counts how often this call is judged: one that a human changed is judged again.
    """

    tool_name: str
    tool_kind: ToolKind
    args: JsonObject
    user_intent: str = ""
    capability_snapshot: AgentCapabilitySnapshot | None = None
    tool_catalog: tuple[ToolDescription, ...] = ()
    target_tool: ToolDescription | None = None
    run_id: str = ""
    tool_call_id: str = ""
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class GateDecision:
    """`reasons` are those of every voice that spoke, `reason` the ones that led to the decision, in words."""

    decision: Decision
    risk_level: int
    reason: str
    approval_id: str | None = None
    reasons: tuple[Reason, ...] = field(default=(), compare=False)

    @classmethod
    def because(cls, decision: Decision, risk_level: int, *reasons: Reason) -> "GateDecision":
        return cls(decision, risk_level, reason_in_record(reasons, decision), reasons=reasons)

    def __post_init__(self) -> None:
        is_known = self.decision in _DECISIONS
        require(is_known, "AGENTS-E-GATE-EVAL", "a verdict's decision is allow, deny or needs_human")
        is_risk = is_risk_level(self.risk_level)
        require(is_risk, "AGENTS-E-GATE-EVAL", "a verdict's risk_level is a whole number from 1 to 5")
        require(isinstance(self.reason, str), "AGENTS-E-GATE-EVAL", "a verdict's reason is a text")


@dataclass(frozen=True, slots=True)
class CallToApprove:
    """A call that waits for a human, and why. `attempt` counts how often a human is asked about it."""

    call: PlannedCall
    decision: GateDecision
    attempt: int = 1


@dataclass(frozen=True, slots=True)
class BudgetQuestion:
    """A window is used up. A yes allows it to go on up to `allowed_to`."""

    window: str
    reason: Reason
    allowed_to: int


@dataclass(frozen=True, slots=True)
class Turn:
    """Calls that one agent wants made together, and all that it could have called."""

    agent: object
    calls: tuple[PlannedCall, ...]
    catalog: tuple[ToolDescription, ...] = ()


@dataclass(frozen=True, slots=True)
class ChangedCall:
    """The arguments that a human gave instead of the model's, and the note about it for the model."""

    args: JsonObject
    note: str
