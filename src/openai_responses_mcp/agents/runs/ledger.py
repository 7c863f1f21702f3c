"""The ledger of one run: decides whole turns, lets each call through once, and records what came of it.

A turn is let through as a whole or not at all. When one of its calls needs a human, the others wait with it; when one
is refused, none runs. `call_table` holds the state of each call and what may happen to it next. Anything else is refused
and recorded: a call that reaches its tool without having been let through, with other arguments, or a second time.

If a human denied a call with a text for the model, or changed one, the rest of the turn is decided again by every voice.
What a human approved unchanged stays approved. A changed call is asked about again only for a reason that they had not
been given.
"""

import asyncio
from collections.abc import Awaitable, Sequence
from dataclasses import replace
from typing import TypeVar

from openai_responses_mcp.agents.runs.judging import Judging
from openai_responses_mcp.agents.runs.models import Extensions
from openai_responses_mcp.gate.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.gate.budgets import BudgetStore, Limit, SessionBudget, Unit, limits_of
from openai_responses_mcp.gate.call_table import (
    LET_THROUGH,
    MAY_START,
    CallEvent,
    CallState,
    CallTable,
    ForbiddenMove,
    GuardedCall,
    HumanAnswer,
    Permit,
    RunRecords,
    changed_call,
)
from openai_responses_mcp.gate.calls import (
    BudgetQuestion,
    CallToApprove,
    ChangedCall,
    GateDecision,
    PlannedCall,
    ToolCallRequest,
    ToolCallResult,
    ToolDescription,
    Turn,
)
from openai_responses_mcp.gate.clock import Clock
from openai_responses_mcp.gate.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.gate.guardrails import guardrails_of
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, OwnJson
from openai_responses_mcp.gate.reasons import is_new
from openai_responses_mcp.gate.safety_gate import GateContext, SafetyGate
from openai_responses_mcp.gate.secrets.masking import Masking, secret_texts

_T = TypeVar("_T")


