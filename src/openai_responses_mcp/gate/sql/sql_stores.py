"""Policies, runs, pinned definitions, standing approvals, budgets, leases and what callers use, in the database."""

import asyncio
import json
import os
import uuid
from collections.abc import Mapping
from contextlib import suppress
from datetime import datetime, timedelta
from functools import cache
from pathlib import Path

from sqlalchemy import Connection, Insert, Table, bindparam, case, delete, func, insert, select, text, update

from openai_responses_mcp.domain.ports import WallClock
from openai_responses_mcp.domain.usage import (
    MINUTE_SECONDS,
    CallerLimits,
    OverLimit,
    UsageBook,
    seconds_until_tomorrow,
)
from openai_responses_mcp.gate.approvals.models import StandingApproval, StandingStore
from openai_responses_mcp.gate.budgets import BudgetStore
from openai_responses_mcp.gate.calls import ToolKind
from openai_responses_mcp.gate.clock import (
    BETWEEN_RENEWALS_SECONDS,
    LEASE_SECONDS,
    Presence,
    PresenceKind,
    PresenceStore,
    SystemClock,
    timestamp,
)
from openai_responses_mcp.gate.definitions import DefinitionPins
from openai_responses_mcp.gate.errors import StoreUnavailable
from openai_responses_mcp.gate.policy.rules import PROFILES, PolicyProfile, PolicyStore, profile_name
from openai_responses_mcp.gate.sql.log_files import HeadFile
from openai_responses_mcp.gate.sql.sql_approvals import SqlApprovalStore, SqlDecisionBook, SqlDecisionNews
from openai_responses_mcp.gate.sql.sql_database import IN_MEMORY, INSERTS, OnDatabase, SqlDatabase, row_of
from openai_responses_mcp.gate.sql.sql_log import BUDGET, SqlExecutionLogStore, SqlStartBook
from openai_responses_mcp.gate.sql.sql_tables import budgets, caller_calls, definitions, pins, policies, runs, standing
from openai_responses_mcp.gate.sql.sql_tables import presence as leases
from openai_responses_mcp.gate.stores import RunRecord, RunStateStore, RunStatus, Stores

# Built once, because each call of an agent needs it: building a statement takes longer than running it.
_PROFILE = select(policies).where(policies.c.name == bindparam("profile"))

_STANDING = [standing.c[name] for name in StandingApproval.__slots__]
_PRESENCE = [leases.c[name] for name in Presence.__slots__]
_LEASES_KEPT = timedelta(days=1)

_COME_BACK_SECONDS = 10.0
# One caller's calls begin one after the other, so that two processes cannot both take the last place.
_TURN = text("SELECT pg_advisory_xact_lock(hashtext(:caller))")


@cache
def _upsert(dialect: str, table: Table, *kept: str) -> Insert:
    """Insert a row, or update all of its columns but the key and those in `kept`."""
    statement = INSERTS[dialect](table)
    key = list(table.primary_key.columns)
    fixed = {*kept, *(column.name for column in key)}
    changed = {column.name: statement.excluded[column.name] for column in table.columns if column.name not in fixed}
    return statement.on_conflict_do_update(index_elements=key, set_=changed)


@cache
def _insert_if_new(dialect: str, table: Table) -> Insert:
    return INSERTS[dialect](table).on_conflict_do_nothing()


class SqlPolicyStore(OnDatabase, PolicyStore):
    async def get_profile(self, name: str) -> PolicyProfile:
        known = profile_name(name)
        rows = await self._database.rows(_PROFILE, {"profile": known})
        if not rows:
            return PROFILES[known]
        return PolicyProfile(known, rows[0].allow_up_to, rows[0].refuse_from, tuple(json.loads(rows[0].scopes)))

    async def set_profile(self, profile: PolicyProfile) -> None:
        values = {
            "name": profile.name,
            "allow_up_to": profile.allow_up_to,
            "refuse_from": profile.refuse_from,
            "scopes": json.dumps(profile.allowed_tool_scopes),
        }
        await self._database.change(_upsert(self._database.dialect, policies), values)


