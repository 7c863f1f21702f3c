"""The stores that the gate and the agents work on, in one place; and the stored runs of agents, with their port."""

from dataclasses import dataclass
from typing import Literal, Protocol

from openai_responses_mcp.gate.approvals.models import ApprovalStore, DecisionBook, DecisionNews, StandingStore
from openai_responses_mcp.gate.audit.records import AuditHead, ExecutionLogStore
from openai_responses_mcp.gate.budgets import BudgetStore
from openai_responses_mcp.gate.clock import Clock, PresenceStore
from openai_responses_mcp.gate.definitions import DefinitionPins
from openai_responses_mcp.gate.policy.profiles import PolicyStore
from openai_responses_mcp.gate.starts import StartBook

RunStatus = Literal["running", "paused", "resuming", "done", "denied", "failed"]


@dataclass(frozen=True, slots=True)
class RunRecord:
    """One run of an agent. `payload` is the saved run as JSON while it is paused, else empty."""

    run_id: str
    status: RunStatus
    agent_name: str
    created_at: str
    updated_at: str
    payload: str = ""


class RunStateStore(Protocol):
    """Keeps one record per run. Its fields may hold any text."""

    async def begin(self, record: RunRecord) -> None:
        """Store a new run. This process can read it at once, others as soon as anything else about it is stored."""
        await self.save(record)

    async def save(self, record: RunRecord) -> None:
        """Create or replace."""
        ...

    async def get(self, run_id: str) -> RunRecord | None: ...

    async def list_runs(self, status: RunStatus | None = None) -> list[RunRecord]:
        """Oldest first."""
        ...


@dataclass(frozen=True, slots=True)
class Stores:
    """`head` keeps the end of the log outside the log. `clock` gives the time to all code that uses the stores.

    `decisions` writes a decision and its record in one transaction, if approvals and log are in one database. `starts`
    does the same when guarded calls start. `pins` is set if the store outlives the process. `news` wakes code that waits
    for a decision.
    """

    policies: PolicyStore
    approvals: ApprovalStore
    runs: RunStateStore
    logs: ExecutionLogStore
    head: AuditHead | None
    clock: Clock
    standing: StandingStore
    budgets: BudgetStore
    presence: PresenceStore
    decisions: DecisionBook | None = None
    starts: StartBook | None = None
    pins: DefinitionPins | None = None
    news: DecisionNews | None = None
