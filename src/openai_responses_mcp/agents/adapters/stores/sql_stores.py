"""Policies, runs and pinned definitions in the database."""

import json
from collections.abc import Mapping
from functools import partial

from sqlalchemy import Insert, Table, bindparam, select
from sqlalchemy.dialects import postgresql, sqlite

from openai_responses_mcp.agents.adapters.stores.sql_database import SqlDatabase
from openai_responses_mcp.agents.adapters.stores.sql_prepared import Prepared
from openai_responses_mcp.agents.adapters.stores.sql_tables import pins, policies, runs
from openai_responses_mcp.agents.mcp.ports import DefinitionPins
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import PROFILES, PolicyProfile, ProfileName, profile_name
from openai_responses_mcp.agents.runs.models import RunStatus
from openai_responses_mcp.agents.runs.ports import RunRecord, RunStateStore

# Made once: putting a statement together takes longer than running it.
_PROFILE = Prepared(
    select(policies.c.allow_up_to, policies.c.refuse_from, policies.c.scopes).where(
        policies.c.name == bindparam("name")
    )
)
_RUN = select(runs).where(runs.c.run_id == bindparam("run_id"))
_PINS = select(pins.c.tool, pins.c.pin)


def _upsert(table: Table, *kept: str) -> Prepared:
    """Insert a row, or change all of it but its key and what is kept as it was."""
    key = list(table.primary_key.columns)
    fixed = {*kept, *(column.name for column in key)}
    made: list[Insert] = []
    for dialect in (sqlite, postgresql):
        statement = dialect.insert(table)
        changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in fixed}
        made.append(statement.on_conflict_do_update(index_elements=key, set_=changed))
    return Prepared(*made)


_PUT_PROFILE = _upsert(policies)
_PUT_RUN = _upsert(runs, "created_at")
_PUT_PIN = _upsert(pins)
_BEGIN_RUN = Prepared(sqlite.insert(runs).on_conflict_do_nothing(), postgresql.insert(runs).on_conflict_do_nothing())


class SqlPolicyStore(PolicyStore):
    """Asked before every call. A database in memory is read once, since no other process can change it."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._read: dict[str, PolicyProfile] = {}

    async def get_profile(self, name: str) -> PolicyProfile:
        known = profile_name(name)
        if known not in self._read or not self._database.is_in_memory:
            self._read[known] = await self._profile(known)
        return self._read[known]

    async def _profile(self, known: ProfileName) -> PolicyProfile:
        row = await self._database.work(partial(_PROFILE.first, name=known), is_writing=False)
        if row is None:
            return PROFILES[known]
        allow_up_to, refuse_from, scopes = row
        return PolicyProfile(known, allow_up_to, refuse_from, tuple(json.loads(scopes)))

    async def set_profile(self, profile: PolicyProfile) -> None:
        values = {
            "name": profile.name,
            "allow_up_to": profile.allow_up_to,
            "refuse_from": profile.refuse_from,
            "scopes": json.dumps(profile.allowed_tool_scopes),
        }
        await self._database.work(partial(_PUT_PROFILE.run, rows=[values]))
        self._read.clear()


class SqlRunStateStore(RunStateStore):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def begin(self, record: RunRecord) -> None:
        """Written together with the next work: until then the run has done nothing."""
        await self._database.open()
        self._database.work_later(partial(_BEGIN_RUN.run, rows=[_run_values(record)]))

    async def save(self, record: RunRecord) -> None:
        await self._database.work(partial(_PUT_RUN.run, rows=[_run_values(record)]))

    async def get(self, run_id: str) -> RunRecord | None:
        # A run that has just begun is written first.
        is_writing = self._database.has_waiting
        row = await self._database.work(lambda c: c.execute(_RUN, {"run_id": run_id}).first(), is_writing=is_writing)
        return None if row is None else RunRecord(**row._mapping)

    async def list_runs(self, status: RunStatus | None = None) -> list[RunRecord]:
        query = select(runs).order_by(runs.c.created_at, runs.c.run_id)
        if status is not None:
            query = query.where(runs.c.status == status)
        is_writing = self._database.has_waiting
        rows = await self._database.work(lambda connection: connection.execute(query).all(), is_writing=is_writing)
        return [RunRecord(**row._mapping) for row in rows]


def _run_values(record: RunRecord) -> dict[str, object]:
    return {name: getattr(record, name) for name in RunRecord.__slots__}


class SqlPins(DefinitionPins):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def known(self) -> Mapping[str, str]:
        rows = await self._database.work(lambda connection: connection.execute(_PINS).all(), is_writing=False)
        return {row.tool: row.pin for row in rows}

    async def put(self, tool: str, pin: str) -> None:
        await self._database.work(partial(_PUT_PIN.run, rows=[{"tool": tool, "pin": pin}]))
