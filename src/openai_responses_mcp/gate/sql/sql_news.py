"""News of decisions: with PostgreSQL a process hears of each at once, wherever it was made (LISTEN and NOTIFY).

A thread listens on one connection while a decision is awaited. SQLite sends no notifications, and a connection can break
unnoticed, so waiting code also polls from time to time.
"""

import asyncio
import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from sqlalchemy import Connection, text
from sqlalchemy.exc import SQLAlchemyError

from openai_responses_mcp.gate.approvals.models import DecisionNews, Rung
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase

CHANNEL = "agents_decisions"
_SECONDS_BETWEEN_TRIES = 5.0
_LISTENING_SECONDS = 60.0
_TELL = text("SELECT pg_notify(:channel, :payload)")


def tell_of_decision(connection: Connection, approval_id: str) -> None:
    """In the transaction of the decision: the others hear of it once it is committed."""
    if connection.dialect.name == "postgresql":
        connection.execute(_TELL, {"channel": CHANNEL, "payload": payload_of(approval_id)})


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
            # What was decided before this began was not heard of.
            self._ring(None)
            while self._bells:
                for heard in driver.notifies(timeout=_LISTENING_SECONDS):
                    self._ring(heard.payload)

    def _ring(self, payload: str | None) -> None:
        """One of them, or all."""
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
