"""What a person is asked, and the token that their decision gives."""

from dataclasses import dataclass, field
from typing import Literal

from openai_responses_mcp.agents.calls import ToolKind
from openai_responses_mcp.agents.json_values import JsonObject

HumanDecision = Literal["approve", "deny"]
ApprovalStatus = Literal["pending", "approved", "denied"]
TokenStatus = Literal["active", "used", "expired"]


@dataclass(frozen=True, slots=True)
class HumanApprovalRequest:
    """What a person is asked: what runs, why somebody has to decide on it, and what the tool is for.

    `arguments` are those that will be used, with each real secret as what it is. `definition_change` tells what is not
    as it was when the tool was last approved.
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


@dataclass(frozen=True, slots=True)
class ResumeToken:
    """Shown once, never stored; whoever holds it can resume the run within its time."""

    token: str = field(repr=False)
    run_id: str
    expires_at: str
    status: TokenStatus = "active"
