"""The guard of a run, made the same way for a new run and for one that is read back."""

from openai_responses_mcp.agents.audit.log import AuditLog
from openai_responses_mcp.agents.gate.guardrails import guardrails_of
from openai_responses_mcp.agents.gate.run_guard import RunGuard
from openai_responses_mcp.agents.gate.safety_gate import GateContext, SafetyGate
from openai_responses_mcp.agents.runs.models import Extensions
from openai_responses_mcp.agents.secrets.masking import Masking


class Guards:
    def __init__(self, gate: SafetyGate, audit: AuditLog, masking: Masking) -> None:
        self._gate = gate
        self._audit = audit
        self._masking = masking

    def guard_for(self, run_id: str, agent: object, extensions: Extensions, user_intent: str) -> RunGuard:
        context = GateContext(extensions.policy_profile, extensions.require_human_approval, guardrails_of(agent))
        return RunGuard(run_id, self._gate, self._audit, self._masking, context, user_intent)
