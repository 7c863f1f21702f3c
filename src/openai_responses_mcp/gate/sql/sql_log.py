"""The audit log in the database, with its head outside, and starts of guarded calls.

An append holds a lock until the commit: the database lock on SQLite, a row lock on PostgreSQL. The head is given the
new end of the log inside the transaction, and a confirmation after the commit. A transaction that starts calls holds
the same lock: pins, budgets and records change together or not at all, and what it reads stays true until it commits,
in every process.
"""

import json
import logging
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from sqlalchemy import Connection, Row, bindparam, delete, func, insert, select, update
from sqlalchemy.exc import IntegrityError

from openai_responses_mcp.gate import reasons
from openai_responses_mcp.gate.audit.records import (
    BEGINNING,
    AuditHead,
    ExecutionLog,
    ExecutionLogStore,
    LogPlace,
    linked,
)
from openai_responses_mcp.gate.budgets import Spending
from openai_responses_mcp.gate.calls import GuardedServer
from openai_responses_mcp.gate.errors import DuplicateRecord, StoreUnavailable
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.sql.sql_database import INSERTS, SqlDatabase
from openai_responses_mcp.gate.sql.sql_tables import budgets, definitions, log_turns, logs, pins, servers
from openai_responses_mcp.gate.stores import CallStart, KnownTool, StartBook, StartOutcome, is_free_to_start

_logger = logging.getLogger("openai_responses_mcp.agents")

# Built once: building a statement takes longer than running it.
_TAKE_TURN = update(log_turns).where(log_turns.c.id == 1).values(taken=log_turns.c.taken + 1)
_NEWEST = select(func.max(logs.c.sequence)).scalar_subquery()
_LAST = select(logs.c.sequence, logs.c.hash).where(logs.c.sequence == _NEWEST)
_HASH_AT = select(logs.c.hash).where(logs.c.sequence == bindparam("number"))
_APPEND = insert(logs)
_FIELDS = tuple(logs.c.keys())
_ENCODER = json.JSONEncoder(ensure_ascii=False)


class SqlExecutionLogStore(ExecutionLogStore):
    def __init__(self, database: SqlDatabase, head: AuditHead | None = None) -> None:
        self._database = database
        self._head = head

    async def append(self, log: ExecutionLog) -> ExecutionLog:
        return (await self.append_all([log]))[0]

    async def append_all(self, batch: Sequence[ExecutionLog]) -> list[ExecutionLog]:
        """All or none."""
        records = await self._database.work(partial(self.append_in, batch=batch))
        self.appended(records)
        return records

    async def move_out(self, moved: Sequence[ExecutionLog], record: ExecutionLog) -> ExecutionLog | None:
        last = LogPlace.of(moved[-1])
        is_moved = logs.c.sequence <= last.sequence

        def move(connection: Connection) -> list[ExecutionLog]:
            self.take_turn(connection)
            count = connection.execute(select(func.count()).select_from(logs).where(is_moved)).scalar_one()
            if count != len(moved) or _hash_at(connection, last.sequence) != last.hash:
                return []
            records = self.append_in(connection, [record], archived_to=last.sequence)
            connection.execute(delete(logs).where(is_moved))
            return records

        records = await self._database.work(move)
        self.appended(records)
        return records[0] if records else None

    def take_turn(self, connection: Connection) -> None:
        """Hold the lock until the transaction ends. On SQLite every writing transaction holds it already."""
        if not self._database.is_sqlite:
            connection.execute(_TAKE_TURN)

    def append_in(
        self, connection: Connection, batch: Sequence[ExecutionLog], archived_to: int = 0
    ) -> list[ExecutionLog]:
        """Append inside the caller's transaction; the caller calls `appended` after the commit."""
        if not batch:
            return []
        self.take_turn(connection)
        last = connection.execute(_LAST).first()
        before = BEGINNING if last is None else LogPlace(*last)
        records: list[ExecutionLog] = []
        for log in batch:
            records.append(linked(log, records[-1] if records else before))
        try:
            connection.execute(_APPEND, [_values(record) for record in records])
        except IntegrityError as exc:
            raise DuplicateRecord(f"{batch[0].event} of this call is recorded already") from exc
        if self._head is not None:
            self._head.announce(before, LogPlace.of(records[-1]), partial(_hash_at, connection), archived_to)
        return records

    def appended(self, records: Sequence[ExecutionLog]) -> None:
        """Confirm to the head. If that fails the records stay valid, because the head was given their end before."""
        if self._head is None or not records:
            return
        try:
            self._head.confirm(records[-1])
        except StoreUnavailable as exc:
            _logger.warning("AGENTS-E-LOG-STORE: %s", exc.message)

    async def query(self, run_id: str | None = None, since: str | None = None) -> list[ExecutionLog]:
        query = select(logs).order_by(logs.c.sequence)
        if run_id is not None:
            query = query.where(logs.c.run_id == run_id)
        if since is not None:
            query = query.where(logs.c.timestamp >= since)
        return [_log_from(row) for row in await self._database.rows(query)]


