"""The guard of one run: decides whole turns, lets each call through once, and records what came of it.

A turn is let through as a whole or not at all. When one of its calls needs a human, the others wait with it; when one
is refused, none runs. Which call is where stands in one table (`call_table`), and what may happen to it next in another
(`call_states`). Anything else is refused and recorded: a call that reaches its tool without having been let through, or
with other arguments, or for the second time.
"""

import asyncio
import logging
from collections.abc import Sequence

from openai_responses_mcp.agents.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.agents.calls import PlannedCall, ToolCallResult, ToolDescription
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.call_states import LET_THROUGH, MAY_START, CallEvent, CallState, ForbiddenMove
from openai_responses_mcp.agents.gate.call_table import CallTable, GuardedCall, Permit
from openai_responses_mcp.agents.gate.guardrails import guardrails_of
from openai_responses_mcp.agents.gate.models import (
    AgentCapabilitySnapshot,
    CallToApprove,
    GateDecision,
    ToolCallRequest,
)
from openai_responses_mcp.agents.gate.ports import TurnGuard
from openai_responses_mcp.agents.gate.safety_gate import GateContext, SafetyGate
from openai_responses_mcp.agents.json_values import JsonObject, JsonValue, OwnJson
from openai_responses_mcp.agents.policy.profiles import stricter
from openai_responses_mcp.agents.secrets.fields import secret_texts
from openai_responses_mcp.agents.secrets.masking import Masking

_logger = logging.getLogger("openai_responses_mcp.agents")


