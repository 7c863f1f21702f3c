"""Approvals in the database, decisions in one transaction with their records in the log, and news of decisions.

With PostgreSQL a process hears of each decision at once, wherever it was made (LISTEN and NOTIFY): a thread listens on
one connection while a decision is awaited. SQLite sends no notifications, and a connection can break unnoticed, so
waiting code also polls from time to time.
"""

import asyncio
import hashlib
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, func, insert, or_, select, text, true, update
from sqlalchemy.exc import SQLAlchemyError

from openai_responses_mcp.gate import reasons
from openai_responses_mcp.gate.approvals.models import (
    KEPT_SECONDS,
    USED_WITHIN_SECONDS,
    ApprovalChoice,
    ApprovalRecord,
    ApprovalStore,
    DecisionBook,
    DecisionNews,
    HumanApprovalRequest,
    Rung,
)
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.clock import later
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.sql.sql_database import OnDatabase, SqlDatabase, row_of
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore, arguments_in, arguments_text
from openai_responses_mcp.gate.sql.sql_tables import approvals, clock

CHANNEL = "agents_decisions"
_SECONDS_BETWEEN_TRIES = 5.0
_LISTENING_SECONDS = 60.0
_NOTIFY = text("SELECT pg_notify(:channel, :payload)")


class SqlApprovalStore(OnDatabase, ApprovalStore):
    async def latest_moment(self, now: str) -> str:
        latest = await self._database.work(_latest, is_writing=False)
        # To the second, so that many processes do not all write the same one.
        if not latest or datetime.fromisoformat(now) - datetime.fromisoformat(latest) >= timedelta(seconds=1):
            return await self._database.work(lambda connection: _see(connection, now))
        return max(latest, now)

    async def create(self, records: Sequence[ApprovalRecord]) -> None:
        rows = [_approval_values(record) for record in records]

        def put(connection: Connection) -> None:
            connection.execute(insert(approvals), rows)
            _see(connection, max(record.request.created_at for record in records))

        await self._database.work(put)

    async def get(self, approval_id: str) -> ApprovalRecord | None:
        return await self._first(approvals.c.approval_id == approval_id)

    async def ids_beginning(self, start: str) -> list[str]:
        found = approvals.c.approval_id.startswith(start, autoescape=True)
        query = select(approvals.c.approval_id).where(found).order_by(approvals.c.approval_id).limit(3)
        return [row.approval_id for row in await self._database.rows(query)]

    async def find_by_token(self, token_hash: str) -> ApprovalRecord | None:
        return await self._first(approvals.c.token_hash == token_hash)

    async def list_pending(self, run_id: str | None = None) -> list[ApprovalRecord]:
        is_pending = and_(approvals.c.status == "pending", approvals.c.replaced_by.is_(None))
        return await self._all(is_pending if run_id is None else and_(is_pending, approvals.c.run_id == run_id))

    async def list_expired(self, now: str, run_id: str | None = None) -> list[ApprovalRecord]:
        is_expired = and_(
            approvals.c.status == "approved",
            approvals.c.used_at.is_(None),
            approvals.c.replaced_by.is_(None),
            approvals.c.expires_at <= now,
        )
        return await self._all(is_expired if run_id is None else and_(is_expired, approvals.c.run_id == run_id))

    async def list_of_pause(self, pause_id: str) -> list[ApprovalRecord]:
        return await self._all(and_(approvals.c.pause_id == pause_id, approvals.c.replaced_by.is_(None)))

    async def list_newest_pause(self, run_id: str) -> list[ApprovalRecord]:
        newest = select(approvals.c.pause_id).where(approvals.c.run_id == run_id)
        newest = newest.order_by(approvals.c.number.desc()).limit(1)
        return await self._all(
            and_(approvals.c.pause_id == newest.scalar_subquery(), approvals.c.replaced_by.is_(None))
        )

    async def decide(self, choice: ApprovalChoice) -> bool:
        return await self._database.work(lambda connection: _decide(connection, choice))

    async def find_kept(self, like: ApprovalRecord, now: str) -> ApprovalRecord | None:
        same = (
            approvals.c.tool_kind == like.request.tool_kind,
            approvals.c.tool_name == like.request.tool_name,
            approvals.c.arguments_hash == like.arguments_hash,
            approvals.c.definition_hash == like.definition_hash,
            func.coalesce(approvals.c.caller, "") == like.request.caller,
            approvals.c.origin.is_(None) if like.origin is None else approvals.c.origin == like.origin,
        )
        is_left_by_killed_guard = and_(
            approvals.c.status == "approved",
            approvals.c.waits_until.is_not(None),
            approvals.c.changed_arguments.is_(None),
            approvals.c.decided_at > later(now, -KEPT_SECONDS),
            approvals.c.decided_at <= later(now, -USED_WITHIN_SECONDS),
        )
        is_kept = or_(approvals.c.status == "kept", is_left_by_killed_guard)
        return await self._first(and_(*same, is_kept, approvals.c.used_at.is_(None), approvals.c.expires_at > now))

    async def consume(self, pause_id: str, token_hash: str | None, now: str) -> bool:
        token, sibling = approvals.alias("token"), approvals.alias("sibling")
        is_token_good = exists().where(
            token.c.token_hash == token_hash,
            token.c.pause_id == pause_id,
            token.c.replaced_by.is_(None),
            token.c.used_at.is_(None),
            token.c.expires_at > now,
        )
        is_any_open = exists().where(
            sibling.c.pause_id == pause_id,
            sibling.c.replaced_by.is_(None),
            or_(
                sibling.c.status == "pending",
                and_(sibling.c.status.in_(("approved", "kept")), sibling.c.expires_at <= now),
            ),
        )
        statement = (
            update(approvals)
            .where(
                approvals.c.pause_id == pause_id,
                approvals.c.replaced_by.is_(None),
                approvals.c.used_at.is_(None),
                true() if token_hash is None else is_token_good,
                ~is_any_open,
            )
            .values(used_at=now)
        )
        return await self._database.change(statement) > 0

    async def replace(self, approval_id: str, record: ApprovalRecord) -> bool:
        statement = (
            update(approvals)
            .where(
                approvals.c.approval_id == approval_id,
                approvals.c.replaced_by.is_(None),
                approvals.c.used_at.is_(None),
            )
            .values(replaced_by=record.request.approval_id)
        )

        def put(connection: Connection) -> bool:
            if connection.execute(statement).rowcount == 0:
                return False
            connection.execute(insert(approvals), _approval_values(record))
            return True

        return await self._database.work(put)

    async def respond(self, approval_id: str, human_response: str) -> None:
        statement = update(approvals).where(approvals.c.approval_id == approval_id)
        await self._database.change(statement.values(human_response=human_response))

    async def _first(self, condition: ColumnElement[bool]) -> ApprovalRecord | None:
        found = await self._all(condition)
        return found[0] if found else None

    async def _all(self, condition: ColumnElement[bool]) -> list[ApprovalRecord]:
        query = select(approvals).where(condition).order_by(approvals.c.number)
        return [_approval_from(row) for row in await self._database.rows(query)]


