"""Approvals: a person is asked, decides once, and gets a token that resumes the run once.

The token is 256 random bits and is shown once. The store keeps its hash, and a seal over the run, the call, its
arguments, the tool's definition, the saved state and the decision. Only the token can make that seal, so a change
of any of these in the store breaks it. A pause is all calls of a run that wait together; its tokens are
used up together, in one statement of the store. An approval that expires opens a new request for the same call; a
denial stays.
"""

import inspect
import logging
import secrets
import uuid
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from hmac import compare_digest
from typing import get_args

from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.approvals.decisions import (
    Pause,
    bad_token,
    check_comment,
    checked_changes,
    entry_about,
    seal,
    token_hash,
)
from openai_responses_mcp.gate.approvals.models import (
    KEPT_SECONDS,
    ApprovalChoice,
    ApprovalRecord,
    ApprovalStatus,
    ApprovalStore,
    DecisionBook,
    HumanApprovalRequest,
    HumanDecision,
    ResumeToken,
    Undecided,
)
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.audit.records import ExecutionLog, ExecutionLogStore
from openai_responses_mcp.gate.calls import GUARD_RUN, GateDecision, PlannedCall, arguments_hash
from openai_responses_mcp.gate.clock import Clock, PresenceStore, is_guard_gone, later, timestamp
from openai_responses_mcp.gate.errors import (
    LONGEST_ID,
    LONGEST_TEXT,
    AgentsError,
    DuplicateRecord,
    ReadOnlyStore,
    is_text,
    require,
)
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.reasons import is_new
from openai_responses_mcp.gate.schema.checking import SchemaChecker
from openai_responses_mcp.gate.secrets.masking import Masking

OnRequested = Callable[[HumanApprovalRequest], Awaitable[None] | None]

_logger = logging.getLogger("openai_responses_mcp.agents")


class RecordedFirst(DecisionBook):
    def __init__(self, approvals: ApprovalStore, logs: ExecutionLogStore) -> None:
        self._approvals = approvals
        self._logs = logs

    async def decide(self, choice: ApprovalChoice, record: ExecutionLog) -> bool:
        try:
            await self._logs.append(record)
        except DuplicateRecord:
            # A crash after the record left the decision out; the same decision may be tried again.
            wanted = (record.tool_call_id, record.event, record.decision)
            logs = await self._logs.query(record.run_id)
            if wanted not in [(log.tool_call_id, log.event, log.decision) for log in logs]:
                return False
        return await self._approvals.decide(choice)


_STATUS: Mapping[HumanDecision, ApprovalStatus] = {"approve": "approved", "deny": "denied"}


