"""Records of many calls in few writes, and the starts of calls with them.

What comes during one write is written together in the next. Records that no call waits for are held for a moment and
written with the start of the next call, because writing is the most expensive part of a call. They say what has happened,
so they are kept if the store fails, and written later. A call starts only once the store has its start.
"""

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import NamedTuple

from openai_responses_mcp.gate.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.errors import AgentsError, RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.starts import CallStart, StartBook, StartOutcome

LINGERS_SECONDS = 0.05

_logger = logging.getLogger("openai_responses_mcp.agents")


class _Waiting(NamedTuple):
    """`written` is None where no call waits. With a `start` it becomes what came of that."""

    entries: Sequence[AuditEntry]
    written: "asyncio.Future[StartOutcome] | None" = None
    start: CallStart | None = None


class Records:
    def __init__(self, audit: AuditLog, starts: StartBook) -> None:
        self._audit = audit
        self._starts = starts
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None
        self._lingering: list[AuditEntry] = []
        self._alarm: asyncio.TimerHandle | None = None

    async def write(self, *entries: AuditEntry) -> None:
        """Come back when they are in the log. Raises as `AuditLog.record` does."""
        await self._written(entries)

    async def start(self, start: CallStart, *entries: AuditEntry) -> StartOutcome:
        """Start the call together with its records. Raises `AgentsError` if that cannot be stored."""
        return await self._written(entries, start)

    def write_behind(self, *entries: AuditEntry) -> None:
        """No call waits for these."""
        self._lingering += entries
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(LINGERS_SECONDS, self._linger_no_more)

    async def settle(self) -> None:
        self._linger_no_more()
        while self._writing is not None:
            await asyncio.shield(self._writing)
        with suppress(AgentsError):
            await self._audit.flush()
        if left := len(self._audit.unwritten):
            _logger.warning("AGENTS-E-LOG-STORE: the last records (%d) could not be written", left)

    async def _written(self, entries: Sequence[AuditEntry], start: CallStart | None = None) -> StartOutcome:
        written: asyncio.Future[StartOutcome] = asyncio.get_running_loop().create_future()
        self._linger_no_more()
        self._enqueue(_Waiting(entries, written, start))
        return await written

    def _linger_no_more(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        lingering, self._lingering = self._lingering, []
        if lingering:
            self._enqueue(_Waiting(lingering))

    def _enqueue(self, one: _Waiting) -> None:
        self._waiting.append(one)
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())

    async def _write_all(self) -> None:
        try:
            while self._waiting:
                batch, self._waiting = self._waiting, []
                await self._write(batch)
        finally:
            self._writing = None

    async def _write(self, batch: list[_Waiting]) -> None:
        try:
            outcomes = await self._stored(batch)
        except AgentsError as exc:
            if len(batch) > 1 and _is_about_one(exc):
                # The others are written all the same.
                for one in batch:
                    await self._write([one])
            else:
                for one in batch:
                    self._fail(one, exc)
            return
        for one, outcome in zip(batch, outcomes, strict=True):
            if one.written is not None and not one.written.done():
                one.written.set_result(outcome)

    async def _stored(self, batch: list[_Waiting]) -> list[StartOutcome]:
        """In one transaction. Records that are no start's come first: they are about earlier calls."""
        entries = [entry for one in batch if one.start is None for entry in one.entries]
        starts = [
            replace(one.start, records=tuple(map(self._audit.masked, one.entries)))
            for one in batch
            if one.start is not None
        ]
        if not starts:
            await self._audit.record(*entries)
            return ["started"] * len(batch)
        before = [self._audit.masked(entry) for entry in entries]
        run_ids = {log.run_id for log in (*before, *(log for start in starts for log in start.records))}

        async def write(noted: list[ExecutionLog]) -> list[StartOutcome]:
            return await self._starts.start([*noted, *before], starts)

        outcomes = iter(await self._audit.write_with(write, run_ids))
        return ["started" if one.start is None else next(outcomes) for one in batch]

    def _fail(self, one: _Waiting, failure: AgentsError) -> None:
        if one.written is None:
            self._audit.keep(failure.message, *one.entries)
        elif one.written.done():
            return
        elif one.start is None and not self._audit.is_required and isinstance(failure, StoreUnavailable):
            self._audit.keep(failure.message, *one.entries)
            one.written.set_result("started")
        else:
            one.written.set_exception(failure)


def _is_about_one(failure: AgentsError) -> bool:
    """If the store is gone, it is gone for all of them, and trying each would take as long again."""
    return isinstance(failure, RecordRefused) or not isinstance(failure, StoreUnavailable)
