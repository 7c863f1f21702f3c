"""Approvals in the database, and decisions in one transaction with their records in the log."""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any

from sqlalchemy import ColumnElement, Connection, Row, and_, exists, func, insert, or_, select, true, update

from openai_responses_mcp.gate import reasons
from openai_responses_mcp.gate.approvals.models import (
    ApprovalChoice,
    ApprovalRecord,
    ApprovalStore,
    DecisionBook,
    HumanApprovalRequest,
)
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase, row_of
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore, arguments_in, arguments_text
from openai_responses_mcp.gate.sql.sql_news import tell_of_decision
from openai_responses_mcp.gate.sql.sql_tables import approvals, clock


class SqlApprovalStore(ApprovalStore):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def latest_moment(self, now: str) -> str:
        latest = await self._database.work(_latest, is_writing=False)
        if _is_a_second_later(now, latest):
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
        is_kept = (approvals.c.status == "kept", approvals.c.used_at.is_(None), approvals.c.expires_at > now)
        return await self._first(and_(*same, *is_kept))

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


def _is_a_second_later(now: str, latest: str) -> bool:
    """Many processes at once need not all write down the same second."""
    return not latest or datetime.fromisoformat(now) - datetime.fromisoformat(latest) >= timedelta(seconds=1)


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
    tell_of_decision(connection, choice.approval_id)
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
