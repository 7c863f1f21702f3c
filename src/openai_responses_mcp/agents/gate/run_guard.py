"""The guard of one run: decides whole turns, lets each call through once, and records what came of it.

A turn is let through as a whole or not at all. When one of its calls needs a human, the others wait with it; when one
is refused, none runs. A call that reaches its tool without having been let through, or with other arguments, is
refused there.
"""

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from openai_responses_mcp.agents.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.agents.calls import PlannedCall, ToolCallResult, ToolDescription, arguments_hash
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.guardrails import guardrails_of
from openai_responses_mcp.agents.gate.models import (
    AgentCapabilitySnapshot,
    CallToApprove,
    GateDecision,
    McpCapabilitySummary,
    ToolCallRequest,
)
from openai_responses_mcp.agents.gate.ports import TurnGuard
from openai_responses_mcp.agents.gate.safety_gate import GateContext, SafetyGate
from openai_responses_mcp.agents.secrets.masking import Masking

_logger = logging.getLogger("openai_responses_mcp.agents")


@dataclass(frozen=True, slots=True)
class Permit:
    """Exactly this call may run. One that `has_started` waited for a pause inside it and is taken up again."""

    call_id: str
    arguments_hash: str
    definition_hash: str
    has_started: bool = False

    @classmethod
    def of(cls, call: PlannedCall) -> "Permit":
        return cls(call.call_id, arguments_hash(call.args), call.tool.definition_hash)

    def fits(self, tool: ToolDescription, args: Mapping[str, Any]) -> bool:
        return self.arguments_hash == arguments_hash(args) and self.definition_hash == tool.definition_hash


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
        self.to_approve: list[CallToApprove] = []
        self._gate = gate
        self._audit = audit
        self._masking = masking
        self._permits: dict[str, Permit] = {}
        self._held: dict[str, Permit] = {}
        self._running: dict[str, tuple[Permit, PlannedCall]] = {}
        self._suspended: set[str] = set()
        self._seen: list[str] = []
        self._results: dict[str, ToolCallResult] = {}
        self._offered: set[str] = set()
        self._refusal: AgentsError | None = None

    @property
    def refusal(self) -> AgentsError | None:
        return self._refusal

    @property
    def profile_name(self) -> str:
        return self._gate.profile_name(self.context.policy_profile)

    @property
    def results(self) -> list[ToolCallResult]:
        """What has run, in the order in which it was asked for."""
        order = {call_id: place for place, call_id in enumerate(self._seen)}
        return sorted(self._results.values(), key=lambda result: order.get(result.tool_call_id, len(order)))

    # -----------------------------------------------------------------------------------------------------------------
    # Before

    async def judge(self, agent: Any, calls: Sequence[PlannedCall], catalog: Sequence[ToolDescription]) -> None:
        fresh = [call for call in calls if call.call_id not in self._permits]
        if not fresh:
            return
        ids = [call.call_id for call in fresh]
        if len(set(ids)) < len(ids) or set(ids) & set(self._seen):
            raise self.refuse(AgentsError("AGENTS-E-RUNNER", "The model used the id of a tool call twice"))
        self._seen.extend(ids)
        requests = [self._request_for(agent, call, tuple(catalog)) for call in fresh]
        verdicts = await asyncio.gather(*(self._evaluate(agent, request) for request in requests))
        for request, (decision, _) in zip(requests, verdicts, strict=True):
            await self._record_decision(request, decision)
        for request, (decision, error) in zip(requests, verdicts, strict=True):
            if error is not None:
                raise self.refuse(error)
            if decision.decision == "deny":
                raise self.refuse(_denied(request, decision))
        asked = [
            CallToApprove(call, decision)
            for call, (decision, _) in zip(fresh, verdicts, strict=True)
            if decision.decision == "needs_human"
        ]
        self.to_approve.extend(asked)
        waiting = {one.call.call_id for one in asked}
        for call in fresh:
            if not asked:
                self._permits[call.call_id] = Permit.of(call)
            elif call.call_id not in waiting:
                self._held[call.call_id] = Permit.of(call)

    def is_waiting(self, call_id: str) -> bool:
        return call_id not in self._permits and call_id not in self._running

    async def offer_hosted(self, tool: ToolDescription) -> None:
        if tool.scope_name in self._offered:
            return
        self._offered.add(tool.scope_name)
        decision = await self._gate.offer(tool, self.context.policy_profile)
        request = ToolCallRequest(
            tool.name, tool.kind, {}, run_id=self.run_id, tool_call_id=f"hosted:{tool.scope_name}"
        )
        await self._record_decision(request, decision)
        if decision.decision == "deny":
            raise self.refuse(_denied(request, decision))

    def _request_for(self, agent: Any, call: PlannedCall, catalog: tuple[ToolDescription, ...]) -> ToolCallRequest:
        return ToolCallRequest(
            tool_name=call.tool.name,
            tool_kind=call.tool.kind,
            args=call.args,
            user_intent=self.user_intent,
            capability_snapshot=snapshot_of(agent, catalog),
            tool_catalog=catalog,
            target_tool=call.tool,
            run_id=self.run_id,
            tool_call_id=call.call_id,
        )

    async def _evaluate(self, agent: Any, request: ToolCallRequest) -> tuple[GateDecision, AgentsError | None]:
        try:
            return await self._gate.evaluate(agent, request, self._context_for(agent)), None
        except AgentsError as exc:
            risk = request.target_tool.own_risk if request.target_tool else 5
            return GateDecision("deny", risk, f"{exc.code}: {exc.message}"), exc

    def _context_for(self, agent: Any) -> GateContext:
        """The rules of the agent that the run began with hold for every agent that takes over, next to its own."""
        own = guardrails_of(agent)
        if own is self.context.guardrails:
            return self.context
        return replace(self.context, guardrails=self.context.guardrails.joined_by(own))

    async def _record_decision(self, request: ToolCallRequest, decision: GateDecision) -> None:
        facts = {"run": self.run_id, "call": request.tool_call_id, "arguments": sorted(request.args)}
        said = (request.tool_kind, request.tool_name, decision.decision, decision.risk_level, facts)
        _logger.debug("gate: %s %s -> %s, risk %s %s", *said)
        entry = AuditEntry(
            run_id=self.run_id,
            tool_call_id=request.tool_call_id,
            event="decision",
            decision=decision.decision,
            tool_name=request.tool_name,
            tool_kind=request.tool_kind,
            risk_level=decision.risk_level,
            reason=decision.reason,
            arguments=request.args,
        )
        await self._record(entry)

    # -----------------------------------------------------------------------------------------------------------------
    # At the tool

    async def starting(self, call_id: str, tool: ToolDescription, args: Mapping[str, Any]) -> None:
        permit = self._permits.pop(call_id, None)
        if permit is None or not permit.fits(tool, args):
            reason = f"{tool.scope_name} was about to run without having been let through"
            raise self.refuse(AgentsError("AGENTS-E-GATE-DENIED", reason, details={"tool_call_id": call_id}))
        call = PlannedCall(call_id, tool, args)
        self._running[call_id] = (permit, call)
        if not permit.has_started:
            await self._record(self._entry(call, "started", "started"))

    async def finished(self, call_id: str, output: Any, error: str | None = None) -> None:
        if call_id in self._suspended:
            return
        _, call = self._running.pop(call_id)
        self._results[call_id] = self.shown(call, output if error is None else error)
        decision, reason = ("completed", "") if error is None else ("failed", error)
        await self._record(self._entry(call, "outcome", decision, reason))

    def shown(self, call: PlannedCall, output: Any = None) -> ToolCallResult:
        args, visible = self._masking.value(dict(call.args)), self._masking.value(output)
        return ToolCallResult(call.call_id, call.tool.name, call.tool.kind, args, visible)

    def result_of(self, call_id: str) -> ToolCallResult | None:
        return self._results.get(call_id)

    def suspend(self, call_id: str) -> None:
        self._suspended.add(call_id)

    def _entry(self, call: PlannedCall, event: str, decision: str, reason: str = "") -> AuditEntry:
        return AuditEntry(
            run_id=self.run_id,
            tool_call_id=call.call_id,
            event=event,
            decision=decision,
            tool_name=call.tool.name,
            tool_kind=call.tool.kind,
            reason=reason,
            arguments=call.args,
        )

    async def _record(self, entry: AuditEntry) -> None:
        try:
            await self._audit.record(entry)
        except AgentsError as exc:
            self.refuse(exc)
            raise

    def refuse(self, error: AgentsError) -> AgentsError:
        self._refusal = self._refusal or error
        return error

    # -----------------------------------------------------------------------------------------------------------------
    # Over a pause

    def saved(self) -> dict[str, Any]:
        """What has to outlive a pause besides the run itself, as JSON."""
        started = [
            Permit(permit.call_id, permit.arguments_hash, permit.definition_hash, has_started=True)
            for call_id, (permit, _) in self._running.items()
            if call_id in self._suspended
        ]
        return {
            "permits": [asdict(permit) for permit in (*self._held.values(), *started)],
            "seen": self._seen,
            "offered": sorted(self._offered),
            "results": [asdict(result) for result in self.results],
        }

    def restore(self, saved: Mapping[str, Any], approved: Sequence[Permit]) -> None:
        for permit in (*(Permit(**fields) for fields in saved["permits"]), *approved):
            self._permits[permit.call_id] = permit
        self._seen = list(saved["seen"])
        self._offered = set(saved["offered"])
        for fields in saved["results"]:
            result = ToolCallResult(**fields)
            self._results[result.tool_call_id] = result

    @property
    def permits(self) -> Mapping[str, Permit]:
        return self._permits


def snapshot_of(agent: Any, catalog: Sequence[ToolDescription]) -> AgentCapabilitySnapshot:
    return AgentCapabilitySnapshot(
        agent_name=str(getattr(agent, "name", "")),
        tool_names=tuple(tool.name for tool in catalog),
        skill_ids=tuple(tool.name for tool in catalog if tool.kind == "skill"),
        mcp_capabilities=tuple(
            McpCapabilitySummary(tool.name, tool.description, tool.own_risk) for tool in catalog if tool.kind == "mcp"
        ),
    )


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
