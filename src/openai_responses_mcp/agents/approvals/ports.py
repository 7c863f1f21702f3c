"""Where approvals are kept, and decisions with their records. Stores raise `StoreUnavailable` and nothing else."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from openai_responses_mcp.agents.approvals.models import ApprovalStatus, HumanApprovalRequest, StandingApproval
from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.calls import ToolKind
from openai_responses_mcp.agents.json_values import JsonObject


@dataclass(frozen=True, slots=True)
class ApprovalRecord:
    """An approval as it is stored: what a person sees, what the token is bound to, and never the token itself.

    All calls of one pause share `pause_id`. A record whose token expired is `replaced_by` a new one. `parameters` is the
    tool's own schema, and None where the arguments cannot be changed.
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
        """One atomic step from pending to decided; False when somebody else was first."""
        ...

    async def consume(self, pause_id: str, token_hash: str | None, now: str) -> bool:
        """Use up the decisions of a whole pause in one atomic statement; True for exactly one caller, ever.

        False when the token belongs to another pause, or any request of the pause is undecided, approved too long ago
        or used. Without a token the decisions themselves are enough: whoever can write to the store can decide anyway.
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
        """What `ApprovalStore.decide` does, and the record of it; False and no record when somebody else was first."""
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
        """Those that nobody has ended, oldest first; of one tool where it is named."""
        ...

    async def end(self, standing_id: str, ended_at: str, because: str) -> bool:
        """One atomic step; False when there is none, or somebody else was first."""
        ...
