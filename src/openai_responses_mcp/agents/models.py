"""What the guarded half talks about. Values out of range are refused where a model is made, with the seed's codes."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol, cast, get_args

from openai_responses_mcp.agents.errors import AgentsError

ToolKind = Literal["mcp", "function", "skill"]
Decision = Literal["allow", "deny", "needs_human"]
HumanDecision = Literal["approve", "deny"]
ApprovalStatus = Literal["pending", "approved", "denied"]
TokenStatus = Literal["active", "used", "expired"]
ProfileName = Literal["strict", "balanced", "fast"]
ProviderName = Literal["openai", "ollama", "lmstudio", "gemini", "anthropic", "openrouter"]
SkillMode = Literal["function_tool", "child_agent"]

RISK_LEVELS = range(1, 6)
DEFAULT_RISK: Mapping[ToolKind, int] = {"function": 1, "skill": 2, "mcp": 3}
DEFAULT_PROFILE: ProfileName = "balanced"
LONGEST_ID = 128
LONGEST_TEXT = 2000
ASKS_FOR_APPROVAL = "the tool asks for approval"


def _require(is_fine: bool, code: str, message: str) -> None:
    if not is_fine:
        raise AgentsError(code, message)


def is_text(value: object) -> bool:
    """Asked of values that come from outside, whatever their annotation says."""
    return isinstance(value, str) and bool(value)


def is_risk_level(value: object) -> bool:
    return type(value) is int and value in RISK_LEVELS


# ---------------------------------------------------------------------------------------------------------------------
# What a caller asks for


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """`human_response` is kept with the approval and told to the model."""

    token: str = field(repr=False)
    human_response: str | None = None

    def __post_init__(self) -> None:
        _require(is_text(self.token), "AGENTS-E-RESUME-TOKEN", "resume.token must be the token of an approval")
        is_short = self.human_response is None or len(self.human_response) <= LONGEST_TEXT
        _require(is_short, "AGENTS-E-APPROVAL-INVALID", f"human_response may have {LONGEST_TEXT} characters")


@dataclass(frozen=True, slots=True)
class RequestedToolCall:
    """A call that the caller wants made, without a model; it passes the same gate."""

    tool_name: str
    args: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        _require(is_text(self.tool_name), "AGENTS-E-RUNNER-CONFIG", "tool_calls need a tool_name")
        _require(isinstance(self.args, Mapping), "AGENTS-E-RUNNER-CONFIG", "the args of tool_calls must be an object")


@dataclass(frozen=True, slots=True)
class Extensions:
    """Everything this library adds to a run."""

    policy_profile: ProfileName | None = None
    require_human_approval: bool = False
    resume: ResumeOptions | None = None
    tool_calls: tuple[RequestedToolCall, ...] = ()
    max_turns: int | None = None

    def __post_init__(self) -> None:
        if self.policy_profile is not None:
            known = get_args(ProfileName)
            _require(self.policy_profile in known, "AGENTS-E-POLICY-INVALID", f"policy_profile is one of {known}")
        is_flag = isinstance(self.require_human_approval, bool)
        _require(is_flag, "AGENTS-E-RUNNER-CONFIG", "require_human_approval is true or false")
        turns = self.max_turns
        is_count = turns is None or (type(turns) is int and turns >= 1)
        _require(is_count, "AGENTS-E-RUNNER-CONFIG", "max_turns is a whole number from 1 up")
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))
        are_calls = all(isinstance(call, RequestedToolCall) for call in self.tool_calls)
        _require(are_calls, "AGENTS-E-RUNNER-CONFIG", "tool_calls holds RequestedToolCall objects")


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`sdk` holds keyword arguments of the SDK's own `Runner.run`: context, hooks, run_config, session and so on."""

    extensions: Extensions | None = None
    stream: bool = False
    sdk: Mapping[str, Any] = field(default_factory=dict)


# ---------------------------------------------------------------------------------------------------------------------
# What the gate looks at


@dataclass(frozen=True, slots=True)
class ToolDescription:
    """One tool as the gate knows it; an MCP tool is called `server/tool`, a handoff by its target."""

    name: str
    kind: ToolKind
    description: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    risk_level: int | None = None
    require_approval: bool = False
    definition_hash: str = ""
    approval_reason: str = ASKS_FOR_APPROVAL

    @property
    def own_risk(self) -> int:
        return self.risk_level or DEFAULT_RISK[self.kind]

    @property
    def scope_name(self) -> str:
        return f"{self.kind}:{self.name}"


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


@dataclass(frozen=True, slots=True)
class ToolCallRequest:
    """One call to judge. `user_intent` is what the user typed; a judge that asks a model leaves it out by default."""

    tool_name: str
    tool_kind: ToolKind
    args: Mapping[str, Any]
    user_intent: str = ""
    capability_snapshot: AgentCapabilitySnapshot | None = None
    tool_catalog: tuple[ToolDescription, ...] = ()
    target_tool: ToolDescription | None = None
    run_id: str = ""
    tool_call_id: str = ""


@dataclass(frozen=True, slots=True)
class GateDecision:
    decision: Decision
    risk_level: int
    reason: str
    approval_id: str | None = None

    def __post_init__(self) -> None:
        is_known = self.decision in get_args(Decision)
        _require(is_known, "AGENTS-E-GATE-EVAL", "a verdict's decision is allow, deny or needs_human")
        is_risk = is_risk_level(self.risk_level)
        _require(is_risk, "AGENTS-E-GATE-EVAL", "a verdict's risk_level is a whole number from 1 to 5")
        _require(isinstance(self.reason, str), "AGENTS-E-GATE-EVAL", "a verdict's reason is a text")


