"""Starts of guarded calls in the database: pins, budgets and records change together or not at all.

A transaction that starts calls holds the same lock as one that appends to the log. So what it reads stays true until it
commits, in every process.
"""

from collections.abc import Sequence
from functools import partial

from sqlalchemy import Connection, insert, select, update

from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.sql.sql_database import INSERTS, SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from openai_responses_mcp.gate.sql.sql_tables import budgets, definitions, pins, servers
from openai_responses_mcp.gate.starts import (
    CallStart,
    GuardedServer,
    KnownTool,
    Spending,
    StartBook,
    StartOutcome,
    is_free_to_start,
)


class SqlStartBook(StartBook):
    def __init__(self, database: SqlDatabase, logs: SqlExecutionLogStore) -> None:
        self._database = database
        self._logs = logs

    async def known(self, server: GuardedServer, tool: str) -> KnownTool:
        return await self._database.work(partial(_known, server=server, tool=tool), is_writing=False)

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


def _known(connection: Connection, server: GuardedServer, tool: str) -> KnownTool:
    query = select(servers.c.fingerprint, servers.c.command).where(servers.c.name == server.name)
    commands = {row.fingerprint: row.command for row in connection.execute(query.order_by(servers.c.number))}
    pin = _pin(connection, server, tool, is_first=not commands)
    return KnownTool(pin, () if server.fingerprint in commands else tuple(commands.values()))


def _pin(connection: Connection, server: GuardedServer, tool: str, *, is_first: bool) -> str | None:
    of_command = select(definitions.c.pin).where(
        definitions.c.tool == tool, definitions.c.fingerprint == server.fingerprint
    )
    pin: str | None = connection.execute(of_command).scalar()
    if pin is None and is_first:
        # Earlier versions pinned by name alone. The first command under the name takes these over.
        pin = connection.execute(select(pins.c.pin).where(pins.c.tool == tool)).scalar()
    return pin


def _started(connection: Connection, start: CallStart) -> StartOutcome:
    server = start.server
    pinned = _known(connection, server, start.tool).pin
    if not is_free_to_start(pinned, start):
        return "changed"
    if not all(_has_room(connection, one) for one in start.spends):
        return "over_budget"
    for one in start.spends:
        connection.execute(update(budgets).where(budgets.c.window == one.window).values(used=budgets.c.used + 1))
    is_this = (servers.c.name == server.name, servers.c.fingerprint == server.fingerprint)
    is_new = connection.execute(select(servers.c.number).where(*is_this)).first() is None
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
    row = connection.execute(select(budgets).where(budgets.c.window == spending.window)).first()
    if row is None:
        connection.execute(insert(budgets).values(window=spending.window, used=0, allowed_to=0))
        return spending.most > 0
    return bool(row.used < max(row.allowed_to, spending.most))
