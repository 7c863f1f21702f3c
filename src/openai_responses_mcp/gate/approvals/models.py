"""What a person is asked, the token that their decision gives, what they allow from now on, and where that is kept."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Literal, Protocol

from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.calls import ToolKind
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.reasons import Reason

HumanDecision = Literal["approve", "deny"]
# No decision in time: expired. The call is not waiting any more: withdrawn. A program answered in a person's place: unasked.
Undecided = Literal["expired", "withdrawn", "unasked"]
KEPT_SECONDS = 600
USED_WITHIN_SECONDS = 5
"""A guard that runs uses a yes within a second. One that is still unused after this time was killed."""

# Kept: approved after the caller had given up. It counts for `KEPT_SECONDS`, for the identical call.
ApprovalStatus = Literal["pending", "approved", "denied", "expired", "withdrawn", "unasked", "kept"]
TokenStatus = Literal["active", "used", "expired"]


@dataclass(frozen=True, slots=True)
class HumanApprovalRequest:
    """What a person is asked: what runs, why a person has to decide, and what the tool is for.

    `reason` says why in words, and `reasons` as data. `arguments` are those that will be used, with a label for each
    real secret. `definition_change` says what has changed since the tool was last approved. `caller` is who asked, where
    a guard serves several people.

    Once it is decided, `tell_model` says that the run goes on after a denial, and `changed_arguments` are those that a
    human gave instead of the model's.
    """

    approval_id: str
    run_id: str
    required_action: str
    prompt: str
    status: ApprovalStatus
    tool_call_id: str = ""
    tool_name: str = ""
    tool_kind: ToolKind = "function"
    arguments: JsonObject = field(default_factory=dict)
    risk_level: int = 1
    reason: str = ""
    comment: str | None = None
    created_at: str = ""
    decided_at: str | None = None
    tool_description: str = ""
    definition_change: str = ""
    tell_model: bool = False
    changed_arguments: JsonObject | None = None
    reasons: tuple[Reason, ...] = ()
    caller: str = ""


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """Shown once, never stored. It resumes the run within its time."""

    token: str = field(repr=False)
    run_id: str
    expires_at: str
    status: TokenStatus = "active"


@dataclass(frozen=True, slots=True)
class StandingApproval:
    """A tool with this definition is allowed from now on, for any arguments unless `arguments_hash` says which.

    Without `session_id` it holds in every session, without `expires_at` until it is revoked. `made_from` is the
    approval that it was made from, and `made_in` the run of that approval. `origin` is the fingerprint of the guarded
    server's command; one of an earlier version has none. With a `caller` it holds for that person's calls alone.
    """

    standing_id: str
    tool_kind: ToolKind
    tool_name: str
    definition_hash: str
    created_at: str
    made_from: str
    made_in: str
    arguments_hash: str | None = None
    session_id: str | None = None
    expires_at: str | None = None
    comment: str = ""
    ended_at: str | None = None
    ended_because: str = ""
    origin: str | None = None
    caller: str | None = None

    @property
    def reason(self) -> Reason:
        return Reason(
            "standing",
            "allow",
            {
                "standing_id": self.standing_id,
                "until": self.expires_at,
                "for_session": self.session_id is not None,
                "same_arguments": self.arguments_hash is not None,
            },
        )


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """An approval as it is stored: what a person sees, what the token is bound to, and never the token itself.

    All calls of one pause share `pause_id`. A record whose token expired is `replaced_by` a new one. `parameters` is the
    tool's own schema, and None where the arguments cannot be changed. `waits_until` is when an undecided request expires.
    `reading` are the tools of the guarded server that claimed to read only when this was asked, with the hashes of their
    definitions; it is empty if the tool of this call does not claim it.
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
    parameters: JsonObject | None = None
    origin: str | None = None
    waits_until: str | None = None
    reading: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ApprovalChoice:
    """A person's decision on its way into the store."""

    approval_id: str
    status: ApprovalStatus
    comment: str
    decided_at: str
    token_hash: str
    expires_at: str
    binding: str = ""
    tell_model: bool = False
    changed_arguments: JsonObject | None = None


class ApprovalStore(Protocol):
    """Any text can be stored."""

    async def latest_moment(self, now: str) -> str:
        """The latest moment that any process has seen, this one included; it is remembered to the second.

        What has expired anywhere stays expired, also when a clock is set back.
        """
        ...

    async def create(self, records: Sequence[ApprovalRecord]) -> None:
        """All or none. The moment of their creation counts as seen."""
        ...

    async def get(self, approval_id: str) -> ApprovalRecord | None: ...

    async def ids_beginning(self, start: str) -> list[str]:
        """At most three ids that begin like this, of any status."""
        ...

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

    async def list_newest_pause(self, run_id: str) -> list[ApprovalRecord]:
        """The records that count of the run's latest pause; empty if it never paused."""
        ...

    async def decide(self, choice: ApprovalChoice) -> bool:
        """One atomic step from pending to decided; False if another process was first.

        To `kept` it is a step from withdrawn, or from approved and never used.
        """
        ...

    async def find_kept(self, like: ApprovalRecord, now: str) -> ApprovalRecord | None:
        """An unused yes to the same caller, tool, definition, command and arguments, not older than `KEPT_SECONDS`.

        It is kept, or it was approved as it is, with a guard waiting for it that has not used it in time.
        """
        ...

    async def consume(self, pause_id: str, token_hash: str | None, now: str) -> bool:
        """Use up the decisions of a whole pause in one atomic statement; True for exactly one caller, ever.

        False when the token belongs to another pause, or any request of the pause is undecided, approved too long ago
        or used. Without a token the decisions are enough: any process that can write to the store can decide.
        """
        ...

    async def replace(self, approval_id: str, record: ApprovalRecord) -> bool:
        """Put a new request in the place of an expired one, once."""
        ...

    async def respond(self, approval_id: str, human_response: str) -> None:
        """Keep what the person said when the run was resumed."""
        ...


class DecisionBook(Protocol):
    """Keeps a person's decision and its record in the log together. No decision counts without its record."""

    async def decide(self, choice: ApprovalChoice, record: ExecutionLog) -> bool:
        """What `ApprovalStore.decide` does, and the record of it; False and no record if another process was first."""
        ...


Rung = Callable[[float], Awaitable[None]]


class DecisionNews(Protocol):
    """Wakes code that waits for a decision as soon as it is made anywhere, if the store can."""

    def about(self, approval_id: str) -> AbstractContextManager[Rung]:
        """Call what it yields to wait for so many seconds, or until there may be a decision.

        News that came since then is not lost. Waiting code reads the store in any case.
        """
        ...


class StandingStore(Protocol):
    """Any text can be stored."""

    async def create(self, standing: StandingApproval) -> None: ...

    async def get(self, standing_id: str) -> StandingApproval | None:
        """Also one that has ended."""
        ...

    async def list_standing(
        self, tool_kind: ToolKind | None = None, tool_name: str | None = None
    ) -> list[StandingApproval]:
        """Those in force, oldest first; of one tool where it is named."""
        ...

    async def end(self, standing_id: str, ended_at: str, because: str) -> bool:
        """One atomic step; False if there is none, or another process was first."""
        ...
