"""The stores that the gate and the agents work on, in one place; with the ports for runs of agents and starts of calls.

A guarded call starts in one transaction that pins its definition, spends its budget and writes its records. A decision
carries the definition that it was made with and the one that was pinned then. A call starts only if the pinned definition
is still one of the two, or none is pinned; so other calls and processes cannot slip in a definition that was never
approved.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol

from openai_responses_mcp.gate.approvals.models import ApprovalStore, DecisionBook, DecisionNews, StandingStore
from openai_responses_mcp.gate.audit.records import AuditHead, ExecutionLog, ExecutionLogStore
from openai_responses_mcp.gate.budgets import BudgetStore, Spending
from openai_responses_mcp.gate.calls import GuardedServer
from openai_responses_mcp.gate.clock import Clock, PresenceStore
from openai_responses_mcp.gate.definitions import DefinitionPins, is_same
from openai_responses_mcp.gate.policy.rules import PolicyStore

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


# ---------------------------------------------------------------------------------------------------------------------
# Starts of guarded calls. Pins belong to the name and the command of a server together.

StartOutcome = Literal["started", "changed", "over_budget"]


@dataclass(frozen=True, slots=True)
class KnownTool:
    """A tool's pin, and the other commands seen under the server's name if this command is new."""

    pin: str | None
    other_commands: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class CallStart:
    """`pin` is the definition that the call was decided with, `seen_pin` what was pinned then."""

    server: GuardedServer
    tool: str
    pin: str
    seen_pin: str | None
    spends: tuple[Spending, ...]
    records: tuple[ExecutionLog, ...]


class StartBook(Protocol):
    """Shared by every guard on the store. Raises `StoreUnavailable`."""

    async def known(self, server: GuardedServer, tool: str) -> KnownTool: ...

    async def start(self, before: Sequence[ExecutionLog], starts: Sequence[CallStart]) -> list[StartOutcome]:
        """Write the records `before`, then start each call that may start, all in one transaction.

        Raises `DuplicateRecord` as the log does; then nothing has started.
        """
        ...


def is_free_to_start(pinned: str | None, start: CallStart) -> bool:
    return pinned is None or any(pin is not None and is_same(pinned, pin) for pin in (start.pin, start.seen_pin))


# ---------------------------------------------------------------------------------------------------------------------


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
