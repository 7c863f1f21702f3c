"""All stores of this half, each behind the port of its subject."""

from dataclasses import dataclass

from openai_responses_mcp.agents.approvals.ports import ApprovalStore, DecisionBook, StandingStore
from openai_responses_mcp.agents.audit.ports import AuditHead, ExecutionLogStore
from openai_responses_mcp.agents.clock import Clock
from openai_responses_mcp.agents.gate.ports import BudgetStore
from openai_responses_mcp.agents.mcp.ports import DefinitionPins
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.runs.ports import RunStateStore


@dataclass(frozen=True, slots=True)
class Stores:
    """`head` is where the log ends, kept outside of it; `clock` tells the time to whoever uses the stores.

    `decisions` writes a decision and its record in one transaction, if approvals and log are in one database. `pins` is
    set if the store outlives the process.
    """

    policies: PolicyStore
    approvals: ApprovalStore
    runs: RunStateStore
    logs: ExecutionLogStore
    head: AuditHead | None
    clock: Clock
    standing: StandingStore
    budgets: BudgetStore
    decisions: DecisionBook | None = None
    pins: DefinitionPins | None = None
