"""Records of many calls in few writes.

Records that come during one write are written together in the next. Records that nobody waits for are held for a moment
and written with the start of the next call, because writing is the most expensive part of a call. They tell of what has
happened, so they are kept if the store fails, and written later.
"""

import asyncio
import logging
from collections.abc import Sequence
from typing import NamedTuple

from openai_responses_mcp.agents.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.agents.errors import AgentsError, RecordRefused, StoreUnavailable

LINGERS_SECONDS = 0.05

_logger = logging.getLogger("openai_responses_mcp.agents")


class _Waiting(NamedTuple):
    """`written` is None where nobody waits."""

    entries: Sequence[AuditEntry]
    written: "asyncio.Future[None] | None" = None


class Records:
    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None
        self._lingering: list[AuditEntry] = []
        self._alarm: asyncio.TimerHandle | None = None

    async def write(self, *entries: AuditEntry) -> None:
        """Come back when they are in the log. Raises as `AuditLog.record` does."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._linger_no_more()
        self._enqueue(_Waiting(entries, written))
        await written

    def write_behind(self, *entries: AuditEntry) -> None:
        """Nobody waits for these."""
        self._lingering += entries
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(LINGERS_SECONDS, self._linger_no_more)

    async def settle(self) -> None:
        self._linger_no_more()
        while self._writing is not None:
            await asyncio.shield(self._writing)
        await self._audit.flush()
        if left := len(self._audit.unwritten):
            _logger.warning("AGENTS-E-LOG-STORE: the last records (%d) could not be written", left)

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
            await self._audit.record(*(entry for one in batch for entry in one.entries))
        except AgentsError as exc:
            if len(batch) > 1 and _is_about_one(exc):
                # The other records are written all the same.
                for one in batch:
                    await self._write([one])
            else:
                for one in batch:
                    self._fail(one, exc)
            return
        for one in batch:
            if one.written is not None and not one.written.done():
                one.written.set_result(None)

    def _fail(self, one: _Waiting, failure: AgentsError) -> None:
        if one.written is None:
            self._audit.keep(failure.message, *one.entries)
        elif not one.written.done():
            one.written.set_exception(failure)


def _is_about_one(failure: AgentsError) -> bool:
    """If the store is gone, it is gone for all of them, and trying each would take as long again."""
    return isinstance(failure, RecordRefused) or not isinstance(failure, StoreUnavailable)
