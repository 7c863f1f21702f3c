"""A pause: all calls of a run that wait for a human together, and are decided and used up together."""

import uuid
from dataclasses import dataclass, field

from openai_responses_mcp.agents.approvals.ports import ApprovalRecord


def _new_id() -> str:
    return f"pause_{uuid.uuid4().hex}"


@dataclass(slots=True)
class Pause:
    """`state_hash` is of the run as it was saved. The records are stored when the pause is opened, all or none."""

    state_hash: str = ""
    pause_id: str = field(default_factory=_new_id)
    records: list[ApprovalRecord] = field(default_factory=list)