class RunLedger:
    """What the engine must ask before, and report to after, every execution."""

    def __init__(
        self,
        run_id: str,
        gate: SafetyGate,
        audit: AuditLog,
        masking: Masking,
        context: GateContext,
        budget: SessionBudget,
        user_intent: str = "",
    ) -> None:
        self.run_id = run_id
        self.context = context
        self.user_intent = user_intent
        self._judging = Judging(run_id, gate, context, user_intent)
        self._audit = audit
        self._masking = masking
        self._schemas = gate.schemas
        self._budget = budget
        self._calls = CallTable()
        self._records = RunRecords(run_id, masking)
        self._offered: set[str] = set()
        self._refusal: AgentsError | None = None
        self._store_failure: AgentsError | None = None
        self._is_to_be_decided_again = False
        self._is_resumed = False

    @property
    def refusal(self) -> AgentsError | None:
        """The first refusal of the run. An engine that swallowed it must raise it as soon as it can."""
        return self._refusal

    @property
    def profile_name(self) -> str:
        return self._judging.profile_name

    @property
    def secret_texts(self) -> list[str]:
        """The texts in fields that a tool's own schema names after a secret."""
        return self._records.secret_texts

    @property
    def results(self) -> list[ToolCallResult]:
        """What has run, in the order in which it was asked for."""
        return [call.result for call in self._calls if call.result is not None]

    @property
    def to_approve(self) -> list[CallToApprove]:
        """What a human has to decide before the run can go on."""
        return [call.asked for call in self._calls if call.asked is not None]

    # -----------------------------------------------------------------------------------------------------------------
    # Before

    async def used_tokens(self, tokens: int) -> None:
        """A model used these tokens. Called before its turn is judged."""
        await self._noted(self._budget.spend(tokens=tokens))

    async def judge(self, agent: object, calls: Sequence[PlannedCall], catalog: Sequence[ToolDescription]) -> None:
        """Decide a whole turn. Raises `AgentsError` when any of it is refused; `is_waiting` says which calls need a human.

        An id that the model uses again means the same call; another call with it is refused.
        """
        fresh: list[PlannedCall] = []
        for call in calls:
            known = self._calls[call.call_id]
            if known.state is CallState.UNKNOWN:
                (await self._move(call, CallEvent.PLAN)).permit = Permit.of(call)
                self.secret_texts.extend(secret_texts(call.tool.parameters, call.args))
                fresh.append(call)
            elif known.changed is None and not known.fits(call):
                raise await self._refused(call, "The model used the id of a tool call twice", "AGENTS-E-RUNNER")
        await self._decide([Turn(agent, tuple(fresh), tuple(catalog))])

    async def _decide(self, turns: Sequence[Turn]) -> None:
        planned = [(turn, call) for turn in turns for call in turn.calls]
        questions = await self._noted(self._budget.questions(len(planned)))
        requests = [
            self._judging.request_for(turn.agent, call, turn.catalog, self._calls[call.call_id].attempt)
            for turn, call in planned
        ]
        verdicts = await asyncio.gather(
            *(
                self._judging.evaluate(turn.agent, request, [question.reason for question in asked])
                for (turn, _), request, asked in zip(planned, requests, questions, strict=True)
            )
        )
        await self._record_decisions(
            [(request, decision) for request, (decision, _) in zip(requests, verdicts, strict=True)]
        )
        refusals = [refusal for _, refusal in verdicts if refusal is not None]
        if refusals:
            for _, call in planned:
                await self._move(call, CallEvent.REFUSE)
            raise self.refuse(refusals[0])
        await self._let_through([call for _, call in planned], [decision for decision, _ in verdicts], questions)

    async def _let_through(
        self,
        calls: Sequence[PlannedCall],
        decisions: Sequence[GateDecision],
        questions: Sequence[list[BudgetQuestion]],
    ) -> None:
        asks = [self._asks(call, decision) for call, decision in zip(calls, decisions, strict=True)]
        for call, decision, is_asked, about_budgets in zip(calls, decisions, asks, questions, strict=True):
            if is_asked:
                moved = await self._move(call, CallEvent.ASK)
                attempt = moved.answer.attempt + 1 if moved.answer else 1
                moved.asked, moved.questions = CallToApprove(call, decision, attempt), about_budgets
            else:
                await self._move(call, CallEvent.HOLD if any(asks) else CallEvent.ALLOW)

    def _asks(self, call: PlannedCall, decision: GateDecision) -> bool:
        """Whether a human still has to be asked. After a change, an answer counts only for the reasons given then."""
        answer = self._calls[call.call_id].answer
        if decision.decision != "needs_human" or answer is None:
            return decision.decision == "needs_human"
        return answer.changed is not None and is_new(decision.reasons, answer.asked)

    @property
    def is_asking(self) -> bool:
        """Whether any call of the run waits for a human, or was refused by one."""
        return any(call.state in (CallState.ASKED, CallState.TOLD) for call in self._calls)

    def is_waiting(self, call_id: str) -> bool:
        """Whether the call may not run yet; also true for a call that was never judged, and false for one that is done."""
        return self._calls[call_id].state not in LET_THROUGH | {CallState.DONE}

    async def offer_hosted(self, agent: object, tool: ToolDescription) -> None:
        """A tool on the provider's side: in scope, or refused before the model is asked."""
        profile = self.context_for(agent).policy_profile
        # An agent that takes over may have a stricter profile than the one before it that had the same tool.
        offered = tool.scope_name if profile == self.profile_name else f"{tool.scope_name} under {profile}"
        if offered in self._offered:
            return
        self._offered.add(offered)
        request, decision, refusal = await self._judging.offer(tool, profile, f"hosted:{offered}")
        # At once: the provider may run it while the model is asked.
        await self._record(self._records.decision(request, decision))
        if refusal is not None:
            raise self.refuse(refusal)

    def context_for(self, agent: object) -> GateContext:
        return self._judging.context_for(agent)

    # -----------------------------------------------------------------------------------------------------------------
    # At the tool

    def may_start(self, call: PlannedCall) -> bool:
        """Whether exactly this call is let through and has not started."""
        known = self._calls[call.call_id]
        return known.state in MAY_START and known.fits(call)

    def denial_for_model(self, call_id: str) -> str | None:
        """If a human denied the call with a text for the model: that text. The call does not start."""
        known = self._calls[call_id]
        return known.answer.denial_for_model if known.state is CallState.TOLD and known.answer else None

    def changed(self, call_id: str) -> ChangedCall | None:
        """The call as a human changed it, if they did. The call starts with these arguments."""
        return self._calls[call_id].changed

    def as_changed(self, call: PlannedCall) -> PlannedCall:
        """The call with what humans have made of its arguments so far."""
        changed = self.changed(call.call_id)
        return call if changed is None else replace(call, args=changed.args)

    async def starting(self, call_id: str, tool: ToolDescription, args: JsonObject) -> None:
        """Raises unless exactly this call was let through, once."""
        call, known = PlannedCall(call_id, tool, args), self._calls[call_id]
        is_first_start = known.state is not CallState.TAKEN_UP
        if not known.fits(call):
            await self._move(call, CallEvent.MISFIT)
            raise await self._refused(call, _about_to_run(call))
        if is_first_start and self._is_resumed and (denial := await self._noted(self._judging.denial(call))):
            await self._move(call, CallEvent.MISFIT)
            raise await self._refused(call, f"{call.tool.kind} {call.tool.name} was refused: {denial}")
        (await self._move(call, CallEvent.START)).planned = call
        if self._store_failure is not None:
            raise self._store_failure
        if is_first_start:
            await self._noted(self._budget.spend(calls=1))
            await self._record(self._records.about(call, "started", "started"))

    async def finished(self, call_id: str, output: JsonValue, error: str | None = None) -> None:
        """`error` is what the tool raised; with an `output` too if the error became an answer for the model."""
        call = await self._move(self._calls[call_id].planned, CallEvent.FINISH)
        if call.state is CallState.SUSPENDED:
            return
        call.result = self.shown(call.planned, error if output is None and error is not None else output)
        decision, reason = ("completed", "") if error is None else ("failed", error)
        outcome = self._records.about(call.planned, "outcome", decision, reason)
        try:
            await self._record(outcome)
        except StoreUnavailable as exc:
            # The call ran; record it when the store is back.
            self._audit.keep(exc.message, outcome)
            raise

    async def suspend(self, call_id: str) -> None:
        """The call started and waits for a pause inside it; it will be started again on resume."""
        await self._move(self._calls[call_id].planned, CallEvent.SUSPEND)

    def shown(self, call: PlannedCall, output: JsonValue = None) -> ToolCallResult:
        args = self._masking.shown(call.args, call.tool.parameters)
        try:
            visible = self._masking.value(output, self.secret_texts)
        except RecursionError:  # a tool may return an object that holds itself
            visible = self._masking.value(repr(output), self.secret_texts)
        return ToolCallResult(call.call_id, call.tool.name, call.tool.kind, args, visible)

    def result_of(self, call_id: str) -> ToolCallResult | None:
        return self._calls[call_id].result

    # -----------------------------------------------------------------------------------------------------------------
    # Moving and refusing

    async def _move(self, call: PlannedCall, event: CallEvent) -> GuardedCall:
        try:
            return self._calls.move(call.call_id, event)
        except ForbiddenMove as exc:
            forbidden = exc
        is_start = event in (CallEvent.START, CallEvent.MISFIT)
        raise await self._refused(call, _about_to_run(call) if is_start else str(forbidden))

    def refuse(self, error: AgentsError) -> AgentsError:
        self._refusal = self._refusal or error
        return error

    async def _refused(self, call: PlannedCall, reason: str, code: str = "AGENTS-E-GATE-DENIED") -> AgentsError:
        error = self.refuse(AgentsError(code, reason, details={"tool_call_id": call.call_id}))
        try:
            await self._audit.record(self._records.about(call, "refused", "deny", reason))
        except AgentsError as exc:
            # Refused before, or the log cannot be written. The call does not run either way.
            error.__cause__ = exc
        return error

    # -----------------------------------------------------------------------------------------------------------------
    # Recording

    async def _record_decisions(self, decided: Sequence[tuple[ToolCallRequest, GateDecision]]) -> None:
        """Decisions on a turn that may run are written just before the start of its first call, all others at once."""
        entries = [self._records.decision(request, decision) for request, decision in decided]
        if all(decision.decision == "allow" for _, decision in decided):
            for entry in entries:
                self._audit.note(entry)
        else:
            await self._record(*entries)

    async def _record(self, *entries: AuditEntry) -> None:
        await self._noted(self._audit.record(*entries))

    async def _noted(self, work: Awaitable[_T]) -> _T:
        """Where a store fails, nothing more of the run may start."""
        try:
            return await work
        except AgentsError as exc:
            self._store_failure = self.refuse(exc)
            raise

    # -----------------------------------------------------------------------------------------------------------------
    # Over a pause

    def saved(self) -> dict[str, JsonValue]:
        """What has to outlive a pause besides the run itself, as JSON."""
        return {
            "calls": self._calls.saved(),
            "offered": sorted(self._offered),
            "secret_texts": list(self.secret_texts),
        }

    def restore(self, saved: OwnJson, answers: Sequence[HumanAnswer]) -> None:
        """Read back what was saved. With an answer to everything that was asked, the calls of the pause are let through;
        where an answer is more than a plain yes, `take_up` decides them again."""
        self._is_resumed = True
        self._is_to_be_decided_again = self._calls.restore(saved["calls"], answers)
        self._offered = set(saved["offered"])
        self.secret_texts.extend(saved["secret_texts"])

    def is_answered(self, call: PlannedCall) -> bool:
        """True if the call may start unchanged, was denied with a text for the model, or will be decided again."""
        return self._is_to_be_decided_again or self.denial_for_model(call.call_id) is not None or self.may_start(call)

    async def take_up(self, turns: Sequence[Turn]) -> None:
        """The answers take effect: budgets go on, and a turn is decided again where it has to be. `turns` are the calls
        of the pause as the model made them. Raises as `judge` does; `to_approve` may hold something again."""
        for known in list(self._calls):
            if known.answer is None:
                continue
            if known.answer.denial_for_model is None:
                await self._noted(self._budget.go_on(known.questions))
            known.questions = []
        if not self._is_to_be_decided_again:
            return
        self._is_to_be_decided_again = False
        again: list[Turn] = []
        for turn in turns:
            calls = [await self._replanned(call) for call in turn.calls]
            again.append(replace(turn, calls=tuple(call for call in calls if call is not None)))
        await self._decide(again)
        if not self.to_approve:
            self._calls.release(CallState.SUSPENDED)

    async def _replanned(self, call: PlannedCall) -> PlannedCall | None:
        """The call as it will be decided again, unless it was denied with a text for the model."""
        known = self._calls[call.call_id]
        if known.state is CallState.TOLD:
            return None
        if known.answer is not None and known.answer.denial_for_model is not None:
            await self._move(call, CallEvent.TELL)
            await self._record(
                self._records.about(self.as_changed(call), "told", "deny", known.answer.denial_for_model)
            )
            return None
        (await self._move(call, CallEvent.REPLAN)).attempt += 1
        if known.answer is not None and known.answer.changed is not None:
            known.changed = await self._noted(
                changed_call(call, known.changed, known.answer, self._masking, self._schemas)
            )
            self.secret_texts.extend(secret_texts(call.tool.parameters, known.changed.args))
        planned = self.as_changed(call)
        known.permit = Permit.of(planned)
        return planned


