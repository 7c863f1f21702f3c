"""A ledger on stores in memory, for tests of the ledger itself."""

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.gate.audit.log import AuditLog, AuditMode
from openai_responses_mcp.gate.audit.records import ExecutionLogStore
from openai_responses_mcp.gate.budgets import SessionBudget
from openai_responses_mcp.gate.safety_gate import GateContext, Judge, SafetyGate
from openai_responses_mcp.gate.secrets.masking import Masking
from tests.agents.fake_stores import FakeBudgetStore, FakePolicyStore
from tests.agents.fakes import FakeClock

MASKING = Masking({"MY_API_KEY": "hunter2hunter2"})


def ledger_on(
    store: ExecutionLogStore, judge: Judge, context: GateContext | None = None, mode: AuditMode = "best_effort"
) -> RunLedger:
    return ledger_with(audit_on(store, mode), judge, context)


def audit_on(store: ExecutionLogStore, mode: AuditMode = "best_effort") -> AuditLog:
    return AuditLog(store, FakeClock(), MASKING, mode)


def ledger_with(audit: AuditLog, judge: Judge, context: GateContext | None = None) -> RunLedger:
    gate = SafetyGate(judge, FakePolicyStore())
    return RunLedger("r1", gate, audit, MASKING, context or GateContext("fast"), no_budget(), "what the user typed")


def no_budget() -> SessionBudget:
    return SessionBudget(FakeBudgetStore(), FakeClock(), "r1", list)
