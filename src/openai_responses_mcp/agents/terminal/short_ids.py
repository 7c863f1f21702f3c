"""Approvals by the beginning of their id: `7f3a` is enough if no other waiting request begins with it."""

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.errors import AgentsError

_PREFIX = "apr_"
_FEWEST_LETTERS = 4


async def full_id(approvals: ApprovalController, written: str) -> str:
    """Looks among waiting requests. An id that is too short, or not among them, is given back as it was written."""
    beginning = written.removeprefix(_PREFIX)
    if len(beginning) < _FEWEST_LETTERS:
        return written
    waiting = [request.approval_id for request in await approvals.pending()]
    found = [one for one in waiting if one.startswith(f"{_PREFIX}{beginning}")]
    if len(found) > 1:
        raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", f"{len(found)} requests begin like that: write more of the id")
    return found[0] if found else written