def _hash_at(connection: Connection, number: int) -> str | None:
    found: str | None = connection.execute(_HASH_AT, {"number": number}).scalar()
    return found


def _values(record: ExecutionLog) -> dict[str, object]:
    values = {name: getattr(record, name) for name in _FIELDS}
    values["arguments"] = arguments_text(record.arguments)
    values["reasons"] = reasons.as_text(record.reasons)
    return values


def _log_from(row: Row[Any]) -> ExecutionLog:
    log = ExecutionLog(**row._mapping)
    read = reasons.from_text(row.reasons)
    return replace(log, arguments=arguments_in(row.arguments), reasons=read, who=row.who or "")


def arguments_text(arguments: JsonObject) -> str:
    """Not as ASCII escapes: two lone surrogates would be read back as one character."""
    return _ENCODER.encode(dict(arguments))


def arguments_in(text: str) -> JsonObject:
    """Text that is not JSON was tampered with. It is shown unchanged, and its hash will not match."""
    try:
        arguments: JsonObject = json.loads(text)
    except (ValueError, RecursionError):
        return {"<unreadable>": text}
    return arguments


# ---------------------------------------------------------------------------------------------------------------------
# Starts of guarded calls


_COMMANDS = (
    select(servers.c.fingerprint, servers.c.command, definitions.c.pin)
    .outerjoin(
        definitions,
        (definitions.c.fingerprint == servers.c.fingerprint) & (definitions.c.tool == bindparam("tool")),
    )
    .where(servers.c.name == bindparam("server"))
    .order_by(servers.c.number)
)
_PIN_BY_NAME = select(pins.c.pin).where(pins.c.tool == bindparam("tool"))
BUDGET = select(budgets.c.used, budgets.c.allowed_to).where(budgets.c.window == bindparam("spent"))
_SPEND = update(budgets).where(budgets.c.window == bindparam("spent")).values(used=budgets.c.used + 1)


class SqlStartBook(StartBook):
    def __init__(self, database: SqlDatabase, logs: SqlExecutionLogStore) -> None:
        self._database = database
        self._logs = logs

    async def known(self, server: GuardedServer, tool: str) -> KnownTool:
        pin, commands = await self._database.work(partial(_known, server=server, tool=tool), is_writing=False)
        return KnownTool(pin, () if server.fingerprint in commands else tuple(commands.values()))

    async def start(self, before: Sequence[ExecutionLog], starts: Sequence[CallStart]) -> list[StartOutcome]:
        outcomes: list[StartOutcome] = []

        def put(connection: Connection) -> list[ExecutionLog]:
            self._logs.take_turn(connection)
            outcomes[:] = [_started(connection, start) for start in starts]
            started = zip(starts, outcomes, strict=True)
            records = [record for start, outcome in started if outcome == "started" for record in start.records]
            return self._logs.append_in(connection, [*before, *records])

        self._logs.appended(await self._database.work(put))
        return outcomes


def _known(connection: Connection, server: GuardedServer, tool: str) -> tuple[str | None, dict[str, str]]:
    """The tool's pin, and the commands seen under the server's name by their fingerprints."""
    rows = connection.execute(_COMMANDS, {"server": server.name, "tool": tool}).all()
    if not rows:
        # Earlier versions pinned by name alone. The first command under the name takes these over.
        return connection.execute(_PIN_BY_NAME, {"tool": tool}).scalar(), {}
    pin = next((row.pin for row in rows if row.fingerprint == server.fingerprint), None)
    return pin, {row.fingerprint: row.command for row in rows}


def _started(connection: Connection, start: CallStart) -> StartOutcome:
    server = start.server
    pinned, commands = _known(connection, server, start.tool)
    if not is_free_to_start(pinned, start):
        return "changed"
    if not all(_has_room(connection, one) for one in start.spends):
        return "over_budget"
    for one in start.spends:
        connection.execute(_SPEND, {"spent": one.window})
    is_new = server.fingerprint not in commands
    if is_new:
        row = {"name": server.name, "fingerprint": server.fingerprint, "command": server.command}
        connection.execute(insert(servers).values(row))
    if is_new or pinned != start.pin:
        put = INSERTS[connection.dialect.name](definitions).values(
            tool=start.tool, fingerprint=server.fingerprint, pin=start.pin
        )
        key = [definitions.c.tool, definitions.c.fingerprint]
        connection.execute(put.on_conflict_do_update(index_elements=key, set_={"pin": start.pin}))
    return "started"


def _has_room(connection: Connection, spending: Spending) -> bool:
    row = connection.execute(BUDGET, {"spent": spending.window}).first()
    if row is None:
        connection.execute(insert(budgets).values(window=spending.window, used=0, allowed_to=0))
        return spending.most > 0
    return bool(row.used < max(row.allowed_to, spending.most))