class ApprovalController:
    def __init__(
        self,
        store: ApprovalStore,
        decisions: DecisionBook,
        audit: AuditLog,
        clock: Clock,
        masking: Masking,
        token_ttl_seconds: int,
        on_requested: OnRequested | None = None,
        schemas: SchemaChecker | None = None,
        presence: PresenceStore | None = None,
    ) -> None:
        self._store = store
        self._decisions = decisions
        self._audit = audit
        self._clock = clock
        self._masking = masking
        self._ttl_seconds = token_ttl_seconds
        self._on_requested = on_requested
        self._schemas = schemas or SchemaChecker()
        self._presence = presence

    # -----------------------------------------------------------------------------------------------------------------
    # Asking

    async def create_approval_request(
        self,
        run_id: str,
        gate_decision: GateDecision,
        prompt: str | None = None,
        *,
        call: PlannedCall,
        pause: Pause | None = None,
        attempt: int = 1,
        wait_seconds: float | None = None,
        caller: str = "",
        reading: Mapping[str, str] | None = None,
    ) -> HumanApprovalRequest:
        """Ask about one call, in words of the caller's own or in ours.

        A request of a `pause` is stored when the pause is opened; any other is a pause by itself and stored at once.
        `attempt` counts how often a person is asked about this call. After `wait_seconds` without a decision the caller
        lets the request expire. `caller` is who asked for the call. `reading`: see `ApprovalRecord`.
        """
        opened = pause or Pause()
        request = self._request(run_id, gate_decision, prompt, call, caller)
        waits_until = None if wait_seconds is None else later(request.created_at, wait_seconds)
        opened.records.append(self._record(request, call, opened, attempt, waits_until, reading or {}))
        if pause is None:
            await self.open_pause(opened)
        return request

    def _record(
        self,
        request: HumanApprovalRequest,
        call: PlannedCall,
        pause: Pause,
        attempt: int,
        waits_until: str | None,
        reading: Mapping[str, str],
    ) -> ApprovalRecord:
        return ApprovalRecord(
            request=request,
            pause_id=pause.pause_id,
            arguments_hash=arguments_hash(call.args),
            definition_hash=call.tool.definition_hash,
            origin=call.tool.origin,
            state_hash=pause.state_hash,
            attempt=attempt,
            parameters=self._masking.shown(call.tool.parameters, {}) if call.tool.parameters else None,
            waits_until=waits_until,
            reading=reading,
        )

    async def open_pause(self, pause: Pause) -> list[HumanApprovalRequest]:
        """Store the requests of the pause, all or none."""
        await self._store.create(pause.records)
        await self._announce(pause.records)
        return [record.request for record in pause.records]

    async def _announce(self, records: Sequence[ApprovalRecord], comment: str = "") -> None:
        """Every request comes through here once it is stored."""
        for record in records:
            _logger.debug("approval %s is waited for, run %s", record.request.approval_id, record.request.run_id)
        await self._audit.record(
            *(
                entry_about(record, "approval_requested", "pending", comment, record.request.caller)
                for record in records
            )
        )
        for record in records:
            try:
                noticed = self._on_requested(record.request) if self._on_requested else None
                if inspect.isawaitable(noticed):
                    await noticed
            except Exception as exc:  # foreign code
                _logger.warning(
                    "on_approval_requested failed with %s for %s", type(exc).__name__, record.request.approval_id
                )

    def _request(
        self, run_id: str, decision: GateDecision, prompt: str | None, call: PlannedCall, caller: str
    ) -> HumanApprovalRequest:
        if decision.decision != "needs_human":
            raise AgentsError("AGENTS-E-APPROVAL-INVALID", "Only a call that needs a human can be approved")
        if not 1 <= len(run_id) <= LONGEST_ID:
            raise AgentsError("AGENTS-E-APPROVAL-INVALID", f"run_id has 1 to {LONGEST_ID} characters")
        reason = self._masking.shown_text(decision.reason)
        asked = _prompt(call, reason) if prompt is None else self._masking.shown_text(prompt)
        if not 1 <= len(asked) <= LONGEST_TEXT:
            raise AgentsError("AGENTS-E-APPROVAL-INVALID", f"prompt has 1 to {LONGEST_TEXT} characters")
        return HumanApprovalRequest(
            approval_id=f"apr_{uuid.uuid4().hex}",
            run_id=run_id,
            required_action=f"Approve or deny {call.tool.kind} {call.tool.name}",
            prompt=asked,
            status="pending",
            tool_call_id=call.call_id,
            tool_name=call.tool.name,
            tool_kind=call.tool.kind,
            arguments=self._masking.shown(call.args, call.tool.parameters),
            risk_level=decision.risk_level,
            reason=reason,
            reasons=tuple(one.masked(self._masking.shown_text) for one in decision.reasons),
            created_at=timestamp(self._clock.now()),
            tool_description=self._masking.shown_text(call.tool.description),
            definition_change=self._masking.shown_text(call.tool.definition_change),
            caller=self._masking.shown_text(caller),
        )

    async def pending(self, run_id: str | None = None) -> list[HumanApprovalRequest]:
        """What has to be decided, with a new request for each approval that expired before it was used.

        A guard waits for a limited time. If it was killed, its request is left over after that and is closed here. The
        requests in a read-only store are listed as they are.
        """
        with suppress(ReadOnlyStore):
            now = await self._now()
            for record in await self._store.list_expired(now, run_id):
                if record.waits_until is None:
                    await self._reopen(record, now)
            for record in await self._store.list_pending(run_id):
                if record.waits_until is not None and record.waits_until <= now:
                    await self.close_undecided(record.request.approval_id, "expired", "nobody decided in time")
        return [record.request for record in await self._store.list_pending(run_id)]

    async def pending_of_pause(self, pause_id: str) -> list[HumanApprovalRequest]:
        """What still has to be decided, with a new request for each decision that expired in the meantime."""
        now = await self._now()
        for record in await self._store.list_of_pause(pause_id):
            if record.used_at is None and record.request.status == "approved" and _is_expired(record, now):
                await self._reopen(record, now)
        records = await self._store.list_of_pause(pause_id)
        return [record.request for record in records if record.request.status == "pending"]

    async def of_pause(self, pause_id: str) -> list[ApprovalRecord]:
        return await self._store.list_of_pause(pause_id)

    async def of_newest_pause(self, run_id: str) -> list[ApprovalRecord]:
        return await self._store.list_newest_pause(run_id)

    # -----------------------------------------------------------------------------------------------------------------
    # Deciding

    async def get(self, approval_id: str) -> ApprovalRecord:
        if not is_text(approval_id) or len(approval_id) > LONGEST_ID:
            raise AgentsError(
                "AGENTS-E-APPROVAL-NOT-FOUND", Sentence("approval_id has 1 to {most} characters", most=LONGEST_ID)
            )
        record = await self._store.get(approval_id)
        if record is None:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", Sentence("There is no such approval"))
        return record

    async def submit_decision(
        self,
        approval_id: str,
        decision: HumanDecision,
        comment: str | None = None,
        *,
        tell_model: bool = False,
        arguments: JsonObject | None = None,
        who: str = "",
    ) -> ResumeToken:
        """With `tell_model` the model gets the denial, and the run continues. `arguments` replace those of the call, and are
        judged again when the run continues. `who` is the decider's name for the log, if known. A yes that the guard does not
        wait for any more is kept."""
        code = "AGENTS-E-APPROVAL-INVALID"
        require(decision in get_args(HumanDecision), code, "decision is approve or deny")
        check_comment(comment)
        require(isinstance(tell_model, bool), code, "tell_model is true or false")
        require(not tell_model or decision == "deny", code, "tell_model is for denials only")
        require(arguments is None or decision == "approve", code, "Only an approval takes new arguments")
        record = await self.get(approval_id)
        is_of_guard = record.request.run_id.startswith(GUARD_RUN)
        if record.request.status == "withdrawn" and decision == "approve" and is_of_guard:
            message = Sentence("The client has given up on this call, so its arguments cannot be changed")
            require(arguments is None, code, message)
            return await self.keep(record, comment or "", who)
        is_gone = decision == "approve" and await self.is_guard_gone(record.request)
        message = Sentence("The guard that asked is gone, so the arguments of this call cannot be changed")
        require(arguments is None or not is_gone, code, message)
        changed = None if arguments is None else await checked_changes(record, arguments, self._masking, self._schemas)
        token, now, status = secrets.token_urlsafe(32), await self._now(), _STATUS[decision]
        expires_at = later(now, self._ttl_seconds)
        decided = replace(record.request, tell_model=tell_model, changed_arguments=changed)
        choice = ApprovalChoice(
            approval_id=approval_id,
            status=status,
            comment=self._masking.text(comment or ""),
            decided_at=now,
            token_hash=token_hash(token),
            expires_at=expires_at,
            binding=seal(token, replace(record, request=decided), status, expires_at),
            tell_model=tell_model,
            changed_arguments=changed,
        )
        decided_with = await self._token_for(choice, token, record, "approval", who)
        if is_gone:
            # A guard that is back by now, after its machine slept, may have used the yes.
            with suppress(AgentsError):
                return await self.keep(record, comment or "", who)
        return decided_with

    async def is_guard_gone(self, request: HumanApprovalRequest) -> bool:
        """Whether the guard that asked has ended without withdrawing the request, for example because it was killed."""
        if self._presence is None or not request.run_id.startswith(GUARD_RUN):
            return False
        return await is_guard_gone(self._presence, self._clock.now(), request.run_id)

    async def keep(self, record: ApprovalRecord, comment: str, who: str = "") -> ResumeToken:
        """A yes to a call that does not wait any more. It counts for the identical call, for ten minutes."""
        token, now = secrets.token_urlsafe(32), await self._now()
        choice = ApprovalChoice(
            approval_id=record.request.approval_id,
            status="kept",
            comment=self._masking.text(comment),
            decided_at=now,
            token_hash=token_hash(token),
            expires_at=later(now, KEPT_SECONDS),
        )
        return await self._token_for(choice, token, record, "approval_kept", who)

    async def _token_for(
        self, choice: ApprovalChoice, token: str, record: ApprovalRecord, event: str, who: str
    ) -> ResumeToken:
        if not await self._put(choice, record, event, who):
            raise AgentsError("AGENTS-E-APPROVAL-INVALID", Sentence("This approval has been decided already"))
        return ResumeToken(token, record.request.run_id, choice.expires_at)

    async def _put(self, choice: ApprovalChoice, record: ApprovalRecord, event: str, who: str = "") -> bool:
        """Store the decision together with its record. False if the request was decided or replaced before."""
        entry = entry_about(record, event, choice.status, choice.comment, who, choice.changed_arguments)
        prepared = await self._audit.prepared(entry)
        return record.replaced_by is None and await self._decisions.decide(choice, prepared)

    async def take_kept(
        self, run_id: str, decision: GateDecision, call: PlannedCall, attempt: int = 1, caller: str = ""
    ) -> ApprovalRecord | None:
        """Use up the yes that is kept for the identical call. It answers only the reasons it was given for."""
        request = self._request(run_id, decision, None, call, caller)
        asked = self._record(request, call, Pause(), attempt, None, {})
        found = await self._store.find_kept(asked, await self._now())
        if found is None or is_new(request.reasons, found.request.reasons):
            return None
        if not await self._store.consume(found.pause_id, None, await self._now()):
            return None
        said = f"approved before, after the caller had given up ({found.request.approval_id})"
        await self._audit.record_for_sure(entry_about(asked, "approval", "approved", said, request.caller))
        return found

    async def close_undecided(self, approval_id: str, status: Undecided, comment: str) -> bool:
        """Close a request that needs no decision any more. It stays visible. False if it was decided in the meantime."""
        record, now = await self.get(approval_id), await self._now()
        choice = ApprovalChoice(
            approval_id=approval_id,
            status=status,
            comment=self._masking.text(comment),
            decided_at=now,
            # Every decision has a token. This one is never shown.
            token_hash=token_hash(secrets.token_urlsafe(32)),
            expires_at=now,
        )
        return await self._put(choice, record, "approval")

    # -----------------------------------------------------------------------------------------------------------------
    # Resuming

    async def check_token(self, token: str, run_id: str | None = None) -> ApprovalRecord:
        """The approval that an unused, unexpired token of this run belongs to; consumes nothing."""
        record = await self._store.find_by_token(token_hash(token)) if is_text(token) else None
        if record is None or (run_id is not None and record.request.run_id != run_id):
            raise bad_token("The token is not valid for this run", "unknown")
        if record.used_at is not None:
            raise bad_token("The token has been used", "used")
        if record.replaced_by is not None:
            raise bad_token("The token has expired", "expired", approval_id=record.replaced_by)
        now = await self._now()
        if _is_expired(record, now):
            # A denial stays one; only an approval is asked for again.
            renewed = None if record.request.status == "denied" else await self._reopen(record, now)
            raise bad_token("The token has expired", "expired", approval_id=renewed)
        if not compare_digest(record.binding or "", seal(token, record, record.request.status, record.expires_at)):
            raise bad_token("What was approved has been changed since", "changed")
        await self._check_all_decided(record.pause_id)
        return record

    async def check_decisions(self, run_id: str) -> ApprovalRecord:
        """The same without a token: an approval of the pause that the run waits in, with all of it decided and unused."""
        records = await self._store.list_newest_pause(run_id) if is_text(run_id) else []
        if not records:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", "There is no such run, or it never waited for a human")
        if any(record.used_at is not None for record in records):
            raise bad_token("The decision has been used", "used")
        now = await self._now()
        for record in records:
            if record.request.status == "approved" and _is_expired(record, now):
                raise bad_token("The decision has expired", "expired", approval_id=await self._reopen(record, now))
        await self._check_all_decided(records[0].pause_id)
        return records[0]

    async def consume(self, token: str | None, record: ApprovalRecord) -> None:
        """Use up the decisions of the pause. Raises if another caller was first."""
        hashed = None if token is None else token_hash(token)
        if not await self._store.consume(record.pause_id, hashed, await self._now()):
            raise bad_token("The token has been used", "used")

    async def respond(self, record: ApprovalRecord, human_response: str) -> None:
        await self._store.respond(record.request.approval_id, self._masking.text(human_response))

    # -----------------------------------------------------------------------------------------------------------------

    async def _now(self) -> str:
        """What has expired stays expired, also when a clock is set back, here or elsewhere."""
        return await self._store.latest_moment(timestamp(self._clock.now()))

    async def _check_all_decided(self, pause_id: str) -> None:
        waiting = await self.pending_of_pause(pause_id)
        if waiting:
            raise AgentsError(
                "AGENTS-E-APPROVAL-INVALID",
                "Not all calls of this turn are decided yet",
                details={"approval_ids": [request.approval_id for request in waiting]},
            )

    async def _reopen(self, record: ApprovalRecord, now: str) -> str | None:
        """A new request for the same call; the old one stays expired. None if another process did it first.

        Made from the record, not with `create_approval_request`: the process that notices the expiry may know only
        the hash of the call's arguments.
        """
        renewed = replace(
            record.request,
            approval_id=f"apr_{uuid.uuid4().hex}",
            status="pending",
            comment=None,
            decided_at=None,
            created_at=now,
            changed_arguments=None,
        )
        opened = replace(
            record,
            request=renewed,
            attempt=record.attempt + 1,
            token_hash=None,
            binding=None,
            expires_at=None,
            human_response=None,
        )
        if not await self._store.replace(record.request.approval_id, opened):
            return None
        await self._announce([opened], "the token expired")
        return renewed.approval_id


def _is_expired(record: ApprovalRecord, now: str) -> bool:
    return record.expires_at is not None and record.expires_at <= now


def _prompt(call: PlannedCall, reason: str) -> str:
    asked = f"May {call.tool.kind} {call.tool.name} run? {reason}".strip()
    return asked if len(asked) <= LONGEST_TEXT else f"{asked[: LONGEST_TEXT - 1]}…"
