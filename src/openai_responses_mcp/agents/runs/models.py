"""The options of a run, its events and its result."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, get_args

from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.calls import ToolCallResult
from openai_responses_mcp.gate.errors import LONGEST_TEXT, is_short_text, is_text, require
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue
from openai_responses_mcp.gate.policy.rules import ProfileName, profile_name, stricter
from openai_responses_mcp.gate.stores import RunStatus


@dataclass(frozen=True, slots=True)
class ResumeOptions:
    """`human_response` is stored with the approval and passed to the model."""

    token: str = field(repr=False)
    human_response: str | None = None

    def __post_init__(self) -> None:
        require(is_text(self.token), "AGENTS-E-RESUME-TOKEN", "resume.token must be the token of an approval")
        is_short = self.human_response is None or is_short_text(self.human_response)
        require(is_short, "AGENTS-E-APPROVAL-INVALID", f"human_response is a text of up to {LONGEST_TEXT} characters")


@dataclass(frozen=True, slots=True)
class RequestedToolCall:
    """A call requested by the caller instead of the model. It passes the same gate."""

    tool_name: str
    args: JsonObject = field(default_factory=dict)

    def __post_init__(self) -> None:
        require(is_text(self.tool_name), "AGENTS-E-RUNNER-CONFIG", "tool_calls need a tool_name")
        require(isinstance(self.args, Mapping), "AGENTS-E-RUNNER-CONFIG", "the args of tool_calls must be an object")


@dataclass(frozen=True, slots=True)
class Extensions:
    """Everything this library adds to a run.

    Each time `max_tool_calls` calls or `max_tokens` tokens are used up, a human is asked whether to continue.
    """

    policy_profile: ProfileName | None = None
    require_human_approval: bool = False
    resume: ResumeOptions | None = None
    tool_calls: tuple[RequestedToolCall, ...] = ()
    max_turns: int | None = None
    max_tool_calls: int | None = None
    max_tokens: int | None = None

    def __post_init__(self) -> None:
        if self.policy_profile is not None:
            known = get_args(ProfileName)
            require(self.policy_profile in known, "AGENTS-E-POLICY-INVALID", f"policy_profile is one of {known}")
        is_flag = isinstance(self.require_human_approval, bool)
        require(is_flag, "AGENTS-E-RUNNER-CONFIG", "require_human_approval is true or false")
        for name in ("max_turns", "max_tool_calls", "max_tokens"):
            most = getattr(self, name)
            is_count = most is None or (type(most) is int and most >= 1)
            require(is_count, "AGENTS-E-RUNNER-CONFIG", f"{name} is a whole number from 1 up")
        object.__setattr__(self, "tool_calls", tuple(self.tool_calls))
        are_calls = all(isinstance(call, RequestedToolCall) for call in self.tool_calls)
        require(are_calls, "AGENTS-E-RUNNER-CONFIG", "tool_calls holds RequestedToolCall objects")

    def joined_by(self, agents_own: "Extensions") -> "Extensions":
        """The run's extensions, with the agent's own where the run has none.

        For the profile, human approval and the budgets, the stricter of the two wins.
        """
        profile = self.policy_profile or agents_own.policy_profile
        return Extensions(
            policy_profile=None if profile is None else profile_name(stricter(profile, agents_own.policy_profile)),
            require_human_approval=self.require_human_approval or agents_own.require_human_approval,
            resume=self.resume or agents_own.resume,
            tool_calls=self.tool_calls or agents_own.tool_calls,
            max_turns=self.max_turns or agents_own.max_turns,
            max_tool_calls=_smaller(self.max_tool_calls, agents_own.max_tool_calls),
            max_tokens=_smaller(self.max_tokens, agents_own.max_tokens),
        )


def _smaller(most: int | None, other: int | None) -> int | None:
    return min((one for one in (most, other) if one is not None), default=None)


@dataclass(frozen=True, slots=True)
class RunOptions:
    """`sdk` holds keyword arguments of the SDK's own `Runner.run`: context, hooks, run_config, session and so on.

    With `stream`, `run` also requests a stream from the model; it still returns the result.
    """

    extensions: Extensions | None = None
    stream: bool = False
    sdk: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        are_extensions = self.extensions is None or isinstance(self.extensions, Extensions)
        require(are_extensions, "AGENTS-E-RUNNER-CONFIG", "extensions must be an Extensions object")
        require(isinstance(self.stream, bool), "AGENTS-E-RUNNER-CONFIG", "stream is true or false")
        require(isinstance(self.sdk, Mapping), "AGENTS-E-RUNNER-CONFIG", "sdk is a mapping of the SDK's own options")


@dataclass(frozen=True, slots=True)
class RunSummary:
    """A run in the store."""

    run_id: str
    status: RunStatus
    agent_name: str
    created_at: str
    updated_at: str


@dataclass(frozen=True, slots=True)
class UsageStats:
    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    total_tokens: int = 0


class RunResult:
    """The result of a run. Attributes that are not set here are those of the SDK's result.

    Called with the arguments of the SDK's own class, it returns an object of that class.
    """

    made_by_hand: ClassVar[type | None] = None

    def __new__(cls, *args: Any, **fields: Any) -> Any:
        if cls.made_by_hand is not None and (args or "input" in fields):
            return cls.made_by_hand(*args, **fields)
        return super().__new__(cls)

    def __init__(
        self,
        *,
        run_id: str,
        output_text: str = "",
        messages: Sequence[JsonValue] = (),
        tool_calls: Sequence[ToolCallResult] = (),
        usage: UsageStats | None = None,
        interruptions: Sequence[HumanApprovalRequest] = (),
        extensions: Mapping[str, object] | None = None,
        last_agent: Any = None,
        sdk_result: object = None,
    ) -> None:
        self.run_id = run_id
        self.output_text = output_text
        self.messages = list(messages)
        self.tool_calls = list(tool_calls)
        self.usage = usage or UsageStats()
        self.interruptions = list(interruptions)
        self.extensions = dict(extensions or {})
        self.last_agent = last_agent
        self.sdk_result = sdk_result

    def __getattr__(self, name: str) -> Any:
        # Called only for names that are not set above.
        if name.startswith("__") or "sdk_result" not in self.__dict__ or self.sdk_result is None:
            raise AttributeError(f"RunResult has no {name!r}")
        return getattr(self.sdk_result, name)

    def __repr__(self) -> str:
        waiting = f", waiting for {len(self.interruptions)}" if self.interruptions else ""
        calls = "1 call" if len(self.tool_calls) == 1 else f"{len(self.tool_calls)} calls"
        return f"<RunResult {self.run_id}: {calls}{waiting}>"


@dataclass(frozen=True, slots=True)
class RunEvent:
    """`type` is text_delta, tool_call, tool_output, interrupted or final_output; the last two carry the `result`."""

    type: str
    delta: str | None = None
    tool_call: ToolCallResult | None = None
    final_output: JsonValue = None
    result: RunResult | None = None
