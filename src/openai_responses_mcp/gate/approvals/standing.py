"""Standing approvals: what a person allows from now on, instead of call by call.

One is made from a request that a person approves, and holds for that tool with that definition: for a time, for one
session, or until it is revoked; for any arguments, or for exactly those of the request. A session is the run for agents
and the guard process for the guard; in both it is the `run_id` of their requests and of their records in the log.

A standing approval is one voice in the gate (`gate.safety_gate`): it answers for a human where the profile's limits, a
rule's `ask` or the tool's own demand asks. It never answers for a changed definition, a scope, the judge, the caller or
a budget. When the tool's definition changes, it ends.

`SafetyGate` asks `find` about each call. The use of a standing approval is written with the next record of its session,
so that session has to use the same `AuditLog`.
"""

import uuid
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.approvals.controller import ApprovalController
from openai_responses_mcp.gate.approvals.decisions import LONGEST_LIFETIME_SECONDS, check_comment
from openai_responses_mcp.gate.approvals.models import (
    ApprovalRecord,
    ApprovalStore,
    ResumeToken,
    StandingApproval,
    StandingStore,
)
from openai_responses_mcp.gate.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.gate.calls import GUARD_RUN, PlannedCall, ToolDescription, arguments_hash
from openai_responses_mcp.gate.clock import Clock, later, timestamp
from openai_responses_mcp.gate.errors import (
    LONGEST_ID,
    AgentsError,
    ReadOnlyStore,
    is_text,
    require,
)
from openai_responses_mcp.gate.reasons import Voice, reason_in_record
from openai_responses_mcp.gate.secrets.masking import Masking

EXPIRED = "expired"
REVOKED = "revoked"
SESSION_OVER = "session over"
CHANGED = "definition changed"

_ANSWERABLE: frozenset[Voice] = frozenset({"profile", "rule", "tool"})


@dataclass(frozen=True, slots=True)
class StandingTerms:
    """Exactly one of the first three is given. `reads`: for every tool of the guarded server that claimed
    to read only when the request was made, too."""

    for_seconds: int | None = None
    for_session: bool = False
    always: bool = False
    same_arguments: bool = False
    reads: bool = False

    def __post_init__(self) -> None:
        code, seconds = "AGENTS-E-APPROVAL-INVALID", self.for_seconds
        said = [seconds is not None, self.for_session is True, self.always is True]
        require(said.count(True) == 1, code, "A standing approval holds for a time, for the session or always: say one")
        is_time = seconds is None or (type(seconds) is int and 1 <= seconds <= LONGEST_LIFETIME_SECONDS)
        require(is_time, code, f"for_seconds is a whole number from 1 to {LONGEST_LIFETIME_SECONDS}")
        require(not (self.reads and self.same_arguments), code, "Say one: the same arguments, or every tool that reads")


class StandingApprovals:
    """`moments` knows the latest moment that any process has seen: a clock that is set back revives nothing.

    With a `caller`, only those for this person or for everybody count, and new ones are for this person alone.
    """

    def __init__(
        self,
        store: StandingStore,
        moments: ApprovalStore,
        audit: AuditLog,
        clock: Clock,
        masking: Masking,
        caller: str = "",
    ) -> None:
        self._store = store
        self._moments = moments
        self._audit = audit
        self._clock = clock
        self._masking = masking
        self._caller = caller

    async def allow(self, record: ApprovalRecord, terms: StandingTerms, comment: str | None = None) -> StandingApproval:
        """Allow from now on what the request asks for. Raises `StoreUnavailable` unless it is in the log.

        Does not decide the request itself; `approve_from_now_on` does both.
        """
        now = await self._now()
        made = StandingApproval(
            standing_id=f"sta_{uuid.uuid4().hex}",
            tool_kind=record.request.tool_kind,
            tool_name=record.request.tool_name,
            definition_hash=record.definition_hash,
            origin=record.origin,
            arguments_hash=record.arguments_hash if terms.same_arguments else None,
            session_id=record.request.run_id if terms.for_session else None,
            expires_at=None if terms.for_seconds is None else later(now, terms.for_seconds),
            created_at=now,
            made_from=record.request.approval_id,
            made_in=record.request.run_id,
            comment=self._masking.text(comment or ""),
            caller=self._caller or None,
        )
        # The record first: a crash may leave a record without its standing approval, but never the reverse.
        await self._audit.record_for_sure(_entry(made, "standing_made", "allow"))
        await self._store.create(made)
        return made

    async def find(self, call: PlannedCall, session_id: str, *, attempt: int = 1) -> StandingApproval | None:
        """One that allows this call in this session. Its use is recorded; those of another definition end.

        `attempt` counts how often the same call is decided. Raises `StoreUnavailable`.
        """
        here = await self._of_tool(call.tool, session_id)
        if not here:
            return None
        found, now = None, await self._now()
        for one in here:
            if _is_expired(one, now):
                await self._end(one, EXPIRED, now)
            elif one.definition_hash != call.tool.definition_hash:
                await self._end(one, CHANGED, now)
            elif found is None and one.arguments_hash in (None, arguments_hash(call.args)):
                found = one
        if found is not None:
            use = AuditEntry(
                run_id=session_id,
                tool_call_id=call.call_id,
                event="standing_used" if attempt == 1 else f"standing_used:{attempt}",
                decision="allow",
                tool_name=call.tool.name,
                tool_kind=call.tool.kind,
                reason=_in_words(found),
                reasons=(found.reason,),
                arguments=self._masking.shown(call.args, call.tool.parameters),
                comment=found.comment,
                who=self._caller,
            )
            self._audit.note(use)
        return found

    async def end_others(self, tool: ToolDescription, session_id: str) -> None:
        """The tool's definition has changed: what was allowed for another one ends."""
        for one in await self._of_tool(tool, session_id):
            if one.definition_hash != tool.definition_hash:
                await self._end(one, CHANGED, await self._now())

    async def _of_tool(self, tool: ToolDescription, session_id: str) -> "Sequence[StandingApproval]":
        """Those for this tool in this session, whatever its definition."""
        return [
            one
            for one in await self._store.list_standing(tool.kind, tool.name)
            if one.session_id in (None, session_id)
            and one.origin in (None, tool.origin)
            and one.caller in (None, self._caller)
        ]

    async def list(self) -> Sequence[StandingApproval]:
        """Those that hold now, oldest first."""
        now = timestamp(self._clock.now())
        with suppress(ReadOnlyStore):
            now = await self._now()
            for one in await self._store.list_standing():
                if _is_expired(one, now):
                    await self._end(one, EXPIRED, now)
        return [one for one in await self._store.list_standing() if not _is_expired(one, now)]

    async def revoke(self, standing_id: str, comment: str | None = None, *, who: str = "") -> StandingApproval:
        """End it now. `AGENTS-E-APPROVAL-NOT-FOUND` where there is none, `-INVALID` where it has ended already."""
        check_comment(comment)
        is_id = is_text(standing_id) and len(standing_id) <= LONGEST_ID
        known = await self._store.get(standing_id) if is_id else None
        if known is None:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", Sentence("There is no such standing approval"))
        if not await self._end(known, REVOKED, await self._now(), comment or "", who):
            raise AgentsError("AGENTS-E-APPROVAL-INVALID", Sentence("This standing approval has ended already"))
        return known

    async def end_session(self, session_id: str) -> None:
        """The session is over: what was allowed for it ends."""
        for one in await self._store.list_standing():
            if one.session_id == session_id:
                await self._end(one, SESSION_OVER, await self._now())

    async def _end(self, standing: StandingApproval, reason: str, now: str, comment: str = "", who: str = "") -> bool:
        """Ended first, recorded second: a failing log must not keep it in force. False if another process was first."""
        if not await self._store.end(standing.standing_id, now, reason):
            return False
        await self._audit.record(replace(_entry(standing, "standing_ended", reason, comment), who=who))
        return True

    async def _now(self) -> str:
        return await self._moments.latest_moment(timestamp(self._clock.now()))


