"""What a person is asked, the token that their decision gives, and what they allow from now on."""

from dataclasses import dataclass, field
from typing import Literal

from openai_responses_mcp.agents.calls import ToolKind
from openai_responses_mcp.agents.json_values import JsonObject

HumanDecision = Literal["approve", "deny"]
# Nobody decided in time: expired. Whoever asked does not need it any more: withdrawn.
Undecided = Literal["expired", "withdrawn"]
ApprovalStatus = Literal["pending", "approved", "denied", "expired", "withdrawn"]
TokenStatus = Literal["active", "used", "expired"]


@dataclass(frozen=True, slots=True)
class HumanApprovalRequest:
    """What a person is asked: what runs, why somebody has to decide on it, and what the tool is for.

    `arguments` are those that will be used, with a label for each real secret. `definition_change` tells what has
    changed since the tool was last approved. Once it is decided, `tell_model` says that the run goes on after a denial,
    and `changed_arguments` are those that a human gave instead of the model's.
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


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """Shown once, never stored; whoever holds it can resume the run within its time."""

    token: str = field(repr=False)
    run_id: str
    expires_at: str
    status: TokenStatus = "active"


@dataclass(frozen=True, slots=True)
class StandingApproval:
    """A tool with this definition is allowed from now on, for any arguments unless `arguments_hash` says which.

    Without `session_id` it holds in every session, without `expires_at` until it is revoked. `made_from` is the
    approval that it was made from, and `made_in` the run of that approval.
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

    @property
    def holds(self) -> str:
        """For how long, in words."""
        if self.expires_at is not None:
            return f"until {self.expires_at[:19]}Z"
        return "always" if self.session_id is None else "for its session"

    def __str__(self) -> str:
        arguments = "with the same arguments" if self.arguments_hash else "with any arguments"
        return f"a standing approval allows it {self.holds}, {arguments} ({self.standing_id})"
