"""Makes the guard of a run, the same way for a new run and for one that is read back."""

from functools import partial

from openai_responses_mcp.agents.audit.log import AuditLog
from openai_responses_mcp.agents.clock import Clock
from openai_responses_mcp.agents.gate.budgets import Limit, SessionBudget, limits_of
from openai_responses_mcp.agents.gate.guardrails import guardrails_of
from openai_responses_mcp.agents.gate.ports import BudgetStore
from openai_responses_mcp.agents.gate.run_guard import RunGuard
from openai_responses_mcp.agents.gate.safety_gate import GateContext, SafetyGate
from openai_responses_mcp.agents.runs.models import Extensions
from openai_responses_mcp.agents.secrets.masking import Masking

_WHOSE = "agents"  # a policy file's budget counts the hours and days of all agents together


class RunGuards:
    def __init__(self, gate: SafetyGate, audit: AuditLog, masking: Masking, budgets: BudgetStore, clock: Clock) -> None:
        self._gate = gate
        self._audit = audit
        self._masking = masking
        self._budgets = budgets
        self._clock = clock

    def guard_for(self, run_id: str, agent: object, extensions: Extensions, user_intent: str) -> RunGuard:
        context = GateContext(extensions.policy_profile, extensions.require_human_approval, guardrails_of(agent))
        limits = partial(self._limits, extensions)
        budget = SessionBudget(self._budgets, self._clock, run_id, limits)
        return RunGuard(run_id, self._gate, self._audit, self._masking, context, user_intent, budget)

    def _limits(self, extensions: Extensions) -> list[Limit]:
        """The limits of the run, and that of the policy file as it is now. A session of the latter is the run."""
        limits = [*limits_of(self._gate.budget, _WHOSE)]
        if extensions.max_tool_calls is not None:
            limits.append(Limit(extensions.max_tool_calls, "calls", "run"))
        if extensions.max_tokens is not None:
            limits.append(Limit(extensions.max_tokens, "tokens", "run"))
        return limits
