"""Records of many calls in few writes.

What comes while one write is under way is written together in the next. What nobody waits for lingers for a moment, so that
the next call's start takes it along: writing is what a call costs most.
"""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from openai_responses_mcp.agents.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.agents.errors import AgentsError

LINGERS_SECONDS = 0.05


class _Waiting(NamedTuple):
    entries: Sequence[AuditEntry]
    written: "asyncio.Future[None]"


class Records:
    def __init__(self, audit: AuditLog) -> None:
        self._audit = audit
        self._waiting: list[_Waiting] = []
        self._writing: asyncio.Task[None] | None = None
        self._lingering: list[AuditEntry] = []
        self._alarm: asyncio.TimerHandle | None = None

    async def write(self, *entries: AuditEntry) -> None:
        """Come back when they are in the log. Raises as `AuditLog.record` does."""
        await self._enqueue(entries)

    def write_behind(self, *entries: AuditEntry) -> None:
        """Nobody waits for these. That they cannot be written is told by the log itself."""
        self._lingering += entries
        if self._alarm is None:
            self._alarm = asyncio.get_running_loop().call_later(LINGERS_SECONDS, self._linger_no_more)

    async def settle(self) -> None:
        self._linger_no_more()
        while self._writing is not None:
            await asyncio.shield(self._writing)

    def _linger_no_more(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        lingering, self._lingering = self._lingering, []
        if lingering:
            self._enqueue(lingering).add_done_callback(_forgotten)

    def _enqueue(self, entries: Sequence[AuditEntry]) -> "asyncio.Future[None]":
        self._linger_no_more()
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiting(entries, written))
        if self._writing is None:
            self._writing = asyncio.create_task(self._write_all())
        return written

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
            if len(batch) == 1:
                _fail(batch[0], exc)
                return
            # One of them may be at fault, and the others are not to suffer from it.
            for one in batch:
                await self._write([one])
            return
        for one in batch:
            if not one.written.done():
                one.written.set_result(None)


def _fail(one: _Waiting, failure: AgentsError) -> None:
    if not one.written.done():
        one.written.set_exception(failure)


def _forgotten(written: "asyncio.Future[None]") -> None:
    if not written.cancelled():
        written.exception()