@dataclass(frozen=True, slots=True)
class PolicyProfile:
    """Runs alone up to `allow_up_to`, is refused from `refuse_from`, and a human decides what lies between."""

    name: ProfileName
    allow_up_to: int
    refuse_from: int
    allowed_tool_scopes: tuple[str, ...]

    def __post_init__(self) -> None:
        code = "AGENTS-E-POLICY-INVALID"
        names = get_args(ProfileName)
        _require(self.name in names, code, f"a profile is called one of {names}")
        limits = (self.allow_up_to, self.refuse_from)
        _require(all(type(limit) is int for limit in limits), code, "allow_up_to and refuse_from are whole numbers")
        _require(0 <= self.allow_up_to < self.refuse_from <= 6, code, "0 <= allow_up_to < refuse_from <= 6 must hold")
        _require(not isinstance(self.allowed_tool_scopes, str), code, "allowed_tool_scopes is a list of texts")
        object.__setattr__(self, "allowed_tool_scopes", tuple(self.allowed_tool_scopes))
        for scope in self.allowed_tool_scopes:
            kind, colon, name = str(scope).partition(":")
            is_scope = is_text(scope) and bool(colon and name) and kind in (*get_args(ToolKind), "*")
            _require(is_scope, code, f"a scope is kind:name with kind mcp, function or skill, not {scope!r}")


PROFILES: Mapping[str, PolicyProfile] = {
    "strict": PolicyProfile("strict", 1, 5, ("function:*", "skill:*")),
    "balanced": PolicyProfile("balanced", 2, 5, ("function:*", "skill:*", "mcp:*")),
    "fast": PolicyProfile("fast", 3, 5, ("function:*", "skill:*", "mcp:*")),
}


def profile_name(name: str) -> ProfileName:
    """Raises `AGENTS-E-POLICY-INVALID` for a name that no profile has."""
    _require(name in PROFILES, "AGENTS-E-POLICY-INVALID", f"no policy profile is called {name!r}")
    return cast(ProfileName, name)


# ---------------------------------------------------------------------------------------------------------------------
# Approvals


@dataclass(frozen=True, slots=True)
class HumanApprovalRequest:
    """What a person is asked; `arguments` are masked."""

    approval_id: str
    run_id: str
    required_action: str
    prompt: str
    status: ApprovalStatus
    tool_call_id: str = ""
    tool_name: str = ""
    tool_kind: ToolKind = "function"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    risk_level: int = 1
    reason: str = ""
    comment: str | None = None
    created_at: str = ""
    decided_at: str | None = None


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """Shown once, never stored; whoever holds it can resume the run within its time."""

    token: str = field(repr=False)
    run_id: str
    expires_at: str
    status: TokenStatus = "active"


# ---------------------------------------------------------------------------------------------------------------------
# Results


@dataclass(frozen=True, slots=True)
class ToolCallResult:
    """A call that ran; `args` and `output` without secrets."""

    tool_call_id: str
    tool_name: str
    tool_kind: ToolKind
    args: Mapping[str, Any]
    output: Any = None


@dataclass(frozen=True, slots=True)
class UsageStats:
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0


@dataclass(frozen=True, slots=True)
class RunEvent:
    """`type` is text_delta, tool_call, tool_output, interrupted or final_output; the last two carry the `result`."""

    type: str
    delta: str | None = None
    tool_call: ToolCallResult | None = None
    final_output: Any = None
    result: Any = None


@dataclass(frozen=True, slots=True)
class ExecutionLog:
    """One audit record; the last three fields are set when it is appended and link it to the record before."""

    run_id: str
    tool_call_id: str
    event: str
    decision: str
    timestamp: str
    tool_name: str = ""
    tool_kind: str = ""
    risk_level: int | None = None
    reason: str = ""
    arguments: Mapping[str, Any] = field(default_factory=dict)
    comment: str = ""
    sequence: int = 0
    previous_hash: str = ""
    hash: str = ""


@dataclass(frozen=True, slots=True)
class LogVerification:
    """`first_bad` is the record where the log stops being what was written; `uncovered` says what was not checked."""

    is_intact: bool
    records: int
    first_bad: int | None = None
    problem: str = ""
    uncovered: str = ""


# ---------------------------------------------------------------------------------------------------------------------
# Skills and providers


@dataclass(frozen=True, slots=True)
class SkillExample:
    title: str
    input: Mapping[str, Any]
    expected_output: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SkillDescriptor:
    skill_id: str
    mode: SkillMode
    input_schema: Mapping[str, Any]
    output_schema: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class SkillManifest:
    skill_id: str
    overview: str
    usage_examples: tuple[SkillExample, ...] = ()
    constraints: tuple[str, ...] = ()
    input_schema: Mapping[str, Any] = field(default_factory=dict)
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class SkillSummary:
    skill_id: str
    name: str
    overview: str
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Skill:
    descriptor: SkillDescriptor
    manifest: SkillManifest
    source_path: str


class ProviderHandle(Protocol):
    """A provider of models, ready to be asked for one."""

    @property
    def name(self) -> ProviderName: ...

    def get_model(self, model: str | None = None) -> Any: ...

    async def list_models(self) -> Any: ...
