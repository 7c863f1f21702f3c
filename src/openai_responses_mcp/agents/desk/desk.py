"""The desk: what a person who decides can see and do. It does not know how that is shown.

Nothing is kept here. Everything is read from the store, where workers ask and others may decide at the same time.
"""

from datetime import datetime, timedelta

from openai_responses_mcp.agents.approvals.controller import ApprovalController
from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest, ResumeToken
from openai_responses_mcp.agents.approvals.ports import ApprovalStore
from openai_responses_mcp.agents.approvals.standing import StandingApprovals, approve_from_now_on
from openai_responses_mcp.agents.audit.log import AuditLog
from openai_responses_mcp.agents.audit.story import unfinished
from openai_responses_mcp.agents.calls import GUARD_RUN
from openai_responses_mcp.agents.clock import Clock
from openai_responses_mcp.agents.desk.choices import Choice
from openai_responses_mcp.agents.desk.views import (
    View,
    error_view,
    record_view,
    request_view,
    standing_view,
    token_view,
    verification_view,
)
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.runs.ports import RunStateStore

RECORDS_AT_ONCE = 100
BETWEEN_RENEWALS = timedelta(seconds=30)


class Desk:
    """`requests` is the store of approvals. It is read directly, because frequent looks must not write anything."""

    def __init__(
        self,
        approvals: ApprovalController,
        requests: ApprovalStore,
        standing: StandingApprovals,
        runs: RunStateStore,
        audit: AuditLog,
        clock: Clock,
    ) -> None:
        self._approvals = approvals
        self._requests = requests
        self._clock = clock
        self._renewed_at: datetime | None = None
        self._standing = standing
        self._runs = runs
        self._audit = audit

    # -----------------------------------------------------------------------------------------------------------------
    # Requests

    async def waiting(self) -> View:
        """Which requests wait, oldest first. What each is about does not change while it waits: `request` tells it."""
        now = self._clock.now()
        if self._renewed_at is None or not timedelta() <= now - self._renewed_at < BETWEEN_RENEWALS:
            # Opens a new request for each approval that has expired meanwhile.
            await self._approvals.pending()
            self._renewed_at = now
        return {"waiting": [record.request.approval_id for record in await self._requests.list_pending()]}

    async def request(self, approval_id: str) -> View:
        record = await self._approvals.get(approval_id)
        run = await self._runs.get(record.request.run_id)
        return request_view(record, (run.agent_name if run else "") or _guard_of(record.request))

    async def decide(self, choices: list[Choice]) -> View:
        """Each by itself: one that cannot be decided any more does not hold up the others."""
        return {"decided": [{"approval_id": choice.approval_id, **await self._decide(choice)} for choice in choices]}

    async def _decide(self, choice: Choice) -> View:
        try:
            token = await self._submit(choice)
        except AgentsError as exc:
            return {"error": error_view(exc)}
        # The guard goes on by itself: there is nothing to resume.
        is_of_guard = token.run_id.startswith(GUARD_RUN)
        return {"decision": choice.decision, "token": None if is_of_guard else token_view(token)}

    async def _submit(self, choice: Choice) -> ResumeToken:
        approval_id, comment, terms = choice.approval_id, choice.comment, choice.from_now_on
        if terms is None:
            return await self._approvals.submit_decision(
                approval_id, choice.decision, comment, tell_model=choice.tell_model, arguments=choice.arguments
            )
        return (await approve_from_now_on(self._approvals, self._standing, approval_id, terms=terms, comment=comment))[
            0
        ]

    # -----------------------------------------------------------------------------------------------------------------
    # Standing approvals

    async def standing(self) -> View:
        """Those that hold now, oldest first."""
        return {"standing": [standing_view(one) for one in await self._standing.list()]}

    async def revoke(self, standing_id: str) -> View:
        return {"revoked": standing_view(await self._standing.revoke(standing_id))}

    # -----------------------------------------------------------------------------------------------------------------
    # The log

    async def log(self, before: int | None = None) -> View:
        """The newest records first, or those that come before one of them."""
        logs = await self._audit.query()
        unknown = {log.sequence for log in unfinished(logs)}
        older = [log for log in logs if before is None or log.sequence < before]
        shown = older[: -RECORDS_AT_ONCE - 1 : -1]
        return {
            "records": [record_view(log, is_unknown=log.sequence in unknown) for log in shown],
            "total": len(logs),
            "has_older": len(older) > len(shown),
        }

    async def verify(self) -> View:
        return verification_view(await self._audit.verify())


def _guard_of(request: HumanApprovalRequest) -> str:
    """Who asks where no agent does."""
    return f"guard of {request.tool_name.partition('/')[0]}" if request.run_id.startswith(GUARD_RUN) else ""
