"""All stores, each behind the port of its subject, and runs of agents as the store keeps them."""

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
    """`payload` is JSON and holds a paused run."""

    run_id: str
    status: RunStatus
    agent_name: str
    created_at: str
    updated_at: str
    payload: str = ""


class RunStateStore(Protocol):
    """Any text can be stored."""

    async def begin(self, record: RunRecord) -> None:
        """A new run. This process sees it at once, others no later than anything else that is stored about it."""
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
    """`head` is where the log ends, kept outside of it; `clock` is the clock of the stores' users.

    `decisions` writes a decision and its record in one transaction, if approvals and log are in one database; `starts` does
    so for calls of the guard. `pins` is set if the store outlives the process. `news` tells of decisions at once.
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
