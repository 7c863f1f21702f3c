"""What is written down about runs, and what only this process knows of them.

Agents and contexts are Python objects and cannot be stored. This process remembers those of its own latest runs, so
that a run can be resumed here without giving them again.
"""

import uuid
from collections import OrderedDict
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from openai_responses_mcp.agents.clock import Clock, timestamp
from openai_responses_mcp.agents.gate.run_guard import RunGuard
from openai_responses_mcp.agents.json_values import OwnJson
from openai_responses_mcp.agents.runs.models import Extensions, RunStatus
from openai_responses_mcp.agents.runs.ports import EngineOptions, RunRecord, RunStateStore

MOST_REMEMBERED = 1000


@dataclass(frozen=True, slots=True)
class Run:
    """A run on its way: everything about it that is the same before and after a pause.

    `engine_state` is what the engine saved, where the run was read back.
    """

    record: RunRecord
    agent: object
    guard: RunGuard
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
