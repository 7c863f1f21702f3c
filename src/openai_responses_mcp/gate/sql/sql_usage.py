"""What callers have used, counted in the store: limits hold for all processes on it together.

A running call has a row with a lease, which its process renews. If the process is killed, the call stops counting when
the lease expires. Tokens per day are stored like a budget.
"""

import asyncio
import uuid
from datetime import datetime, timedelta

from sqlalchemy import Connection, delete, func, select, text, update

from openai_responses_mcp.domain.ports import WallClock
from openai_responses_mcp.domain.usage import (
    MINUTE_SECONDS,
    CallerLimits,
    OverLimit,
    UsageBook,
    seconds_until_tomorrow,
)
from openai_responses_mcp.gate.clock import timestamp
from openai_responses_mcp.gate.errors import StoreUnavailable
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_stores import put_budget
from openai_responses_mcp.gate.sql.sql_tables import budgets, caller_calls

LEASE_SECONDS = 30.0
_BETWEEN_RENEWALS_SECONDS = 10.0
_COME_BACK_SECONDS = 10.0
# One caller's calls begin one after the other, so that two processes cannot both take the last place.
_TURN = text("SELECT pg_advisory_xact_lock(hashtext(:caller))")


class SqlUsageBook(UsageBook):
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
                await self._clock.sleep(_BETWEEN_RENEWALS_SECONDS)
                await self._renewed()
        finally:
            self._renewing = None

    async def _renewed(self) -> None:
        now, ids = timestamp(self._clock.now()), list(self._open)
        renewing = update(caller_calls).where(caller_calls.c.call_id.in_(ids)).values(renewed_at=now)
        try:
            await self._database.work(lambda connection: connection.execute(renewing))
        except StoreUnavailable:
            return


def _window(caller: str, clock: WallClock) -> str:
    return f"tokens per day {clock.today().isoformat()} caller {caller}"
