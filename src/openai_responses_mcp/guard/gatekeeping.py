"""The gate's decision about a call under its budgets, and the records of many calls in few writes.

Records that arrive during a write go together into the next one. Records that no call waits for are held for a moment
and written with the start of the next call, because writing is the most expensive part of a call. They say what has
happened, so they are kept if the store fails, and written later. A call starts only once the store has its start.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import NamedTuple

from openai_responses_mcp.domain.texts import Language
from openai_responses_mcp.gate.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.budgets import SessionBudget
from openai_responses_mcp.gate.call_table import RunRecords
from openai_responses_mcp.gate.calls import BudgetQuestion, GateDecision, PlannedCall, ToolCallRequest
from openai_responses_mcp.gate.errors import AgentsError, RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.policy.rules import PolicyProfile
from openai_responses_mcp.gate.reasons import Decision, Reason
from openai_responses_mcp.gate.safety_gate import GateContext, Judge, SafetyGate, failed
from openai_responses_mcp.gate.secrets.masking import Masking, secret_texts
from openai_responses_mcp.gate.stores import CallStart, StartBook, StartOutcome
from openai_responses_mcp.guard.servers import GuardOptions

LINGERS_SECONDS = 0.05

_logger = logging.getLogger("openai_responses_mcp.agents")


@dataclass(frozen=True, slots=True)
class GuardSession:
    """One client of a guard. Its records are found by `run_id`. `caller` is its user, where that is known."""

    options: GuardOptions
    run_id: str
    caller: str
    language: Language


@dataclass(frozen=True, slots=True)
class Judgement:
    """`entry` is the record of the decision. Approving the call also answers its questions about budgets."""

    decision: GateDecision
    entry: AuditEntry
    questions: tuple[BudgetQuestion, ...] = ()

    @property
    def says(self) -> Decision:
        return self.decision.decision


class NoJudge(Judge):
    """The guard asks no model: rules, profile, budgets and people decide."""

    async def evaluate(self, agent: object, request: ToolCallRequest, policy: PolicyProfile) -> GateDecision:
        return GateDecision("allow", 1, "")


class Gatekeeper:
    def __init__(self, session: GuardSession, gate: SafetyGate, budget: SessionBudget, masking: Masking) -> None:
        self._session = session
        self._gate = gate
        self.budget = budget
        self.schemas = gate.schemas
        self._masking = masking

    async def judged(self, call: PlannedCall, attempt: int) -> Judgement:
        """Fails closed: a voice that fails is a refusal."""
        request = self._request_for(call, attempt)
        questions: list[BudgetQuestion] = []
        try:
            if self._gate.policy.results.secrets == "hide" and (label := self._masking.label_in(call.args)):
                message = f"The arguments hold a label that stands in the place of a secret: {label}"
                raise AgentsError("AGENTS-E-GATE-DENIED", message)
            questions = (await self.budget.questions())[0]
            over = tuple(question.reason for question in questions)
            context = GateContext(self._session.options.profile, over_budget=over)
            decision = await self._gate.evaluate(None, request, context)
        except AgentsError as exc:
            decision = failed(call.tool.own_risk, exc)
        return self._judgement(call, decision, attempt, questions)

    async def denial(self, call: PlannedCall, attempt: int) -> Judgement | None:
        """The refusal of an approved call, if the policy came to deny it while a person was asked. Raises `AgentsError`."""
        decision = await self._gate.denial(call.tool, call.args, self._session.options.profile)
        return None if decision is None else self._judgement(call, decision, attempt)

    def refused(self, call: PlannedCall, failure: AgentsError) -> Judgement:
        """For a call whose tool could not be looked up."""
        return self._judgement(call, failed(call.tool.own_risk, failure))

    def let_pass(self, call: PlannedCall, risk_level: int) -> AuditEntry:
        """The record of a call that passes because nothing is guarded."""
        decision = GateDecision.because("allow", risk_level, Reason("observer", "allow"))
        return self._judgement(call, decision).entry

    def _judgement(
        self, call: PlannedCall, decision: GateDecision, attempt: int = 1, questions: Sequence[BudgetQuestion] = ()
    ) -> Judgement:
        entry = self._records(call).decision(self._request_for(call, attempt), decision)
        return Judgement(decision, entry, tuple(questions))

    def about(self, call: PlannedCall, event: str, decision: str, reason: str = "", *reasons: Reason) -> AuditEntry:
        return self._records(call).about(call, event, decision, reason, *reasons)

    def _records(self, call: PlannedCall) -> RunRecords:
        records = RunRecords(self._session.run_id, self._masking, self._session.caller)
        records.secret_texts += secret_texts(call.tool.parameters, call.args)
        return records

    def _request_for(self, call: PlannedCall, attempt: int = 1) -> ToolCallRequest:
        return ToolCallRequest(
            tool_name=call.tool.name,
            tool_kind=call.tool.kind,
            args=call.args,
            target_tool=call.tool,
            run_id=self._session.run_id,
            tool_call_id=call.call_id,
            attempt=attempt,
        )


# ---------------------------------------------------------------------------------------------------------------------
# Writing


class _Waiting(NamedTuple):
    """`written` is None if no call waits. With a `start` it is set to the outcome of that start."""

    entries: Sequence[AuditEntry]
    written: "asyncio.Future[StartOutcome] | None" = None
    start: CallStart | None = None


class Records:
    def __init__(self, audit: AuditLog, starts: StartBook) -> None:
        self._audit = audit
        self._starts = starts
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None
        self._lingering: list[AuditEntry] = []
        self._alarm: asyncio.TimerHandle | None = None

    async def write(self, *entries: AuditEntry, start: CallStart | None = None) -> StartOutcome:
        """Returns once they are in the log, together with the `start` of their call. Raises `AgentsError`."""
        written: asyncio.Future[StartOutcome] = asyncio.get_running_loop().create_future()
        self._linger_no_more()
        self._enqueue(_Waiting(entries, written, start))
        return await written

    def write_behind(self, *entries: AuditEntry) -> None:
        """No call waits for these."""
        self._lingering += entries
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(LINGERS_SECONDS, self._linger_no_more)

    async def settle(self) -> None:
        self._linger_no_more()
        while self._writing is not None:
            await asyncio.shield(self._writing)
        with suppress(AgentsError):
            await self._audit.flush()
        if left := len(self._audit.unwritten):
            _logger.warning("AGENTS-E-LOG-STORE: the last records (%d) could not be written", left)

    def _linger_no_more(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        lingering, self._lingering = self._lingering, []
        if lingering:
            self._enqueue(_Waiting(lingering))

    def _enqueue(self, one: _Waiting) -> None:
        self._waiting.append(one)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._write(batch)
        finally:
            self._writing = None

    async def _write(self, batch: list[_Waiting]) -> None:
        try:
            outcomes = await self._stored(batch)
        except AgentsError as exc:
            # If the store is gone, it is gone for all of them, and trying each would take as long again.
            is_store_gone = isinstance(exc, StoreUnavailable) and not isinstance(exc, RecordRefused)
            for one in batch:
                if len(batch) == 1 or is_store_gone:
                    self._fail(one, exc)
                else:
                    await self._write([one])
            return
        for one, outcome in zip(batch, outcomes, strict=True):
            if one.written is not None and not one.written.done():
                one.written.set_result(outcome)

    async def _stored(self, batch: list[_Waiting]) -> list[StartOutcome]:
        """In one transaction. Records without a start come first: they are about earlier calls."""
        entries = [entry for one in batch if one.start is None for entry in one.entries]
        starts = [
            replace(one.start, records=tuple(map(self._audit.masked, one.entries)))
            for one in batch
            if one.start is not None
        ]
        if not starts:
            await self._audit.record(*entries)
            return ["started"] * len(batch)
        before = [self._audit.masked(entry) for entry in entries]
        run_ids = {log.run_id for log in (*before, *(log for start in starts for log in start.records))}

        async def write(noted: list[ExecutionLog]) -> list[StartOutcome]:
            return await self._starts.start([*noted, *before], starts)

        outcomes = iter(await self._audit.write_with(write, run_ids))
        return ["started" if one.start is None else next(outcomes) for one in batch]

    def _fail(self, one: _Waiting, failure: AgentsError) -> None:
        if one.written is None:
            self._audit.keep(failure.message, *one.entries)
        elif one.written.done():
            return
        elif one.start is None and not self._audit.is_required and isinstance(failure, StoreUnavailable):
            self._audit.keep(failure.message, *one.entries)
            one.written.set_result("started")
        else:
            one.written.set_exception(failure)