class RunGuard(TurnGuard):
    def __init__(
        self,
        run_id: str,
        gate: SafetyGate,
        audit: AuditLog,
        masking: Masking,
        context: GateContext,
        user_intent: str = "",
    ) -> None:
        self.run_id = run_id
        self.context = context
        self.user_intent = user_intent
        self._gate = gate
        self._audit = audit
        self._masking = masking
        self._calls = CallTable()
        self._offered: set[str] = set()
        self._secret_texts: list[str] = []
        self._refusal: AgentsError | None = None

    @property
    def refusal(self) -> AgentsError | None:
        return self._refusal

    @property
    def profile_name(self) -> str:
        return self._gate.profile_name(self.context.policy_profile)

    @property
    def secret_texts(self) -> list[str]:
        """What stood in fields that a tool's own schema names after a secret."""
        return self._secret_texts

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

    async def judge(self, agent: object, calls: Sequence[PlannedCall], catalog: Sequence[ToolDescription]) -> None:
        # A turn that waited for a human comes by again when the run goes on. It is decided already.
        fresh = [call for call in calls if self._calls[call.call_id].state not in MAY_START]
        for call in fresh:
            (await self._move(call, CallEvent.PLAN)).permit = Permit.of(call)
            self._secret_texts += secret_texts(call.tool.parameters, call.args)
        requests = [self._request_for(agent, call, tuple(catalog)) for call in fresh]
        verdicts = await asyncio.gather(*(self._evaluate(agent, request) for request in requests))
        await self._record_decisions(
            [(request, decision) for request, (decision, _) in zip(requests, verdicts, strict=True)]
        )
        refusals = [refusal for _, refusal in verdicts if refusal is not None]
        if refusals:
            for call in fresh:
                await self._move(call, CallEvent.REFUSE)
            raise self.refuse(refusals[0])
        await self._let_through(fresh, [decision for decision, _ in verdicts])

    async def _let_through(self, calls: Sequence[PlannedCall], decisions: Sequence[GateDecision]) -> None:
        asks = any(decision.decision == "needs_human" for decision in decisions)
        for call, decision in zip(calls, decisions, strict=True):
            if decision.decision == "needs_human":
                (await self._move(call, CallEvent.ASK)).asked = CallToApprove(call, decision)
            else:
                await self._move(call, CallEvent.HOLD if asks else CallEvent.ALLOW)

    def is_waiting(self, call_id: str) -> bool:
        return self._calls[call_id].state not in LET_THROUGH

    async def offer_hosted(self, tool: ToolDescription) -> None:
        if tool.scope_name in self._offered:
            return
        self._offered.add(tool.scope_name)
        decision = await self._gate.offer(tool, self.context.policy_profile)
        request = ToolCallRequest(
            tool.name, tool.kind, {}, run_id=self.run_id, tool_call_id=f"hosted:{tool.scope_name}"
        )
        # At once: the provider may run it while the model is asked.
        await self._record(self._decision_entry(request, decision))
        if decision.decision == "deny":
            raise self.refuse(_denied(request, decision))

    def _request_for(self, agent: object, call: PlannedCall, catalog: tuple[ToolDescription, ...]) -> ToolCallRequest:
        return ToolCallRequest(
            tool_name=call.tool.name,
            tool_kind=call.tool.kind,
            args=call.args,
            user_intent=self.user_intent,
            capability_snapshot=AgentCapabilitySnapshot.of(agent, catalog),
            tool_catalog=catalog,
            target_tool=call.tool,
            run_id=self.run_id,
            tool_call_id=call.call_id,
        )

    async def _evaluate(self, agent: object, request: ToolCallRequest) -> tuple[GateDecision, AgentsError | None]:
        """The decision, and the error to raise where it is a refusal."""
        try:
            decision = await self._gate.evaluate(agent, request, self.context_for(agent))
        except AgentsError as exc:
            risk = request.target_tool.own_risk if request.target_tool else 5
            return GateDecision("deny", risk, f"{exc.code}: {exc.message}"), exc
        return decision, _denied(request, decision) if decision.decision == "deny" else None

    def context_for(self, agent: object) -> GateContext:
        """What the run and its first agent demand holds for every agent that takes over, next to its own demands."""
        rules, own = self.context.guardrails, guardrails_of(agent)
        demands = getattr(agent, "extensions", None)
        return GateContext(
            stricter(self.profile_name, getattr(demands, "policy_profile", None)),
            self.context.require_human_approval or getattr(demands, "require_human_approval", None) is True,
            rules if own is rules else rules.joined_by(own),
        )

    # -----------------------------------------------------------------------------------------------------------------
    # At the tool

    def may_start(self, call: PlannedCall) -> bool:
        """Whether exactly this call is let through and has not started."""
        known = self._calls[call.call_id]
        return known.state in MAY_START and known.fits(call)

    async def starting(self, call_id: str, tool: ToolDescription, args: JsonObject) -> None:
        call, known = PlannedCall(call_id, tool, args), self._calls[call_id]
        is_first_start = known.state is not CallState.TAKEN_UP
        if not known.fits(call):
            await self._move(call, CallEvent.MISFIT)
            raise await self._refused(call, _about_to_run(call))
        (await self._move(call, CallEvent.START)).planned = call
        if is_first_start:
            await self._record(self._entry(call, "started", "started"))

    async def finished(self, call_id: str, output: JsonValue, error: str | None = None) -> None:
        call = await self._move(self._calls[call_id].planned, CallEvent.FINISH)
        if call.state is CallState.SUSPENDED:
            return
        # What a tool raised may have become an answer for the model on its way here.
        call.result = self.shown(call.planned, error if output is None and error is not None else output)
        decision, reason = ("completed", "") if error is None else ("failed", error)
        await self._record(self._entry(call.planned, "outcome", decision, reason))

    async def suspend(self, call_id: str) -> None:
        await self._move(self._calls[call_id].planned, CallEvent.SUSPEND)

    def shown(self, call: PlannedCall, output: JsonValue = None) -> ToolCallResult:
        args = self._masking.shown(call.args, call.tool.parameters)
        visible = self._masking.value(output, self._secret_texts)
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
        if event is CallEvent.PLAN:
            raise await self._refused(call, "The model used the id of a tool call twice", "AGENTS-E-RUNNER")
        is_start = event in (CallEvent.START, CallEvent.MISFIT)
        raise await self._refused(call, _about_to_run(call) if is_start else str(forbidden))

    def refuse(self, error: AgentsError) -> AgentsError:
        self._refusal = self._refusal or error
        return error

    async def _refused(self, call: PlannedCall, reason: str, code: str = "AGENTS-E-GATE-DENIED") -> AgentsError:
        error = self.refuse(AgentsError(code, reason, details={"tool_call_id": call.call_id}))
        try:
            await self._audit.record(self._entry(call, "refused", "deny", reason))
        except AgentsError as exc:
            # Refused before, or the log cannot be written. The call does not run either way.
            error.__cause__ = exc
        return error

    # -----------------------------------------------------------------------------------------------------------------
    # Recording

    async def _record_decisions(self, decided: Sequence[tuple[ToolCallRequest, GateDecision]]) -> None:
        """A turn that may run is recorded with the start of its first call, which it precedes; any other at once."""
        entries = [self._decision_entry(request, decision) for request, decision in decided]
        if all(decision.decision == "allow" for _, decision in decided):
            for entry in entries:
                self._audit.note(entry)
        else:
            await self._record(*entries)

    def _decision_entry(self, request: ToolCallRequest, decision: GateDecision) -> AuditEntry:
        names = [self._masking.text(str(name)) for name in request.args]
        facts = {"run": self.run_id, "call": request.tool_call_id, "arguments": sorted(names)}
        said = (request.tool_kind, request.tool_name, decision.decision, decision.risk_level, facts)
        _logger.debug("gate: %s %s -> %s, risk %s %s", *said)
        return AuditEntry(
            run_id=self.run_id,
            tool_call_id=request.tool_call_id,
            event="decision",
            decision=decision.decision,
            tool_name=request.tool_name,
            tool_kind=request.tool_kind,
            risk_level=decision.risk_level,
            reason=decision.reason,
            arguments=self._masking.shown(request.args, request.target_tool.parameters if request.target_tool else {}),
        )

    def _entry(self, call: PlannedCall, event: str, decision: str, reason: str = "") -> AuditEntry:
        return AuditEntry(
            run_id=self.run_id,
            tool_call_id=call.call_id,
            event=event,
            decision=decision,
            tool_name=call.tool.name,
            tool_kind=call.tool.kind,
            reason=self._masking.text(reason, self._secret_texts),
            arguments=self._masking.shown(call.args, call.tool.parameters),
        )

    async def _record(self, *entries: AuditEntry) -> None:
        try:
            await self._audit.record(*entries)
        except AgentsError as exc:
            self.refuse(exc)
            raise

    # -----------------------------------------------------------------------------------------------------------------
    # Over a pause

    def saved(self) -> dict[str, JsonValue]:
        """What has to outlive a pause besides the run itself, as JSON."""
        return {
            "calls": self._calls.saved(),
            "offered": sorted(self._offered),
            "secret_texts": self._secret_texts,
        }

    def restore(self, saved: OwnJson, approved: Sequence[Permit]) -> None:
        """Read back what was saved, and let the calls of the pause through if all that were asked about are approved."""
        self._calls.restore(saved["calls"], approved)
        self._offered = set(saved["offered"])
        self._secret_texts = list(saved["secret_texts"])


def _about_to_run(call: PlannedCall) -> str:
    return f"{call.tool.scope_name} was about to run without having been let through"


def _denied(request: ToolCallRequest, decision: GateDecision) -> AgentsError:
    return AgentsError(
        "AGENTS-E-GATE-DENIED",
        f"{request.tool_kind} {request.tool_name} was refused: {decision.reason}",
        details={
            "tool_name": request.tool_name,
            "tool_call_id": request.tool_call_id,
            "risk_level": decision.risk_level,
        },
    )
