"""The desk: what an approver can see and do, as JSON.

It has no state: others may decide at the same time, so everything is read from the store.
"""

import uuid
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta

from openai_responses_mcp.desk.page.messages import (
    Choice,
    View,
    call_view,
    calls_in,
    error_view,
    request_view,
    standing_view,
    verification_view,
)
from openai_responses_mcp.domain.texts import revealed
from openai_responses_mcp.gate.approvals.controller import ApprovalController
from openai_responses_mcp.gate.approvals.models import ApprovalStore, HumanApprovalRequest
from openai_responses_mcp.gate.approvals.standing import StandingApprovals, approve_from_now_on
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.calls import GUARD_RUN
from openai_responses_mcp.gate.clock import (
    BETWEEN_RENEWALS_SECONDS,
    Clock,
    Presence,
    PresenceStore,
    present,
    timestamp,
)
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.stores import RunStateStore

CALLS_AT_ONCE = 100
BETWEEN_RENEWALS = timedelta(seconds=30)


@dataclass(frozen=True, slots=True)
class DeskParts:
    """What a person decides with, at the desk and in a terminal."""

    approvals: ApprovalController
    requests: ApprovalStore
    """The store of approvals. It is read directly, because frequent looks must not write anything."""
    audit: AuditLog
    standing: StandingApprovals
    presence: PresenceStore


class Desk:
    def __init__(self, parts: DeskParts, runs: RunStateStore, clock: Clock) -> None:
        self._parts = parts
        self._runs = runs
        self._clock = clock
        self._renewed_at: datetime | None = None
        self._lease: Presence | None = None

    # -----------------------------------------------------------------------------------------------------------------
    # Requests

    async def waiting(self) -> View:
        """The ids of waiting requests, oldest first; if there are none, the guards that run."""
        now = self._clock.now()
        if self._renewed_at is None or not timedelta() <= now - self._renewed_at < BETWEEN_RENEWALS:
            # Opens a new request for each approval that has expired.
            await self._parts.approvals.pending()
            self._renewed_at = now
        await self._stay(now)
        waiting = [record.request.approval_id for record in await self._parts.requests.list_pending()]
        if waiting:
            return {"waiting": waiting}
        guards = {revealed(one.name) for one in await present(self._parts.presence, now, "guard")}
        return {"waiting": [], "guards": sorted(guards)}

    async def _stay(self, now: datetime) -> None:
        """While a page polls, somebody is at the desk."""
        moment = timestamp(now)
        if self._lease is None:
            self._lease = Presence(f"desk_{uuid.uuid4().hex}", "desk", "page", moment, moment)
        elif (now - datetime.fromisoformat(self._lease.renewed_at)).total_seconds() < BETWEEN_RENEWALS_SECONDS:
            return
        self._lease = replace(self._lease, renewed_at=moment)
        await self._parts.presence.renew(self._lease)

    async def leave(self) -> None:
        if self._lease is not None:
            await self._parts.presence.leave(self._lease.presence_id)

    async def requests(self, approval_ids: list[str]) -> View:
        """Those that exist, also decided ones."""
        found = []
        for approval_id in approval_ids:
            try:
                found.append(await self._request(approval_id))
            except AgentsError as exc:
                if exc.code != "AGENTS-E-APPROVAL-NOT-FOUND":
                    raise
        return {"requests": found}

    async def _request(self, approval_id: str) -> View:
        record = await self._parts.approvals.get(approval_id)
        run = await self._runs.get(record.request.run_id)
        return request_view(record, (run.agent_name if run else "") or _guard_of(record.request))

    async def decide(self, choices: list[Choice], who: str = "") -> View:
        """One by one: a request that cannot be decided any more does not stop the others. `who` is recorded."""
        decided = [{"approval_id": choice.approval_id, **await self._decide(choice, who)} for choice in choices]
        return {"decided": decided}

    async def _decide(self, choice: Choice, who: str) -> View:
        try:
            before = await self._parts.approvals.get(choice.approval_id)
            if choice.from_now_on is None:
                token = await self._parts.approvals.submit_decision(
                    choice.approval_id,
                    choice.decision,
                    choice.comment,
                    tell_model=choice.tell_model,
                    arguments=choice.arguments,
                    who=who,
                )
            else:
                token, *_ = await approve_from_now_on(
                    self._parts.approvals,
                    self._parts.standing,
                    choice.approval_id,
                    terms=choice.from_now_on,
                    comment=choice.comment,
                    who=who,
                )
            after = await self._parts.approvals.get(choice.approval_id)
        except AgentsError as exc:
            return {"error": error_view(exc)}
        # The guard continues by itself: there is nothing to resume. Any other token has to be passed on by the approver.
        is_of_guard = token.run_id.startswith(GUARD_RUN)
        decided: View = {"decision": choice.decision, "token": None if is_of_guard else asdict(token)}
        if after.request.status == "kept":
            decided["kept_because_gone"] = "client" if before.request.status == "withdrawn" else "guard"
        return decided

    # -----------------------------------------------------------------------------------------------------------------
    # Standing approvals

    async def standing(self) -> View:
        """Those that hold now, oldest first."""
        return {"standing": [standing_view(one) for one in await self._parts.standing.list()]}

    async def revoke(self, standing_id: str, who: str = "") -> View:
        return {"revoked": standing_view(await self._parts.standing.revoke(standing_id, who=who))}

    # -----------------------------------------------------------------------------------------------------------------
    # The log

    async def log(self, before: int | None = None) -> View:
        """Newest first; with `before`, those older than that call."""
        calls = calls_in(await self._parts.audit.query())
        older = [call for call in calls if before is None or call.number < before]
        shown = older[: -CALLS_AT_ONCE - 1 : -1]
        return {
            "calls": [call_view(call) for call in shown],
            "total": len(calls),
            "has_older": len(older) > len(shown),
        }

    async def verify(self) -> View:
        return verification_view(await self._parts.audit.verify())


def _guard_of(request: HumanApprovalRequest) -> str:
    """The name of the guard that asks, if it is not an agent."""
    if not request.run_id.startswith(GUARD_RUN):
        return ""
    guard = f"guard of {request.tool_name.partition('/')[0]}"
    return f"{request.caller}, {guard}" if request.caller else guard
