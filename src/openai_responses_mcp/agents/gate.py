"""The gate. `decide` is the whole rule: strictest wins, among scope, risk, verdict and what tool and caller demand.

| from                      | allow                 | needs_human                | deny                    |
| scopes of the profile     | one matches           |                            | none matches            |
| risk level                | up to `allow_up_to`   | in between                 | from `refuse_from`      |
| the judge                 | as it says            | as it says                 | as it says              |
| the tool's own demand     |                       | `require_approval`         |                         |
| the caller's demand       |                       | `require_human_approval`   |                         |

The risk level is the greater of the tool's own and the verdict's. `SafetyGate` brings in the judge and fails closed.
"""

import asyncio
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.guardrails import NO_GUARDRAILS, AgentGuardrails
from openai_responses_mcp.agents.models import Decision, GateDecision, PolicyProfile, ToolCallRequest, ToolDescription
from openai_responses_mcp.agents.ports import Judge, PolicyStore
from openai_responses_mcp.agents.safety import verdict_from

JUDGE_LIMIT_SECONDS = 120.0

_STRICTNESS: dict[Decision, int] = {"allow": 0, "needs_human": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class GateContext:
    """Under which rules a call is judged."""

    policy_profile: str
    require_human_approval: bool = False
    guardrails: AgentGuardrails = NO_GUARDRAILS


def is_in_scope(tool: ToolDescription, profile: PolicyProfile) -> bool:
    return any(fnmatchcase(tool.scope_name, scope) for scope in profile.allowed_tool_scopes)


def decide(
    tool: ToolDescription, verdict: GateDecision, profile: PolicyProfile, *, require_human_approval: bool = False
) -> GateDecision:
    """Allow, deny or ask a human, with every reason that led there."""
    risk = max(tool.own_risk, verdict.risk_level)
    votes: list[tuple[Decision, str]] = [(verdict.decision, verdict.reason)]
    if not is_in_scope(tool, profile):
        votes.append(("deny", f"{tool.scope_name} is outside the scopes of the profile {profile.name}"))
    if risk >= profile.refuse_from:
        votes.append(("deny", f"risk {risk} is refused by the profile {profile.name}"))
    elif risk > profile.allow_up_to:
        votes.append(("needs_human", f"risk {risk} needs a human under the profile {profile.name}"))
    if tool.require_approval:
        votes.append(("needs_human", tool.approval_reason))
    if require_human_approval:
        votes.append(("needs_human", "the caller asks for approval"))
    strictest = max((decision for decision, _ in votes), key=_STRICTNESS.__getitem__)
    reasons = [reason for decision, reason in votes if decision == strictest and reason]
    return GateDecision(strictest, risk, "; ".join(reasons))


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
            # Nobody needs to be asked, so nobody is shown the arguments.
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
        except Exception as exc:  # a judge is foreign code: whatever happens in it is a refusal
            failure = f"The judge failed with {type(exc).__name__}"
        # Raised out here so that the text of the judge's own error, which may hold arguments, does not travel along.
        raise AgentsError("AGENTS-E-GATE-EVAL", failure)
