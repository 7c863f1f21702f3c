"""One call of a tool: the tool, the call as it was planned and as the gate sees it, the decision, and what came of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeGuard, get_args

from openai_responses_mcp.gate.errors import require
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, digest
from openai_responses_mcp.gate.reasons import Decision, Reason, reason_in_record

ToolKind = Literal["mcp", "function", "skill"]

RISK_LEVELS = range(1, 6)
DEFAULT_RISK: Mapping[ToolKind, int] = {"function": 1, "skill": 2, "mcp": 3}
GUARD_RUN = "guard_"  # the ids of sessions of the guard begin with it
# Arguments that can be read in more than one way are kept as one text, under this name. Such a
# call is refused.
AMBIGUOUS = "<ambiguous>"


def is_risk_level(value: object) -> TypeGuard[int]:
    return type(value) is int and value in RISK_LEVELS


@dataclass(frozen=True, slots=True)
class GuardedServer:
    """`command` is shown to people, with labels for secrets. `fingerprint` identifies the command."""

    name: str
    fingerprint: str
    command: str


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """One tool as the gate knows it; an MCP tool is called `server/tool`, a handoff by its target.

    `doubts` are reasons to ask a human that no rule and no standing approval answers, such as a changed definition;
    `definition_change` says what has changed since the tool was last approved. Relative paths in its arguments begin
    in `directory`; an empty one is the process's own. `annotations` are what an MCP tool claims about itself. `origin` is
    the fingerprint of the command that started a guarded server: what a person allows holds for that command alone.
    """

    name: str
    kind: ToolKind
    description: str = ""
    parameters: JsonObject = field(default_factory=dict)
    risk_level: int | None = None
    require_approval: bool = False
    definition_hash: str = ""
    doubts: tuple[Reason, ...] = ()
    definition_change: str = ""
    directory: str = ""
    annotations: JsonObject = field(default_factory=dict)
    origin: str = ""

    @property
    def own_risk(self) -> int:
        return self.risk_level or DEFAULT_RISK[self.kind]

    @property
    def scope_name(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """A call that ran; `args` and `output` without secrets."""

    tool_call_id: str
    tool_name: str
    tool_kind: ToolKind
    args: JsonObject
    output: JsonValue = None


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that a model or a caller wants made, before anything of its turn has run."""

    call_id: str
    tool: ToolDescription
    args: JsonObject


def arguments_hash(args: JsonObject) -> str:
    return digest("arguments", dict(args))


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
        is_known = self.decision in get_args(Decision)
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