def _about_to_run(call: PlannedCall) -> str:
    return f"{call.tool.scope_name} was about to run without having been let through"


_WHOSE = "agents"  # a policy file's budget counts the hours and days of all agents together


class LookingLedger(RunLedger):
    """For a look at an agent's tools. Nothing is judged, so nothing can run."""

    async def offer_hosted(self, agent: object, tool: ToolDescription) -> None:
        return


class RunLedgers:
    def __init__(self, gate: SafetyGate, audit: AuditLog, masking: Masking, budgets: BudgetStore, clock: Clock) -> None:
        self._gate = gate
        self._audit = audit
        self._masking = masking
        self._budgets = budgets
        self._clock = clock

    def ledger_for(self, run_id: str, agent: object, extensions: Extensions, user_intent: str) -> RunLedger:
        context = GateContext(extensions.policy_profile, extensions.require_human_approval, guardrails_of(agent))

        def limits() -> list[Limit]:
            """Those of the run and of the current policy file, for which a session is a run."""
            own: dict[Unit, int | None] = {"calls": extensions.max_tool_calls, "tokens": extensions.max_tokens}
            per_run = [Limit(most, unit, "run") for unit, most in own.items() if most is not None]
            return [*limits_of(self._gate.policy.budget, _WHOSE), *per_run]

        budget = SessionBudget(self._budgets, self._clock, run_id, limits)
        return RunLedger(run_id, self._gate, self._audit, self._masking, context, budget, user_intent)

    def looking_ledger(self) -> RunLedger:
        budget = SessionBudget(self._budgets, self._clock, "", list)
        return LookingLedger("", self._gate, self._audit, self._masking, GateContext(), budget)
