"""The gate around the pure rule in `deciding`: reads the profile, asks the judge, and fails closed.

The judge is shown what a human would be shown: the call as it will run, with a label for each real secret.
"""

import asyncio
import logging
import traceback
from dataclasses import dataclass, replace
from functools import partial

from openai_responses_mcp.agents.calls import AMBIGUOUS, PlannedCall, ToolDescription
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.gate.deciding import decide, is_in_scope
from openai_responses_mcp.agents.gate.foreign_code import FAILURES, is_cancellation
from openai_responses_mcp.agents.gate.guardrails import NO_GUARDRAILS, AgentGuardrails
from openai_responses_mcp.agents.gate.models import GateDecision, ToolCallRequest
from openai_responses_mcp.agents.gate.ports import Judge, StandingVoice
from openai_responses_mcp.agents.gate.safety_agent import JudgeFailed, verdict_from
from openai_responses_mcp.agents.json_values import JsonObject
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import PolicyProfile
from openai_responses_mcp.agents.policy.rules import Budget, Policy
from openai_responses_mcp.agents.policy.ruling import PolicyRules, Ruling
from openai_responses_mcp.agents.secrets.masking import Masking
from openai_responses_mcp.domain.texts import one_line

JUDGE_LIMIT_SECONDS = 120.0
LONGEST_FAILURE = 500

_NO_POLICY = Policy()

_logger = logging.getLogger("openai_responses_mcp.agents")


@dataclass(frozen=True, slots=True)
class GateContext:
    """Under which rules a call is judged. If nobody chose a profile, it is the policy file's, else `balanced`.

    `over_budget` says which budget is used up.
    """

    policy_profile: str | None = None
    require_human_approval: bool = False
    guardrails: AgentGuardrails = NO_GUARDRAILS
    over_budget: str = ""


class SafetyGate:
    """`limit_seconds` bounds judges that set themselves no limit."""

    def __init__(
        self,
        safety_agent: Judge,
        policy_store: PolicyStore,
        masking: Masking | None = None,
        *,
        rules: PolicyRules | None = None,
        standing: StandingVoice | None = None,
        limit_seconds: float = JUDGE_LIMIT_SECONDS,
    ) -> None:
        self._judge = safety_agent
        self._policies = policy_store
        self._masking = masking or Masking()
        self._rules = rules
        self._standing = standing
        self._limit_seconds = limit_seconds

    async def evaluate(self, agent: object, request: ToolCallRequest, context: GateContext) -> GateDecision:
        """Raises `AGENTS-E-GATE-EVAL` without a usable verdict and `AGENTS-E-GUARDRAIL-DENIED` before asking for one."""
        tool = request.target_tool
        if tool is None:
            raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", f"{request.tool_name} is not a tool of this agent")
        if AMBIGUOUS in request.args:
            raise AgentsError("AGENTS-E-GATE-DENIED", "The arguments of the call could be read in more than one way")
        profile = await self.profile(context.policy_profile)
        await context.guardrails.check_call(request)
        ruling = self._ruling(tool, request.args)
        if not is_in_scope(tool, profile) or (ruling and ruling.decide == "deny"):
            # The call is refused anyway, so the judge is not shown its arguments.
            return decide(tool, GateDecision("deny", tool.own_risk, ""), profile, ruling=ruling)
        verdict = await self._verdict(agent, self._shown(request, tool), profile)
        decided = partial(
            decide,
            tool,
            verdict,
            profile,
            ruling=ruling,
            require_human_approval=context.require_human_approval,
            over_budget=context.over_budget,
        )
        decision = decided()
        if decision.decision != "needs_human" or decided(standing="").decision != "allow":
            return decision
        # Every question is one that a standing approval may answer.
        standing = await self._standing_answer(request, tool)
        return decision if standing is None else decided(standing=standing)

    async def _standing_answer(self, request: ToolCallRequest, tool: ToolDescription) -> str | None:
        if self._standing is None:
            return None
        call = PlannedCall(request.tool_call_id, tool, request.args)
        return await self._standing.answer(call, request.run_id, request.attempt)

    async def offer(self, tool: ToolDescription, policy_profile: str | None) -> GateDecision:
        """A tool on the provider's side: nobody can be asked call by call, so it is allowed or refused as a whole."""
        profile = await self.profile(policy_profile)
        if not is_in_scope(tool, profile):
            return decide(tool, GateDecision("deny", tool.own_risk, ""), profile)
        if ruling := self._ruling(tool, {}):
            decision = decide(tool, GateDecision("allow", 1, ""), profile, ruling=ruling)
            if decision.decision != "allow":
                return replace(decision, decision="deny", reason=f"{decision.reason}; the provider runs it unasked")
        return GateDecision("allow", tool.own_risk, f"in scope of the profile {profile.name}, run by the provider")

    def profile_name(self, chosen: str | None) -> str:
        return self._policy.profile_name(chosen)

    async def profile(self, chosen: str | None) -> PolicyProfile:
        """The profile in force, with the scopes of the policy file if that has any."""
        policy = self._policy
        return policy.scoped(await self._stored(policy.profile_name(chosen)))

    @property
    def budget(self) -> Budget | None:
        """What the policy file says about it now."""
        return self._policy.budget

    @property
    def _policy(self) -> Policy:
        return self._rules.policy if self._rules else _NO_POLICY

    def _ruling(self, tool: ToolDescription, args: JsonObject) -> Ruling | None:
        return self._rules.ruling(tool, args) if self._rules else None

    async def _stored(self, name: str) -> PolicyProfile:
        try:
            return await self._policies.get_profile(name)
        except AgentsError as exc:
            if exc.code == "AGENTS-E-POLICY-INVALID":
                raise
            raise AgentsError("AGENTS-E-GATE-EVAL", f"The policy profile cannot be read: {exc.message}") from exc

    async def _verdict(self, agent: object, request: ToolCallRequest, profile: PolicyProfile) -> GateDecision:
        failure: str
        try:
            async with asyncio.timeout(self._limit_seconds):
                return verdict_from(await self._judge.evaluate(agent, request, profile))
        except TimeoutError:
            failure = "The judge took too long"
        except FAILURES as exc:
            if is_cancellation(exc):
                raise
            failure = self._told(exc)
        # Raised out here, so that what the judge raised does not travel along unmasked.
        raise AgentsError("AGENTS-E-GATE-EVAL", failure)

    def _shown(self, request: ToolCallRequest, tool: ToolDescription) -> ToolCallRequest:
        mask = self._masking
        return replace(
            request, args=mask.shown(request.args, tool.parameters), user_intent=mask.shown_text(request.user_intent)
        )

    def _told(self, failure: BaseException) -> str:
        """How the judge failed: for the debug log all of it, for everybody else its type and its message."""
        raised = failure.__cause__ if isinstance(failure, JudgeFailed) and failure.__cause__ else failure
        _logger.debug("the judge failed: %s", self._masking.text("".join(traceback.format_exception(raised))))
        if isinstance(raised, AgentsError) and raised.code == "AGENTS-E-GATE-EVAL":
            return self._masking.text(raised.message)
        said = one_line(self._masking.text(str(raised))).strip()
        if len(said) > LONGEST_FAILURE:
            said = f"{said[: LONGEST_FAILURE - 1]}…"
        return f"The judge failed with {type(raised).__name__}{f': {said}' if said else ''}"