async def approve_from_now_on(
    approvals: ApprovalController,
    standing: StandingApprovals,
    approval_id: str,
    *,
    terms: StandingTerms,
    comment: str | None = None,
    who: str = "",
) -> tuple[ResumeToken, list[StandingApproval], int]:
    """Approve the request, and allow from now on what it asks for. A request that is decided already allows nothing.

    The first standing approval is for the tool of the request, any others are for tools that read. The number says how
    many other calls that waited at guards are released by this.
    """
    record = await approvals.get(approval_id)
    if terms.reads and not record.reading:
        message = Sentence("The tool of this call does not claim to read only, so there is nothing to allow with it")
        raise AgentsError("AGENTS-E-APPROVAL-INVALID", message)
    token = await approvals.submit_decision(approval_id, "approve", comment, who=who)
    others = {name: pin for name, pin in record.reading.items() if terms.reads and name != record.request.tool_name}
    of_others = [
        replace(record, request=replace(record.request, tool_name=name), definition_hash=pin)
        for name, pin in others.items()
    ]
    made = [await standing.allow(one, terms, comment) for one in (record, *of_others)]
    return token, made, await _release(approvals, made)


async def _release(approvals: ApprovalController, made: Sequence[StandingApproval]) -> int:
    """Approve waiting requests of guards that are covered. A run of an agent would have to be resumed.

    Requests that are decided elsewhere first, or that the store does not take, are skipped.
    """
    released, names = 0, {one.tool_name for one in made}
    try:
        waiting = await approvals.pending()
    except AgentsError:
        return 0
    for request in waiting:
        if request.tool_name not in names or not request.run_id.startswith(GUARD_RUN):
            continue
        with suppress(AgentsError):
            record = await approvals.get(request.approval_id)
            if covering := next((one.standing_id for one in made if _covers(one, record)), None):
                comment = f"covered by the standing approval {covering}"
                await approvals.submit_decision(request.approval_id, "approve", comment)
                released += (await approvals.get(request.approval_id)).request.status == "approved"
    return released


def _covers(standing: StandingApproval, record: ApprovalRecord) -> bool:
    """Whether the gate would let the call through now: a standing approval answers these voices alone."""
    request = record.request
    asking = [reason.voice for reason in request.reasons if reason.says == "needs_human"]
    return (
        bool(asking)
        and _ANSWERABLE.issuperset(asking)
        and (standing.tool_kind, standing.tool_name) == (request.tool_kind, request.tool_name)
        and standing.definition_hash == record.definition_hash
        and standing.session_id in (None, request.run_id)
        and standing.origin in (None, record.origin)
        and standing.caller in (None, request.caller)
        and standing.arguments_hash in (None, record.arguments_hash)
    )


def _is_expired(standing: StandingApproval, now: str) -> bool:
    return standing.expires_at is not None and standing.expires_at <= now


def _in_words(standing: StandingApproval) -> str:
    return reason_in_record([standing.reason], "allow")


def _entry(standing: StandingApproval, event: str, decision: str, comment: str = "") -> AuditEntry:
    """About the standing approval itself, in the run that it was made in."""
    return AuditEntry(
        run_id=standing.made_in,
        tool_call_id=standing.standing_id,
        event=event,
        decision=decision,
        tool_name=standing.tool_name,
        tool_kind=standing.tool_kind,
        reason=_in_words(standing),
        reasons=(standing.reason,),
        arguments={"approval_id": standing.made_from, "session_id": standing.session_id},
        comment=comment or standing.comment,
    )
