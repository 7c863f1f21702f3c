"""What the guarded half needs from outside: stores, a judge, a clock, and the engine that runs agents.

Stores raise `StoreUnavailable` and nothing else of their own. `tests/agents/contracts` says what each must do.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Protocol

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.models import (
    ApprovalStatus,
    ExecutionLog,
    GateDecision,
    HumanApprovalRequest,
    PolicyProfile,
    RunEvent,
    ToolCallRequest,
    ToolCallResult,
    ToolDescription,
    UsageStats,
)


class Clock(Protocol):
    def now(self) -> datetime:
        """This moment, with its time zone."""
        ...


class Judge(Protocol):
    """Anything with this method can be given as `safety_agent`."""

    async def evaluate(self, agent: Any, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        """May raise anything: whatever is no valid verdict counts as a refusal."""
        ...


class PolicyStore(Protocol):
    async def get_profile(self, name: str) -> PolicyProfile:
        """The profile as it was last set, else as it is built in. Unknown: `AGENTS-E-POLICY-INVALID`."""
        ...

    async def set_profile(self, profile: PolicyProfile) -> None: ...


# ---------------------------------------------------------------------------------------------------------------------
# Approvals


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """An approval at rest: what a person sees, what the token is bound to, and never the token itself.

    All calls of one pause share `pause_id`. A record whose token expired is `replaced_by` a new one.
    """

    request: HumanApprovalRequest
    pause_id: str
    arguments_hash: str
    definition_hash: str
    state_hash: str
    attempt: int = 1
    token_hash: str | None = None
    binding: str | None = None
    expires_at: str | None = None
    used_at: str | None = None
    replaced_by: str | None = None
    human_response: str | None = None


@dataclass(frozen=True, slots=True)
class ApprovalChoice:
    """A person's decision on its way into the store."""

    approval_id: str
    status: ApprovalStatus
    comment: str
    decided_at: str
    token_hash: str
    binding: str
    expires_at: str


class ApprovalStore(Protocol):
    async def create(self, records: Sequence[ApprovalRecord]) -> None:
        """All or none."""
        ...

    async def get(self, approval_id: str) -> ApprovalRecord | None: ...

    async def find_by_token(self, token_hash: str) -> ApprovalRecord | None: ...

    async def list_pending(self, run_id: str | None = None) -> list[ApprovalRecord]:
        """Undecided and not replaced, oldest first."""
        ...

    async def list_expired(self, now: str, run_id: str | None = None) -> list[ApprovalRecord]:
        """Approved, never used, not replaced, and too old to be used any more, oldest first."""
        ...

    async def list_of_pause(self, pause_id: str) -> list[ApprovalRecord]:
        """The records that count: those not replaced by a newer one, oldest first."""
        ...

    async def decide(self, choice: ApprovalChoice) -> bool:
        """One atomic step from pending to decided; False when somebody else was first."""
        ...

    async def consume(self, pause_id: str, token_hash: str, now: str) -> bool:
        """Use up the tokens of a whole pause in one atomic statement; True for exactly one caller, ever.

        False when the token is none of this pause, or any of the pause is undecided, approved too long ago or used.
        """
        ...

    async def replace(self, approval_id: str, record: ApprovalRecord) -> bool:
        """Put a new request in the place of an expired one, once."""
        ...

    async def respond(self, approval_id: str, human_response: str) -> None:
        """Keep what the person said when the run was resumed."""
        ...


# ---------------------------------------------------------------------------------------------------------------------
# Runs and their log


@dataclass(frozen=True, slots=True)
class RunRecord:
    """`status` is running, paused, resuming, done, denied or failed; `payload` is JSON and holds a paused run."""

    run_id: str
    status: str
    agent_name: str
    created_at: str
    updated_at: str
    payload: str = ""


class RunStateStore(Protocol):
    async def save(self, record: RunRecord) -> None:
        """Create or replace."""
        ...

    async def get(self, run_id: str) -> RunRecord | None: ...


class ExecutionLogStore(Protocol):
    async def append(self, log: ExecutionLog) -> ExecutionLog:
        """Link the record to the last one and keep it for good; on return it survives a crash.

        A second record with the same run, call and event: `DuplicateRecord`.
        """
        ...

    async def query(self, run_id: str | None = None, since: str | None = None) -> list[ExecutionLog]:
        """In the order they were appended; `since` is inclusive."""
        ...


