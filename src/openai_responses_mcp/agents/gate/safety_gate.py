"""The gate around the pure rule in `deciding`: reads the profile, asks the judge, and fails closed."""

import asyncio
from dataclasses import dataclass
from typing import Any

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.deciding import decide, is_in_scope
from openai_responses_mcp.agents.gate.foreign_code import FAILURES, is_cancellation
from openai_responses_mcp.agents.gate.guardrails import NO_GUARDRAILS, AgentGuardrails
from openai_responses_mcp.agents.gate.models import GateDecision, ToolCallRequest
from openai_responses_mcp.agents.gate.ports import Judge
from openai_responses_mcp.agents.gate.safety_agent import verdict_from
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import PolicyProfile

JUDGE_LIMIT_SECONDS = 120.0


@dataclass(frozen=True, slots=True)
class GateContext:
    """Under which rules a call is judged."""

    policy_profile: str
    require_human_approval: bool = False
    guardrails: AgentGuardrails = NO_GUARDRAILS


class SafetyGate:
    """`limit_seconds` bounds judges that set themselves no limit."""

    def __init__(
        self, safety_agent: Judge, policy_store: PolicyStore, *, limit_seconds: float = JUDGE_LIMIT_SECONDS
    ) -> None:
        self._judge = safety_agent
        self._policies = policy_store
        self._limit_seconds = limit_seconds

    async def evaluate(self, agent: Any, request: ToolCallRequest, context: GateContext) -> GateDecision:
        """Raises `AGENTS-E-GATE-EVAL` without a usable verdict and `AGENTS-E-GUARDRAIL-DENIED` before asking for one."""
        tool = request.target_tool
        if tool is None:
            raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", f"{request.tool_name} is no tool of this agent")
        profile = await self.profile(context.policy_profile)
        await context.guardrails.check_call(request)
        if not is_in_scope(tool, profile):
            # The call is refused anyway, so the judge is not shown its arguments.
            return decide(tool, GateDecision("deny", tool.own_risk, ""), profile)
        verdict = await self._verdict(agent, request, profile)
        return decide(tool, verdict, profile, require_human_approval=context.require_human_approval)

    async def profile(self, name: str) -> PolicyProfile:
        try:
            return await self._policies.get_profile(name)
        except AgentsError as exc:
            if exc.code == "AGENTS-E-POLICY-INVALID":
                raise
            raise AgentsError("AGENTS-E-GATE-EVAL", f"The policy profile cannot be read: {exc.message}") from exc

    async def _verdict(self, agent: Any, request: ToolCallRequest, profile: PolicyProfile) -> GateDecision:
        failure: str
        try:
            async with asyncio.timeout(self._limit_seconds):
                return verdict_from(await self._judge.evaluate(agent, request, profile))
        except AgentsError as exc:
            failure = exc.message
        except TimeoutError:
            failure = "The judge took too long"
        except FAILURES as exc:
            if is_cancellation(exc):
                raise
            failure = f"The judge failed with {type(exc).__name__}"
        # Raised out here so that the text of the judge's own error, which may hold arguments, does not travel along.
        raise AgentsError("AGENTS-E-GATE-EVAL", failure)
