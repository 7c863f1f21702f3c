"""Telling the user's code that a request waits. If that code fails, the pause still holds."""

import inspect
import logging
from collections.abc import Awaitable, Callable

from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest

OnRequested = Callable[[HumanApprovalRequest], Awaitable[None] | None]

_logger = logging.getLogger("openai_responses_mcp.agents")


async def tell(on_requested: OnRequested | None, request: HumanApprovalRequest) -> None:
    if on_requested is None:
        return
    try:
        told = on_requested(request)
        if inspect.isawaitable(told):
            await told
    except Exception as exc:  # foreign code
        _logger.warning("on_approval_requested failed with %s for %s", type(exc).__name__, request.approval_id)