class AuditHead(Protocol):
    """Where the log ends, kept outside the log."""

    def announce(self, record: ExecutionLog) -> None:
        """The record is about to be appended."""
        ...

    def confirm(self, record: ExecutionLog) -> None:
        """The record is in the log."""
        ...

    def problem_with(self, logs: Sequence[ExecutionLog]) -> tuple[int, str] | None:
        """The first record at which the log is not the one that this head was kept for."""
        ...


# ---------------------------------------------------------------------------------------------------------------------
# The engine


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """A call that a model or a caller wants made, before anything of its turn has run."""

    call_id: str
    tool: ToolDescription
    args: Mapping[str, Any]


class TurnGuard(Protocol):
    """What the engine must ask before and tell after every execution."""

    @property
    def refusal(self) -> AgentsError | None:
        """The first refusal of the run. An engine that swallowed it must raise it as soon as it can."""
        ...

    def refuse(self, error: AgentsError) -> AgentsError:
        """Note a refusal and give it back to be raised."""
        ...

    async def judge(self, agent: Any, calls: Sequence[PlannedCall], catalog: Sequence[ToolDescription]) -> None:
        """Decide a whole turn. Raises `AgentsError` when any of it is refused; may ask for a pause."""
        ...

    def is_waiting(self, call_id: str) -> bool:
        """Whether the call may not run yet; true as well for a call that nobody judged."""
        ...

    async def starting(self, call_id: str, tool: ToolDescription, args: Mapping[str, Any]) -> None:
        """Raises unless exactly this call was let through, once."""
        ...

    async def finished(self, call_id: str, output: Any, error: str | None = None) -> None: ...

    def shown(self, call: PlannedCall, output: Any = None) -> ToolCallResult:
        """The call as it may be shown."""
        ...

    def result_of(self, call_id: str) -> ToolCallResult | None:
        """What came of a call that has run, as it may be shown."""
        ...

    def suspend(self, call_id: str) -> None:
        """The call started and waits for a pause inside it; it will be started again on resume."""
        ...

    async def offer_hosted(self, tool: ToolDescription) -> None:
        """A tool on the provider's side: in scope, or refused before the model is asked."""
        ...


@dataclass(frozen=True, slots=True)
class EngineOptions:
    """`sdk` is handed to the SDK as it is."""

    requested_calls: tuple[PlannedCall, ...] = ()
    max_turns: int | None = None
    sdk: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EngineOutcome:
    """How a run went on or ended. `saved` is set when it paused and holds all that a resume needs, as JSON."""

    result: Any
    output_text: str = ""
    messages: tuple[Any, ...] = ()
    usage: UsageStats = field(default_factory=UsageStats)
    last_agent: Any = None
    saved: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class EngineEvent:
    """One step of a streamed run: the SDK's event, what callers see of it, or the outcome at the end."""

    raw: Any = None
    event: RunEvent | None = None
    outcome: EngineOutcome | None = None


class AgentEngine(Protocol):
    """Runs agents so that nothing executes without its guard. Raises `AgentsError`."""

    async def describe(self, agent: Any, guard: TurnGuard) -> list[ToolDescription]:
        """The agent's own tools and handoffs. `AGENTS-E-AGENT-CAPABILITY-RESOLVE` where they cannot be told."""
        ...

    async def run(self, agent: Any, input: Any, guard: TurnGuard, options: EngineOptions) -> EngineOutcome: ...

    def stream(
        self, agent: Any, input: Any, guard: TurnGuard, options: EngineOptions
    ) -> AsyncGenerator[EngineEvent, None]: ...

    async def restore(
        self, agent: Any, saved: Mapping[str, Any], guard: TurnGuard, options: EngineOptions
    ) -> "PausedRun":
        """Read a saved run back, without running anything. Unreadable: `AGENTS-E-RUNNER`."""
        ...


class PausedRun(Protocol):
    @property
    def calls(self) -> Mapping[str, PlannedCall]:
        """The calls of the pause as they stand now, by their id."""
        ...

    async def resume(self, human_response: str | None = None) -> EngineOutcome:
        """Run on, with every call of the pause let through."""
        ...
