"""The id of a request as people type it: its beginning is enough, as long as only one request that waits begins so."""

from collections.abc import Iterable

from openai_responses_mcp.agents.approvals.controller import ApprovalController

SHORTEST = 4
_PREFIX = "apr_"


async def whole_id(approvals: ApprovalController, said: str) -> str:
    return completed(said, [request.approval_id for request in await approvals.pending()])


def completed(said: str, waiting: Iterable[str]) -> str:
    """What was said, unless exactly one begins so: the store then says that there is no such request."""
    beginning = said.removeprefix(_PREFIX)
    if len(beginning) < SHORTEST:
        return said
    found = [one for one in waiting if one.removeprefix(_PREFIX).startswith(beginning)]
    return found[0] if len(found) == 1 else said
