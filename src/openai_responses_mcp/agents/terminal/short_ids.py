"""Approvals by the beginning of their id: `7f3a` is enough where nothing else that waits begins so."""

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.errors import AgentsError

_PREFIX = "apr_"
_FEWEST_LETTERS = 4


async def full_id(approvals: ApprovalController, written: str) -> str:
    """Looks among what waits. Anything else is given back as it was written, and so is what is too short to be sure."""
    beginning = written.removeprefix(_PREFIX)
    if len(beginning) < _FEWEST_LETTERS:
        return written
    waiting = [request.approval_id for request in await approvals.pending()]
    found = [one for one in waiting if one.startswith(f"{_PREFIX}{beginning}")]
    if len(found) > 1:
        raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", f"{len(found)} requests begin so: write more of the id")
    return found[0] if found else written
