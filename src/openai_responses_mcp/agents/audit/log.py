"""The audit log: one appended record per decision, approval and outcome, masked, and each chained to the one before.

A record's hash covers its fields, its number and the hash before it, so that a change shows in every later record. Who
can write to the store can also write a whole new chain; only a head that is kept outside the log shows that.
"""

import logging
from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from openai_responses_mcp.agents.audit.chain import first_break
from openai_responses_mcp.agents.audit.models import ExecutionLog, LogVerification
from openai_responses_mcp.agents.audit.ports import AuditHead, ExecutionLogStore
from openai_responses_mcp.agents.clock import Clock, timestamp
from openai_responses_mcp.agents.errors import AgentsError, DuplicateRecord, StoreUnavailable
from openai_responses_mcp.agents.secrets.masking import Masking

AuditMode = Literal["best_effort", "required"]

NO_HEAD = "No head is kept outside the log: a cut tail or an old copy put back would not show"

_logger = logging.getLogger("openai_responses_mcp.agents")


def unfinished(logs: Sequence[ExecutionLog]) -> list[ExecutionLog]:
    """Calls that started and of which no outcome is recorded: running at this moment, or cut off by a crash."""
    over = {(log.run_id, log.tool_call_id) for log in logs if log.event == "outcome"}
    return [log for log in logs if log.event == "started" and (log.run_id, log.tool_call_id) not in over]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """What is worth recording about one call; secrets may still be in it."""

    run_id: str
    tool_call_id: str
    event: str
    decision: str
    tool_name: str = ""
    tool_kind: str = ""
    risk_level: int | None = None
    reason: str = ""
    arguments: Mapping[str, Any] | None = None
    comment: str = ""


class AuditLog:
    """Masks, timestamps and appends. With `best_effort` a store that fails is warned about and written to later."""

    def __init__(
        self,
        store: ExecutionLogStore,
        clock: Clock,
        masking: Masking,
        mode: AuditMode = "best_effort",
        head: AuditHead | None = None,
    ) -> None:
        self._store = store
        self._clock = clock
        self._masking = masking
        self._mode = mode
        self._head = head
        self._unwritten: deque[ExecutionLog] = deque()

    @property
    def unwritten(self) -> tuple[ExecutionLog, ...]:
        """Records that no store has taken yet."""
        return tuple(self._unwritten)

    async def record(self, entry: AuditEntry) -> None:
        """Raises `DuplicateRecord`, and `StoreUnavailable` only when the audit is `required`."""
        log = self._masked(entry)
        try:
            await self._write_backlog()
            await self._store.append(log)
        except StoreUnavailable as exc:
            if self._mode == "required":
                raise
            self._unwritten.append(log)
            facts = {"unwritten": len(self._unwritten), "run_id": entry.run_id}
            _logger.warning("AGENTS-E-LOG-STORE: %s; the record is kept in memory %s", exc.message, facts)

    async def flush(self) -> None:
        """Try again to write what is left. A store that is still unreachable is not reported again."""
        try:
            await self._write_backlog()
        except StoreUnavailable:
            return

    async def query(self, run_id: str | None = None, since: str | datetime | None = None) -> list[ExecutionLog]:
        await self._write_backlog()
        return await self._store.query(run_id, _moment(since))

    async def verify(self) -> LogVerification:
        logs = await self.query()
        broken = first_break(logs) or (self._head.problem_with(logs) if self._head else None)
        uncovered = "" if self._head else NO_HEAD
        if broken is None:
            return LogVerification(True, len(logs), uncovered=uncovered)
        return LogVerification(False, len(logs), first_bad=broken[0], problem=broken[1], uncovered=uncovered)

    async def _write_backlog(self) -> None:
        while self._unwritten:
            oldest = self._unwritten.popleft()
            try:
                await self._store.append(oldest)
            except DuplicateRecord:
                # It did arrive when the store seemed to fail. The first record of its kind stands.
                _logger.warning("an audit record was there already: %s %s", oldest.run_id, oldest.event)
            except StoreUnavailable:
                self._unwritten.appendleft(oldest)
                raise

    def _masked(self, entry: AuditEntry) -> ExecutionLog:
        mask = self._masking
        return ExecutionLog(
            run_id=entry.run_id,
            tool_call_id=mask.text(entry.tool_call_id),
            event=entry.event,
            decision=entry.decision,
            timestamp=timestamp(self._clock.now()),
            tool_name=mask.text(entry.tool_name),
            tool_kind=entry.tool_kind,
            risk_level=entry.risk_level,
            reason=mask.text(entry.reason),
            arguments=mask.value(entry.arguments or {}),
            comment=mask.text(entry.comment),
        )


def _moment(since: str | datetime | None) -> str | None:
    if since is None:
        return None
    try:
        moment = since if isinstance(since, datetime) else datetime.fromisoformat(since)
    except ValueError as exc:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "since is a time such as 2026-11-16T09:00:00+09:00") from exc
    return timestamp(moment if moment.tzinfo else moment.replace(tzinfo=UTC))
