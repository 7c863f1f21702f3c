"""What is written down about runs, and what only this process knows of them.

Agents and contexts are Python objects and cannot be stored. This process remembers those of its own latest runs, so
that a run can be resumed here without giving them again.
"""

import asyncio
import uuid
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import get_args

from openai_responses_mcp.agents.runs.ledger import RunLedger
from openai_responses_mcp.agents.runs.models import Extensions, RunSummary
from openai_responses_mcp.agents.runs.ports import EngineOptions
from openai_responses_mcp.gate.approvals.controller import ApprovalController
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.clock import Clock, timestamp
from openai_responses_mcp.gate.errors import AgentsError, require
from openai_responses_mcp.gate.json_values import OwnJson
from openai_responses_mcp.gate.stores import RunRecord, RunStateStore, RunStatus

MOST_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Run:
    """A run on its way: everything about it that is the same before and after a pause.

    `engine_state` is what the engine saved, where the run was read back.
    """

    record: RunRecord
    agent: object
    guard: RunLedger
    extensions: Extensions
    options: EngineOptions
    engine_state: OwnJson = field(default_factory=dict)

    @property
    def run_id(self) -> str:
        return self.record.run_id


@dataclass(frozen=True, slots=True)
class Remembered:
    """The agent of a run of this process, and the SDK's options that it was started with."""

    agent: object = None
    sdk: Mapping[str, object] = field(default_factory=dict)


class RunBook:
    def __init__(self, store: RunStateStore, clock: Clock) -> None:
        self._store = store
        self._clock = clock
        self._remembered: OrderedDict[str, Remembered] = OrderedDict()

    async def begin(self, agent: object, sdk: Mapping[str, object]) -> RunRecord:
        """A new run under a new id, stored and remembered."""
        now = timestamp(self._clock.now())
        name = str(getattr(agent, "name", ""))
        record = RunRecord(f"run_{uuid.uuid4().hex}", "running", name, created_at=now, updated_at=now)
        await self._store.begin(record)
        self.remember(record.run_id, Remembered(agent, sdk))
        return record

    async def get(self, run_id: str) -> RunRecord | None:
        return await self._store.get(run_id)

    async def list_runs(self, status: RunStatus | None = None) -> list[RunRecord]:
        return await self._store.list_runs(status)

    async def save(self, record: RunRecord, status: RunStatus, payload: str = "") -> None:
        now = timestamp(self._clock.now())
        await self._store.save(replace(record, status=status, payload=payload, updated_at=now))

    def remember(self, run_id: str, known: Remembered) -> None:
        self._remembered[run_id] = known
        while len(self._remembered) > MOST_REMEMBERED:
            self._remembered.popitem(last=False)

    def remembered(self, run_id: str) -> Remembered:
        return self._remembered.get(run_id, Remembered())

    def forget(self, run_id: str) -> None:
        self._remembered.pop(run_id, None)

    @property
    def agents(self) -> list[object]:
        """The agents of the runs that are not over."""
        return [known.agent for known in self._remembered.values()]


SECONDS_BETWEEN_LOOKS = 0.5

Sleep = Callable[[float], Awaitable[None]]


class WatchRuns:
    def __init__(self, book: RunBook, approvals: ApprovalController, sleep: Sleep = asyncio.sleep) -> None:
        self._book = book
        self._approvals = approvals
        self._sleep = sleep

    async def get(self, run_id: str) -> RunSummary:
        record = await self._book.get(run_id)
        if record is None:
            raise AgentsError("AGENTS-E-APPROVAL-NOT-FOUND", "There is no such run")
        return _summary(record)

    async def list_runs(self, status: RunStatus | None = None) -> list[RunSummary]:
        known = get_args(RunStatus)
        require(status is None or status in known, "AGENTS-E-RUNNER-CONFIG", f"status is one of {', '.join(known)}")
        return [_summary(record) for record in await self._book.list_runs(status)]

    async def wait(self, run_id: str, timeout_seconds: float | None = None) -> list[HumanApprovalRequest]:
        """The requests that the run waited for last, all decided. Too late: `AGENTS-E-APPROVAL-INVALID`."""
        is_time = timeout_seconds is None or (type(timeout_seconds) in (int, float) and timeout_seconds >= 0)
        require(is_time, "AGENTS-E-RUNNER-CONFIG", "timeout_seconds is a number from 0 up")
        await self.get(run_id)
        waiting = await self._approvals.pending(run_id)
        try:
            async with asyncio.timeout(timeout_seconds):
                while waiting:
                    await self._sleep(SECONDS_BETWEEN_LOOKS)
                    waiting = await self._approvals.pending(run_id)
        except TimeoutError:
            raise AgentsError(
                "AGENTS-E-APPROVAL-INVALID",
                "No decision in time",
                details={"reason": "timeout", "approval_ids": [request.approval_id for request in waiting]},
            ) from None
        return [record.request for record in await self._approvals.of_newest_pause(run_id)]


def _summary(record: RunRecord) -> RunSummary:
    return RunSummary(record.run_id, record.status, record.agent_name, record.created_at, record.updated_at)