class SqlRunStateStore(OnDatabase, RunStateStore):
    async def begin(self, record: RunRecord) -> None:
        """Written together with the next work: until then the run has done nothing."""
        await self._database.open()
        statement = _insert_if_new(self._database.dialect, runs)
        self._database.work_later(lambda connection: connection.execute(statement, row_of(record)))

    async def save(self, record: RunRecord) -> None:
        await self._database.change(_upsert(self._database.dialect, runs, "created_at"), row_of(record))

    async def get(self, run_id: str) -> RunRecord | None:
        # A run that has just begun is written first.
        query = select(runs).where(runs.c.run_id == run_id)
        rows = await self._database.rows(query, is_writing=self._database.has_waiting)
        return RunRecord(**rows[0]._mapping) if rows else None

    async def list_runs(self, status: RunStatus | None = None) -> list[RunRecord]:
        query = select(runs).order_by(runs.c.created_at, runs.c.run_id)
        if status is not None:
            query = query.where(runs.c.status == status)
        rows = await self._database.rows(query, is_writing=self._database.has_waiting)
        return [RunRecord(**row._mapping) for row in rows]


class SqlPins(OnDatabase, DefinitionPins):
    async def known(self) -> Mapping[str, str]:
        """Includes the guard's: for rules it is the same tool, whatever command its server has."""

        def read(connection: Connection) -> dict[str, str]:
            found = (connection.execute(select(table.c.tool, table.c.pin)) for table in (definitions, pins))
            return {row.tool: row.pin for rows in found for row in rows}

        return await self._database.work(read, is_writing=False)

    async def put(self, tool: str, pin: str) -> None:
        await self._database.change(_upsert(self._database.dialect, pins), {"tool": tool, "pin": pin})


class SqlStandingStore(OnDatabase, StandingStore):
    async def create(self, made: StandingApproval) -> None:
        await self._database.change(insert(standing), row_of(made))

    async def get(self, standing_id: str) -> StandingApproval | None:
        rows = await self._database.rows(select(*_STANDING).where(standing.c.standing_id == standing_id))
        return StandingApproval(**rows[0]._mapping) if rows else None

    async def list_standing(
        self, tool_kind: ToolKind | None = None, tool_name: str | None = None
    ) -> list[StandingApproval]:
        query = select(*_STANDING).where(standing.c.ended_at.is_(None)).order_by(standing.c.number)
        if tool_name is not None:
            query = query.where(standing.c.tool_kind == tool_kind, standing.c.tool_name == tool_name)
        return [StandingApproval(**row._mapping) for row in await self._database.rows(query)]

    async def end(self, standing_id: str, ended_at: str, because: str) -> bool:
        statement = (
            update(standing)
            .where(standing.c.standing_id == standing_id, standing.c.ended_at.is_(None))
            .values(ended_at=ended_at, ended_because=because)
        )
        return await self._database.change(statement) == 1


class SqlBudgetStore(OnDatabase, BudgetStore):
    """Each change is one statement, so that none is lost."""

    async def read(self, window: str) -> tuple[int, int]:
        rows = await self._database.rows(BUDGET, {"spent": window})
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


class SqlPresenceStore(OnDatabase, PresenceStore):
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
        return [Presence(**row._mapping) for row in await self._database.rows(query)]


