"""One run's questions to the gate: what the judge sees of each call, and the rules that apply to it."""

from collections.abc import Sequence

from openai_responses_mcp.gate.calls import (
    AgentCapabilitySnapshot,
    GateDecision,
    PlannedCall,
    ToolCallRequest,
    ToolDescription,
)
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.guardrails import guardrails_of
from openai_responses_mcp.gate.policy.rules import stricter
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.safety_gate import GateContext, SafetyGate, failed


class Judging:
    def __init__(self, run_id: str, gate: SafetyGate, context: GateContext, user_intent: str) -> None:
        self._run_id = run_id
        self._gate = gate
        self._context = context
        self._user_intent = user_intent

    @property
    def profile_name(self) -> str:
        return self._gate.policy.profile_name(self._context.policy_profile)

    def context_for(self, agent: object, over_budget: Sequence[Reason] = ()) -> GateContext:
        """The demands of the run and its first agent hold for every later agent too, together with its own."""
        rules, own = self._context.guardrails, guardrails_of(agent)
        demands = getattr(agent, "extensions", None)
        return GateContext(
            stricter(self.profile_name, getattr(demands, "policy_profile", None)),
            self._context.require_human_approval or getattr(demands, "require_human_approval", None) is True,
            rules if own is rules else rules.joined_by(own),
            tuple(over_budget),
        )

    def request_for(
        self, agent: object, call: PlannedCall, catalog: tuple[ToolDescription, ...], attempt: int
    ) -> ToolCallRequest:
        return ToolCallRequest(
            tool_name=call.tool.name,
            tool_kind=call.tool.kind,
            args=call.args,
            user_intent=self._user_intent,
            capability_snapshot=AgentCapabilitySnapshot.of(agent, catalog),
            tool_catalog=catalog,
            target_tool=call.tool,
            run_id=self._run_id,
            tool_call_id=call.call_id,
            attempt=attempt,
        )

    async def evaluate(
        self, agent: object, request: ToolCallRequest, over_budget: Sequence[Reason]
    ) -> tuple[GateDecision, AgentsError | None]:
        """The decision, and the error to raise if it is a refusal."""
        context = self.context_for(agent, over_budget)
        try:
            decision = await self._gate.evaluate(agent, request, context)
        except AgentsError as exc:
            risk = request.target_tool.own_risk if request.target_tool else 5
            return failed(risk, exc), exc
        if decision.decision == "deny":
            return decision, _denied(request, decision)
        return await self._noting_unchecked(request, decision), None

    async def _noting_unchecked(self, request: ToolCallRequest, decision: GateDecision) -> GateDecision:
        """Adds a reason if the arguments go to an MCP server and could not be checked here."""
        tool = request.target_tool
        if tool is None or tool.kind != "mcp" or not tool.parameters:
            return decision
        fit = await self._gate.schemas.check(request.args, tool.parameters)
        if fit.answer != "cannot_say":
            return decision
        doubt = Reason("schema", "allow", {"why": fit.why})
        return GateDecision.because(decision.decision, decision.risk_level, *decision.reasons, doubt)

    async def denial(self, call: PlannedCall) -> str | None:
        """Why the current policy denies a call that was let through before a pause; None if it does not."""
        decision = await self._gate.denial(call.tool, call.args, self.profile_name)
        return decision.reason if decision else None

    async def offer(
        self, tool: ToolDescription, profile: str | None, call_id: str
    ) -> tuple[ToolCallRequest, GateDecision, AgentsError | None]:
        """As `evaluate`, but once for a whole tool that the provider runs. `profile` is that of the tool's agent."""
        decision = await self._gate.offer(tool, profile)
        request = ToolCallRequest(tool.name, tool.kind, {}, run_id=self._run_id, tool_call_id=call_id)
        return request, decision, _denied(request, decision) if decision.decision == "deny" else None


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
