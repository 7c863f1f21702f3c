"""Policies, runs, pinned definitions, standing approvals, budgets and leases in the database."""

import json
import os
from collections.abc import Mapping
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, Insert, Table, bindparam, case, delete, insert, select, update

from openai_responses_mcp.gate.approvals.models import StandingApproval, StandingStore
from openai_responses_mcp.gate.audit.records import AuditHead
from openai_responses_mcp.gate.budgets import BudgetStore
from openai_responses_mcp.gate.calls import ToolKind
from openai_responses_mcp.gate.clock import Presence, PresenceKind, PresenceStore, SystemClock, timestamp
from openai_responses_mcp.gate.definitions import DefinitionPins
from openai_responses_mcp.gate.policy.profiles import PROFILES, PolicyProfile, PolicyStore, ProfileName, profile_name
from openai_responses_mcp.gate.sql.log_files import HeadFile
from openai_responses_mcp.gate.sql.sql_approvals import SqlApprovalStore, SqlDecisionBook
from openai_responses_mcp.gate.sql.sql_database import IN_MEMORY, INSERTS, SqlDatabase, row_of
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore, SqlStartBook
from openai_responses_mcp.gate.sql.sql_news import SqlDecisionNews
from openai_responses_mcp.gate.sql.sql_tables import budgets, definitions, pins, policies, runs, standing
from openai_responses_mcp.gate.sql.sql_tables import presence as leases
from openai_responses_mcp.gate.stores import RunRecord, RunStateStore, RunStatus, Stores

# Made once: putting a statement together takes longer than running it.
_PROFILE = select(policies.c.allow_up_to, policies.c.refuse_from, policies.c.scopes).where(
    policies.c.name == bindparam("name")
)
_RUN = select(runs).where(runs.c.run_id == bindparam("run_id"))
_PINS = select(pins.c.tool, pins.c.pin)
_STANDING = [standing.c[name] for name in StandingApproval.__slots__]
_ALL_STANDING = select(*_STANDING).where(standing.c.ended_at.is_(None)).order_by(standing.c.number)
_STANDING_OF_TOOL = _ALL_STANDING.where(
    standing.c.tool_kind == bindparam("kind"), standing.c.tool_name == bindparam("name")
)
_PRESENCE = [leases.c[name] for name in Presence.__slots__]
_LEASES_KEPT = timedelta(days=1)
_PINS_OF_GUARD = select(definitions.c.tool, definitions.c.pin)


@cache
def _upsert(dialect: str, table: Table, *kept: str) -> Insert:
    """Insert a row, or change all of it but its key and what is kept as it was."""
    statement = INSERTS[dialect](table)
    key = list(table.primary_key.columns)
    fixed = {*kept, *(column.name for column in key)}
    changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in fixed}
    return statement.on_conflict_do_update(index_elements=key, set_=changed)


@cache
def _insert_new(dialect: str, table: Table) -> Insert:
    return INSERTS[dialect](table).on_conflict_do_nothing()


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
        rows = await self._database.rows(_PROFILE, {"name": known})
        if not rows:
            return PROFILES[known]
        row = rows[0]
        return PolicyProfile(known, row.allow_up_to, row.refuse_from, tuple(json.loads(row.scopes)))

    async def set_profile(self, profile: PolicyProfile) -> None:
        values = {
            "name": profile.name,
            "allow_up_to": profile.allow_up_to,
            "refuse_from": profile.refuse_from,
            "scopes": json.dumps(profile.allowed_tool_scopes),
        }
        await self._database.change(_upsert(self._database.dialect, policies), values)
        self._read.clear()


class SqlRunStateStore(RunStateStore):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def begin(self, record: RunRecord) -> None:
        """Written together with the next work: until then the run has done nothing."""
        await self._database.open()
        statement = _insert_new(self._database.dialect, runs)
        self._database.work_later(lambda connection: connection.execute(statement, row_of(record)))

    async def save(self, record: RunRecord) -> None:
        await self._database.change(_upsert(self._database.dialect, runs, "created_at"), row_of(record))

    async def get(self, run_id: str) -> RunRecord | None:
        # A run that has just begun is written first.
        rows = await self._database.rows(_RUN, {"run_id": run_id}, is_writing=self._database.has_waiting)
        return RunRecord(**rows[0]._mapping) if rows else None

    async def list_runs(self, status: RunStatus | None = None) -> list[RunRecord]:
        query = select(runs).order_by(runs.c.created_at, runs.c.run_id)
        if status is not None:
            query = query.where(runs.c.status == status)
        rows = await self._database.rows(query, is_writing=self._database.has_waiting)
        return [RunRecord(**row._mapping) for row in rows]