class SqlDecisionBook(DecisionBook):
    """For approvals and a log that are in the same database."""

    def __init__(self, database: SqlDatabase, logs: SqlExecutionLogStore) -> None:
        self._database = database
        self._logs = logs

    async def decide(self, choice: ApprovalChoice, record: ExecutionLog) -> bool:
        def put(connection: Connection) -> list[ExecutionLog]:
            return self._logs.append_in(connection, [record]) if _decide(connection, choice) else []

        records = await self._database.work(put)
        self._logs.appended(records)
        return bool(records)


def _latest(connection: Connection) -> str:
    return str(connection.execute(select(clock.c.latest)).scalar_one())


def _see(connection: Connection, moment: str) -> str:
    connection.execute(update(clock).where(clock.c.latest < moment).values(latest=moment))
    return _latest(connection)


def _decide(connection: Connection, choice: ApprovalChoice) -> bool:
    before = ("withdrawn", "approved") if choice.status == "kept" else ("pending",)
    is_open = (
        approvals.c.approval_id == choice.approval_id,
        approvals.c.status.in_(before),
        approvals.c.used_at.is_(None),
        approvals.c.replaced_by.is_(None),
    )
    values = {**row_of(choice), "changed_arguments": _maybe_text(choice.changed_arguments)}
    del values["approval_id"]
    if connection.execute(update(approvals).where(*is_open).values(values)).rowcount != 1:
        return False
    notify_of_decision(connection, choice.approval_id)
    return True


