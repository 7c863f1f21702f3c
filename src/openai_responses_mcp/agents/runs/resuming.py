"""Resuming a run, in this process or in another one.

The steps: check the token or the decisions, read the run back, compare the approved calls with the saved ones, mark the
decisions as used, run. Before the decisions are marked, nothing is stored but the human's text for the model. If a
human denied a call and wants the model to know, or changed its arguments, the turn is decided again first. That may
pause the run once more.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace

from openai_responses_mcp.agents.runs.book import PausedRuns, Run, RunBook, permit_of
from openai_responses_mcp.agents.runs.models import RunEvent
from openai_responses_mcp.agents.runs.ports import EngineEvent, EngineOutcome, PausedRun, Resumption
from openai_responses_mcp.agents.runs.running import FinishRun
from openai_responses_mcp.gate.approvals.controller import ApprovalController
from openai_responses_mcp.gate.approvals.models import ApprovalRecord, HumanApprovalRequest, HumanDecision
from openai_responses_mcp.gate.audit.log import AuditLog
from openai_responses_mcp.gate.audit.verifying import unfinished
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import digest

_UNSAID = "unsaid"  # input that the model has not seen yet, kept beside the engine's state


@dataclass(frozen=True, slots=True)
class CodeDecision:
    """A decision that code made on a call. Without a message, the SDK words the refusal."""

    is_approved: bool
    message: str | None = None


class ResumeRun:
    def __init__(
        self, paused: PausedRuns, approvals: ApprovalController, audit: AuditLog, book: RunBook, finish: FinishRun
    ) -> None:
        self._paused = paused
        self._approvals = approvals
        self._audit = audit
        self._book = book
        self._finish = finish

    async def stream(self, wanted: Resumption) -> AsyncGenerator[tuple[object, RunEvent], None]:
        run, paused = await self._claim(wanted)
        steps = self._steps(run, paused, wanted)
        async with aclosing(self._finish.stream(run, steps)) as events:
            async for event in events:
                yield event

    async def _steps(self, run: Run, paused: PausedRun, wanted: Resumption) -> AsyncGenerator[EngineEvent, None]:
        # The human's text for the model. Text from an earlier resume that paused again comes first.
        said = "\n".join(filter(None, [run.engine_state.get(_UNSAID), wanted.human_response])) or None
        await run.ledger.take_up(paused.turns)
        if run.ledger.to_approve:
            saved = {**run.engine_state, _UNSAID: said}
            yield EngineEvent(outcome=EngineOutcome(None, last_agent=run.agent, saved=saved))
            return
        async with aclosing(paused.stream(replace(wanted.said, text=said))) as steps:
            async for step in steps:
                yield step

    async def decide(
        self,
        wanted: Resumption,
        approval_id: str,
        decision: HumanDecision,
        comment: str | None,
    ) -> tuple[Resumption, list[HumanApprovalRequest]]:
        """Decide one call of the run. Returns `wanted` with its token, and the requests of the turn still undecided."""
        approval = await self._approvals.get(approval_id)
        if approval.request.run_id != wanted.run_id:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", "This run has no such approval")
        if approval.request.status == "pending" and decision == "approve":
            await self._check_readable(approval, wanted)
        token = await self._approvals.submit_decision(approval_id, decision, comment)
        waiting = await self._approvals.pending_of_pause(approval.pause_id)
        return replace(wanted, token=token.token), waiting

    async def decide_in_code(
        self, wanted: Resumption, decisions: Mapping[str, CodeDecision]
    ) -> list[HumanApprovalRequest]:
        """Decide calls of the newest pause, by their id. Returns those that are still undecided.

        Code cannot approve a call whose caller demands a human, or whose definition has changed.
        """
        pause = await self._approvals.of_newest_pause(wanted.run_id or "")
        for record in pause:
            request, decision = record.request, decisions.get(record.request.tool_call_id)
            if decision is None or request.status != "pending":
                continue
            if decision.is_approved:
                await self._check_for_code(record, wanted)
            await self._approvals.submit_decision(
                request.approval_id,
                "approve" if decision.is_approved else "deny",
                "by code" if decision.message is None else f"by code: {decision.message}",
                tell_model=not decision.is_approved,
            )
        return await self._approvals.pending_of_pause(pause[0].pause_id) if pause else []

    async def _check_for_code(self, record: ApprovalRecord, wanted: Resumption) -> None:
        run, paused = await self._paused.read(record, wanted)
        called = record.request.tool_call_id
        turns = [turn for turn in paused.turns if called in [call.call_id for call in turn.calls]]
        demands = [run.ledger.context_for(turn.agent).require_human_approval for turn in turns]
        if record.request.definition_change or run.ledger.context.require_human_approval or any(demands):
            why = "its definition has changed" if record.request.definition_change else "the caller demands a human"
            message = f"Code may not approve {record.request.tool_name}: {why}"
            raise AgentsError("AGENTS-E-APPROVAL-INVALID", message, details={"approval_id": record.request.approval_id})

    async def _check_readable(self, approval: ApprovalRecord, wanted: Resumption) -> None:
        """Raise before the decision is stored if the run cannot be read back."""
        try:
            await self._paused.read(approval, wanted)
        except AgentsError:
            # Another process may have decided and resumed the run meanwhile. Then storing this decision raises.
            if (await self._approvals.get(approval.request.approval_id)).request.status == "pending":
                raise

    async def _claim(self, wanted: Resumption) -> tuple[Run, PausedRun]:
        approval = await self._checked(wanted)
        siblings = await self._approvals.of_pause(approval.pause_id)
        denied = [one.request for one in siblings if one.request.status == "denied" and not one.request.tell_model]
        if denied:
            raise await self._end_denied(wanted.token, approval, denied[0])
        run, paused = await self._paused.read(approval, wanted)
        calls = {call_id: run.ledger.as_changed(call) for call_id, call in paused.calls.items()}
        for permit in map(permit_of, siblings):
            call = calls.get(permit.call_id)
            is_gone = call is None and wanted.tools_may_be_gone
            if not is_gone and (call is None or not permit.fits(call.tool, call.args)):
                raise _changed_since_approval(permit.call_id)
        for call in calls.values():
            if not run.ledger.is_answered(call):
                raise _changed_since_approval(call.call_id)
        if wanted.human_response is not None:
            await self._approvals.respond(approval, wanted.human_response)
        await self._approvals.consume(wanted.token, approval)
        await self._book.save(run.record, "resuming")
        return run, paused

    async def _checked(self, wanted: Resumption) -> ApprovalRecord:
        try:
            if wanted.token is None and wanted.run_id is not None:
                return await self._approvals.check_decisions(wanted.run_id)
            return await self._approvals.check_token(wanted.token or "", wanted.run_id)
        except AgentsError as exc:
            if exc.details.get("reason") == "used" and wanted.run_id is not None:
                exc.details.update(await self._unknown_outcomes(wanted.run_id))
            raise

    async def _unknown_outcomes(self, run_id: str) -> dict[str, object]:
        """Calls that a used token may have left with an unknown outcome."""
        logs = await self._audit.query(run_id)
        calls = [log.tool_call_id for log in unfinished(logs)]
        pause = await self._approvals.of_newest_pause(run_id)
        if not calls and not await self._is_cut_off(run_id, pause):
            return {}
        over = {log.tool_call_id for log in logs if log.event == "outcome"}
        unknown = [one.request.tool_call_id for one in pause if one.request.tool_call_id not in over]
        return {"outcome": "unknown", "tool_call_ids": calls or unknown}

    async def _is_cut_off(self, run_id: str, pause: Sequence[ApprovalRecord]) -> bool:
        """True if the run was resumed and its record shows no end.

        Decisions are used up before the status is saved: a paused run with used decisions was cut off in between.
        """
        record = await self._book.get(run_id)
        if record is None or record.status != "paused":
            return record is not None and record.status == "resuming"
        is_used = all(one.used_at is not None for one in pause)
        is_turned_down = any(one.request.status == "denied" and not one.request.tell_model for one in pause)
        return bool(pause) and is_used and not is_turned_down and pause[0].state_hash == digest(record.payload)

    async def _end_denied(
        self, token: str | None, approval: ApprovalRecord, denied: HumanApprovalRequest
    ) -> AgentsError:
        await self._approvals.consume(token, approval)
        record = await self._book.get(denied.run_id)
        if record is not None:
            await self._book.save(record, "denied")
            await self._finish.end_session(record)
        self._book.forget(denied.run_id)
        said = f": {denied.comment}" if denied.comment else ""
        return AgentsError(
            "AGENTS-E-GATE-DENIED",
            f"A human denied {denied.tool_kind} {denied.tool_name}{said}",
            details={"approval_id": denied.approval_id, "tool_call_id": denied.tool_call_id},
        )


def _changed_since_approval(call_id: str) -> AgentsError:
    return AgentsError(
        "AGENTS-E-RESUME-TOKEN",
        "The call, its arguments or the tool's definition changed after it was approved",
        details={"reason": "changed", "tool_call_id": call_id},
    )
