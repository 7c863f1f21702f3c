"""All four stores on SQLAlchemy Core: SQLite in memory, SQLite in a file, PostgreSQL."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import Connection, Row, and_, exists, insert, or_, select, true, update
from sqlalchemy.exc import IntegrityError

from openai_responses_mcp.agents.adapters.stores.sql_database import SqlDatabase
from openai_responses_mcp.agents.adapters.stores.sql_tables import approvals, log_turns, logs, policies, runs
from openai_responses_mcp.agents.approvals.models import HumanApprovalRequest
from openai_responses_mcp.agents.approvals.ports import ApprovalChoice, ApprovalRecord, ApprovalStore
from openai_responses_mcp.agents.audit.chain import linked
from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.audit.ports import AuditHead, ExecutionLogStore
from openai_responses_mcp.agents.errors import DuplicateRecord
from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import PROFILES, PolicyProfile, profile_name
from openai_responses_mcp.agents.runs.models import RunStatus
from openai_responses_mcp.agents.runs.ports import RunRecord, RunStateStore


class SqlPolicyStore(PolicyStore):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def get_profile(self, name: str) -> PolicyProfile:
        known = profile_name(name)
        query = select(policies).where(policies.c.name == known)
        row = await self._database.work(lambda connection: connection.execute(query).first(), is_writing=False)
        if row is None:
            return PROFILES[known]
        return PolicyProfile(known, row.allow_up_to, row.refuse_from, tuple(json.loads(row.scopes)))

    async def set_profile(self, profile: PolicyProfile) -> None:
        values = {
            "allow_up_to": profile.allow_up_to,
            "refuse_from": profile.refuse_from,
            "scopes": json.dumps(profile.allowed_tool_scopes),
        }

        def put(connection: Connection) -> None:
            changed = connection.execute(update(policies).where(policies.c.name == profile.name).values(values))
            if changed.rowcount == 0:
                connection.execute(insert(policies).values(name=profile.name, **values))

        await self._database.work(put)


class SqlRunStateStore(RunStateStore):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def save(self, record: RunRecord) -> None:
        values = {
            "status": record.status,
            "agent_name": record.agent_name,
            "updated_at": record.updated_at,
            "payload": record.payload,
        }

        def put(connection: Connection) -> None:
            changed = connection.execute(update(runs).where(runs.c.run_id == record.run_id).values(values))
            if changed.rowcount == 0:
                connection.execute(insert(runs).values(run_id=record.run_id, created_at=record.created_at, **values))

        await self._database.work(put)

    async def get(self, run_id: str) -> RunRecord | None:
        query = select(runs).where(runs.c.run_id == run_id)
        row = await self._database.work(lambda connection: connection.execute(query).first(), is_writing=False)
        return None if row is None else RunRecord(**row._mapping)

    async def list_runs(self, status: RunStatus | None = None) -> list[RunRecord]:
        query = select(runs).order_by(runs.c.created_at, runs.c.run_id)
        if status is not None:
            query = query.where(runs.c.status == status)
        rows = await self._database.work(lambda connection: connection.execute(query).all(), is_writing=False)
        return [RunRecord(**row._mapping) for row in rows]


class SqlApprovalStore(ApprovalStore):
    def __init__(self, database: SqlDatabase) -> None:
        self._database = database

    async def create(self, records: Sequence[ApprovalRecord]) -> None:
        rows = [_approval_values(record) for record in records]
        await self._database.work(lambda connection: connection.execute(insert(approvals), rows))

    async def get(self, approval_id: str) -> ApprovalRecord | None:
        return await self._first(approvals.c.approval_id == approval_id)

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
        statement = (
            update(approvals)
            .where(
                approvals.c.approval_id == choice.approval_id,
                approvals.c.status == "pending",
                approvals.c.replaced_by.is_(None),
            )
            .values(
                status=choice.status,
                comment=choice.comment,
                decided_at=choice.decided_at,
                token_hash=choice.token_hash,
                binding=choice.binding,
                expires_at=choice.expires_at,
            )
        )
        return await self._changed(statement) == 1

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
                and_(sibling.c.status == "approved", sibling.c.expires_at <= now),
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
        return await self._changed(statement) > 0

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
            connection.execute(insert(approvals).values(_approval_values(record)))
            return True

        return await self._database.work(put)

    async def respond(self, approval_id: str, human_response: str) -> None:
        statement = update(approvals).where(approvals.c.approval_id == approval_id)
        await self._changed(statement.values(human_response=human_response))

    async def _first(self, condition: Any) -> ApprovalRecord | None:
        found = await self._all(condition)
        return found[0] if found else None

    async def _all(self, condition: Any) -> list[ApprovalRecord]:
        query = select(approvals).where(condition).order_by(approvals.c.number)
        rows = await self._database.work(lambda connection: connection.execute(query).all(), is_writing=False)
        return [_approval_from(row) for row in rows]

    async def _changed(self, statement: Any) -> int:
        return await self._database.work(lambda connection: int(connection.execute(statement).rowcount))


class SqlExecutionLogStore(ExecutionLogStore):
    """With a head, each record is announced to it inside the transaction and confirmed after the commit."""

    def __init__(self, database: SqlDatabase, head: AuditHead | None = None) -> None:
        self._database = database
        self._head = head

    async def append(self, log: ExecutionLog) -> ExecutionLog:
        record = await self._database.work(lambda connection: self._append(connection, log))
        if self._head is not None:
            self._head.confirm(record)
        return record

    async def query(self, run_id: str | None = None, since: str | None = None) -> list[ExecutionLog]:
        query = select(logs).order_by(logs.c.sequence)
        if run_id is not None:
            query = query.where(logs.c.run_id == run_id)
        if since is not None:
            query = query.where(logs.c.timestamp >= since)
        rows = await self._database.work(lambda connection: connection.execute(query).all(), is_writing=False)
        return [_log_from(row) for row in rows]

    def _append(self, connection: Connection, log: ExecutionLog) -> ExecutionLog:
        connection.execute(update(log_turns).where(log_turns.c.id == 1).values(taken=log_turns.c.taken + 1))
        last = connection.execute(select(logs).order_by(logs.c.sequence.desc()).limit(1)).first()
        record = linked(log, None if last is None else _log_from(last))
        values = {name: getattr(record, name) for name in logs.c.keys()}  # noqa: SIM118 - columns, not a dict
        values["arguments"] = json.dumps(dict(record.arguments))
        try:
            connection.execute(insert(logs).values(values))
        except IntegrityError as exc:
            raise DuplicateRecord(f"{log.event} of this call is recorded already") from exc
        if self._head is not None:
            self._head.announce(record)
        return record


def _approval_values(record: ApprovalRecord) -> dict[str, Any]:
    request = record.request
    return {
        "approval_id": request.approval_id,
        "run_id": request.run_id,
        "pause_id": record.pause_id,
        "tool_call_id": request.tool_call_id,
        "tool_name": request.tool_name,
        "tool_kind": request.tool_kind,
        "required_action": request.required_action,
        "prompt": request.prompt,
        "arguments": json.dumps(dict(request.arguments)),
        "risk_level": request.risk_level,
        "reason": request.reason,
        "status": request.status,
        "comment": request.comment,
        "human_response": record.human_response,
        "created_at": request.created_at,
        "decided_at": request.decided_at,
        "tool_description": request.tool_description,
        "definition_change": request.definition_change,
        "arguments_hash": record.arguments_hash,
        "definition_hash": record.definition_hash,
        "state_hash": record.state_hash,
        "attempt": record.attempt,
        "token_hash": record.token_hash,
        "binding": record.binding,
        "expires_at": record.expires_at,
        "used_at": record.used_at,
        "replaced_by": record.replaced_by,
    }


def _approval_from(row: Row[Any]) -> ApprovalRecord:
    fields = dict(row._mapping)
    fields.pop("number")
    fields["arguments"] = json.loads(fields["arguments"])
    own = {name: fields.pop(name) for name in ApprovalRecord.__slots__ if name != "request"}
    return ApprovalRecord(request=HumanApprovalRequest(**fields), **own)


def _log_from(row: Row[Any]) -> ExecutionLog:
    log = ExecutionLog(**row._mapping)
    return replace(log, arguments=json.loads(row.arguments))