def _approval_values(record: ApprovalRecord) -> dict[str, object]:
    request = record.request
    values = {**row_of(request), **row_of(record)}
    del values["request"]
    return {
        **values,
        "arguments": arguments_text(request.arguments),
        "parameters": _maybe_text(record.parameters),
        "changed_arguments": _maybe_text(request.changed_arguments),
        "reasons": reasons.as_text(request.reasons),
        "reading": arguments_text(record.reading) if record.reading else None,
    }


def _maybe_text(arguments: JsonObject | None) -> str | None:
    return None if arguments is None else arguments_text(arguments)


def _approval_from(row: Row[Any]) -> ApprovalRecord:
    fields = dict(row._mapping)
    fields.pop("number")
    fields["arguments"] = arguments_in(fields["arguments"])
    for name in ("parameters", "changed_arguments"):
        fields[name] = None if fields[name] is None else arguments_in(fields[name])
    fields["reasons"] = reasons.from_text(fields["reasons"])
    fields["reading"] = {} if fields["reading"] is None else arguments_in(fields["reading"])
    fields["tell_model"] = bool(fields["tell_model"])
    fields["caller"] = fields["caller"] or ""
    own = {name: fields.pop(name) for name in ApprovalRecord.__slots__ if name != "request"}
    return ApprovalRecord(request=HumanApprovalRequest(**fields), **own)


# ---------------------------------------------------------------------------------------------------------------------
# News of decisions


def notify_of_decision(connection: Connection, approval_id: str) -> None:
    """In the transaction of the decision: the others hear of it once it is committed."""
    if connection.dialect.name == "postgresql":
        connection.execute(_NOTIFY, {"channel": CHANNEL, "payload": payload_of(approval_id)})


def payload_of(approval_id: str) -> str:
    """A hash, because PostgreSQL takes neither every character nor any length there."""
    return hashlib.sha256(approval_id.encode("utf-8", "surrogatepass")).hexdigest()


class SqlDecisionNews(DecisionNews):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database
        self._bells: dict[str, set[_EventBell]] = {}
        self._changing = threading.Lock()
        self._listener: threading.Thread | None = None
        self._is_listening = threading.Event()

    @property
    def is_listening(self) -> bool:
        return self._is_listening.is_set()

    @contextmanager
    def about(self, approval_id: str) -> Iterator[Rung]:
        key, bell = payload_of(approval_id), _EventBell(asyncio.get_running_loop())
        with self._changing:
            self._bells.setdefault(key, set()).add(bell)
            if not self._database.is_sqlite and self._listener is None:
                self._listener = threading.Thread(target=self._listen, name="agents-news", daemon=True)
                self._listener.start()
        try:
            yield bell.rung
        finally:
            with self._changing:
                self._bells[key].discard(bell)
                if not self._bells[key]:
                    del self._bells[key]

    def _listen(self) -> None:
        """Until nothing is awaited."""
        pause = threading.Event()
        while True:
            with suppress(SQLAlchemyError, OSError, self._database.driver_error):
                self._hear()
            self._is_listening.clear()
            with self._changing:
                if not self._bells:
                    self._listener = None
                    return
            pause.wait(_SECONDS_BETWEEN_TRIES)

    def _hear(self) -> None:
        """Until nothing has been awaited for a while. Raises when the connection is lost."""
        with self._database.own_connection() as connection:
            connection.exec_driver_sql(f"LISTEN {CHANNEL}")
            driver: Any = connection.connection.driver_connection
            self._is_listening.set()
            # Decisions made before this were not heard.
            self._ring(None)
            while self._bells:
                for heard in driver.notifies(timeout=_LISTENING_SECONDS):
                    self._ring(heard.payload)

    def _ring(self, payload: str | None) -> None:
        """For one request, or for all."""
        with self._changing:
            ids = list(self._bells) if payload is None else [payload]
            bells = [bell for one in ids for bell in self._bells.get(one, ())]
        for bell in bells:
            bell.ring()


class _EventBell:
    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._rings = asyncio.Event()

    def ring(self) -> None:
        """From any thread."""
        with suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(self._rings.set)

    async def rung(self, seconds: float) -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(self._rings.wait(), seconds)
        self._rings.clear()