class SqlPins(DefinitionPins):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def known(self) -> Mapping[str, str]:
        """Also those of the guard: for rules it is the same tool, whatever command its server has."""

        def read(connection: Connection) -> dict[str, str]:
            rows = [*connection.execute(_PINS_OF_GUARD), *connection.execute(_PINS)]
            return {row.tool: row.pin for row in rows}

        return await self._database.work(read, is_writing=False)

    async def put(self, tool: str, pin: str) -> None:
        await self._database.change(_upsert(self._database.dialect, pins), {"tool": tool, "pin": pin})


class SqlStandingStore(StandingStore):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def create(self, made: StandingApproval) -> None:
        await self._database.change(insert(standing), row_of(made))

    async def get(self, standing_id: str) -> StandingApproval | None:
        query = select(*_STANDING).where(standing.c.standing_id == standing_id)
        rows = await self._database.rows(query)
        return StandingApproval(**rows[0]._mapping) if rows else None

    async def list_standing(
        self, tool_kind: ToolKind | None = None, tool_name: str | None = None
    ) -> list[StandingApproval]:
        query = _ALL_STANDING if tool_name is None else _STANDING_OF_TOOL
        tool = {} if tool_name is None else {"kind": tool_kind, "name": tool_name}
        rows = await self._database.rows(query, tool)
        return [StandingApproval(**row._mapping) for row in rows]

    async def end(self, standing_id: str, ended_at: str, because: str) -> bool:
        statement = (
            update(standing)
            .where(standing.c.standing_id == standing_id, standing.c.ended_at.is_(None))
            .values(ended_at=ended_at, ended_because=because)
        )
        return await self._database.change(statement) == 1


class SqlBudgetStore(BudgetStore):
    """Each change is one statement, so that none is lost."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def read(self, window: str) -> tuple[int, int]:
        query = select(budgets.c.used, budgets.c.allowed_to).where(budgets.c.window == window)
        rows = await self._database.rows(query)
        return (int(rows[0].used), int(rows[0].allowed_to)) if rows else (0, 0)

    async def spend(self, window: str, amount: int) -> None:
        await self._database.work(lambda connection: put_budget(connection, window, used=amount))

    async def allow_to(self, window: str, amount: int) -> None:
        await self._database.work(lambda connection: put_budget(connection, window, allowed_to=amount))


def put_budget(connection: Connection, window: str, used: int = 0, allowed_to: int = 0) -> None:
    insert = INSERTS[connection.dialect.name](budgets)
    statement = insert.values(window=window, used=used, allowed_to=allowed_to).on_conflict_do_update(
        index_elements=[budgets.c.window],
        set_={
            "used": budgets.c.used + used,
            "allowed_to": case((budgets.c.allowed_to < allowed_to, allowed_to), else_=budgets.c.allowed_to),
        },
    )
    connection.execute(statement)


class SqlPresenceStore(PresenceStore):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def renew(self, presence: Presence) -> None:
        long_ago = timestamp(datetime.fromisoformat(presence.renewed_at) - _LEASES_KEPT)

        def put(connection: Connection) -> None:
            gone = (leases.c.presence_id == presence.presence_id) | (leases.c.renewed_at < long_ago)
            connection.execute(delete(leases).where(gone))
            connection.execute(insert(leases), row_of(presence))

        await self._database.work(put)

    async def leave(self, presence_id: str) -> None:
        await self._database.change(delete(leases).where(leases.c.presence_id == presence_id))

    async def renewed_since(self, moment: str, kind: PresenceKind | None = None) -> list[Presence]:
        query = select(*_PRESENCE).where(leases.c.renewed_at >= moment).order_by(leases.c.since, leases.c.presence_id)
        if kind is not None:
            query = query.where(leases.c.kind == kind)
        rows = await self._database.rows(query)
        return [Presence(**row._mapping) for row in rows]


def open_stores(
    url: str | None = None, audit_head: str | os.PathLike[str] | None = None, *, must_exist: bool = False
) -> Stores:
    """Connects to nothing yet. Without a URL the database is in memory."""
    database = SqlDatabase(IN_MEMORY if url is None else url, must_exist=must_exist)
    head = _head_for(database, audit_head)
    logs = SqlExecutionLogStore(database, head)
    return Stores(
        policies=SqlPolicyStore(database),
        approvals=SqlApprovalStore(database),
        runs=SqlRunStateStore(database),
        logs=logs,
        head=head,
        clock=SystemClock(),
        standing=SqlStandingStore(database),
        budgets=SqlBudgetStore(database),
        presence=SqlPresenceStore(database),
        decisions=SqlDecisionBook(database, logs),
        starts=SqlStartBook(database, logs),
        pins=None if database.is_in_memory else SqlPins(database),
        news=SqlDecisionNews(database),
    )


def _head_for(database: SqlDatabase, path: str | os.PathLike[str] | None) -> AuditHead | None:
    file = database.file
    if path is not None:
        return HeadFile(path, is_sole_writer=file is not None or database.is_in_memory)
    return None if file is None else HeadFile(Path(f"{file}.head"))