class SqlUsageBook(UsageBook):
    """Limits of callers hold for all processes on the store together. Tokens per day are stored like a budget.

    A running call has a row with a lease, which its process renews. If the process is killed, the call stops counting
    when the lease expires.
    """

    def __init__(self, database: SqlDatabase, clock: WallClock) -> None:
        self._database = database
        self._clock = clock
        self._open: dict[str, str] = {}
        self._renewing: asyncio.Task[None] | None = None

    async def begin(self, caller: str, limits: CallerLimits) -> str | OverLimit:
        call_id, now = uuid.uuid4().hex, self._clock.now()
        try:
            over = await self._database.work(lambda connection: self._begun(connection, call_id, caller, limits, now))
        except StoreUnavailable:
            return OverLimit("uncounted", seconds=_COME_BACK_SECONDS)
        if over is not None:
            return over
        self._open[call_id] = caller
        if self._renewing is None:
            self._renewing = asyncio.create_task(self._renew())
        return call_id

    async def end(self, call_id: str, tokens: int = 0) -> None:
        caller = self._open.pop(call_id)
        window, ended = _window(caller, self._clock), timestamp(self._clock.now())

        def put(connection: Connection) -> None:
            connection.execute(update(caller_calls).where(caller_calls.c.call_id == call_id).values(ended_at=ended))
            if tokens:
                put_budget(connection, window, used=tokens)

        try:
            await self._database.work(put)
        except StoreUnavailable:
            # Written with the next successful transaction.
            self._database.work_later(put)

    def _begun(
        self, connection: Connection, call_id: str, caller: str, limits: CallerLimits, now: datetime
    ) -> OverLimit | None:
        if not self._database.is_sqlite:
            connection.execute(_TURN, {"caller": caller})
        moment, rows = timestamp(now), caller_calls.c
        minute_ago, lease = (timestamp(now - timedelta(seconds=one)) for one in (MINUTE_SECONDS, LEASE_SECONDS))
        over = (rows.started_at <= minute_ago) & (rows.ended_at.is_not(None) | (rows.renewed_at < lease))
        connection.execute(delete(caller_calls).where(over))

        def count(*conditions: object) -> int:
            query = select(func.count()).select_from(caller_calls).where(rows.caller == caller, *conditions)  # type: ignore[arg-type]
            return int(connection.execute(query).scalar_one())

        if limits.tokens_per_day is not None:
            used = select(budgets.c.used).where(budgets.c.window == _window(caller, self._clock))
            if (connection.execute(used).scalar() or 0) >= limits.tokens_per_day:
                return OverLimit("tokens_per_day", limits.tokens_per_day, seconds_until_tomorrow(now))
        is_in_flight = rows.ended_at.is_(None) & (rows.renewed_at >= lease)
        if limits.calls_at_once is not None and count(is_in_flight) >= limits.calls_at_once:
            return OverLimit("calls_at_once", limits.calls_at_once)
        if limits.calls_per_minute is not None and count(rows.started_at > minute_ago) >= limits.calls_per_minute:
            begun = select(rows.started_at).where(rows.caller == caller).order_by(rows.started_at.desc())
            oldest = connection.execute(begun.offset(limits.calls_per_minute - 1).limit(1)).scalar_one()
            waited = (now - datetime.fromisoformat(oldest)).total_seconds()
            return OverLimit("calls_per_minute", limits.calls_per_minute, MINUTE_SECONDS - waited)
        row = {"call_id": call_id, "caller": caller, "started_at": moment, "renewed_at": moment}
        connection.execute(caller_calls.insert().values(row))
        return None

    async def _renew(self) -> None:
        """Renew the leases while calls run. After a failure the next renewal tries again."""
        try:
            while self._open:
                await self._clock.sleep(BETWEEN_RENEWALS_SECONDS)
                await self._renewed()
        finally:
            self._renewing = None

    async def _renewed(self) -> None:
        is_open, now = caller_calls.c.call_id.in_(list(self._open)), timestamp(self._clock.now())
        with suppress(StoreUnavailable):
            await self._database.change(update(caller_calls).where(is_open).values(renewed_at=now))


def _window(caller: str, clock: WallClock) -> str:
    return f"tokens per day {clock.today().isoformat()} caller {caller}"


def open_stores(
    url: str | None = None, audit_head: str | os.PathLike[str] | None = None, *, must_exist: bool = False
) -> Stores:
    """Connects to nothing yet. Without a URL the database is in memory."""
    database = SqlDatabase(IN_MEMORY if url is None else url, must_exist=must_exist)
    file, head = database.file, None
    if audit_head is not None:
        head = HeadFile(audit_head, is_sole_writer=file is not None or database.is_in_memory)
    elif file is not None:
        head = HeadFile(Path(f"{file}.head"))
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
