"""One database behind all four stores: how it is opened, how work reaches it, and what its errors become.

SQLAlchemy's calls block, so each piece of work is one transaction on a thread. SQLite writes begin with the write lock
taken; a file belongs to its owner only. WAL is used from SQLite 3.51.3 on: earlier versions can lose rows in it.
"""

import asyncio
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import Connection, Engine, StaticPool, create_engine, event, insert, select, text
from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError, SQLAlchemyError

from openai_responses_mcp.agents.adapters.private_files import make_private
from openai_responses_mcp.agents.adapters.stores import sql_tables as tables
from openai_responses_mcp.agents.errors import AgentsError, StoreUnavailable

SAFE_WAL_VERSION = (3, 51, 3)
IN_MEMORY = "sqlite://"
BUSY_SECONDS = 15.0  # how long a SQLite file may be locked by others; `?timeout=` in the URL says otherwise

_SETTING_UP = 0x0A6E7_5E7  # the advisory lock of PostgreSQL under which the tables are made
_T = TypeVar("_T")


def journal_mode(version: tuple[int, ...]) -> str:
    return "WAL" if version >= SAFE_WAL_VERSION else "DELETE"


class SqlDatabase:
    def __init__(self, url: str = IN_MEMORY) -> None:
        """Opens nothing yet. A URL that is no SQLite or PostgreSQL one: `AGENTS-E-RUNNER-CONFIG`."""
        self._url = _understood(url)
        self._engine = self._make_engine()
        # Pooled connections are closed in order, also when nobody calls close().
        weakref.finalize(self, self._engine.dispose)
        # Threads of its own, so that slow tools on the loop's threads do not hold the store up.
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="agents-store")
        self._setting_up = threading.Lock()
        # A database in memory is one connection, and threads take turns with it.
        self._turn = threading.Lock() if self.is_in_memory else nullcontext()
        self._is_ready = False

    @property
    def _is_sqlite(self) -> bool:
        return self._url.get_backend_name() == "sqlite"

    @property
    def is_in_memory(self) -> bool:
        return self._is_sqlite and self.file is None

    @property
    def file(self) -> Path | None:
        """The SQLite file, where there is one."""
        return _file_of(self._url)

    async def work(self, job: Callable[[Connection], _T], *, is_writing: bool = True) -> _T:
        """Run the job in one transaction. Raises `StoreUnavailable`; an error of the job's own rolls back."""
        work = partial(self.work_now, job, is_writing=is_writing)
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    def work_now(self, job: Callable[[Connection], _T], *, is_writing: bool = True) -> _T:
        with _translated(), self._turn:
            self._make_ready()
            with self._engine.connect().execution_options(is_writing=is_writing) as connection, connection.begin():
                return job(connection)

    def close(self) -> None:
        """Let go of every connection; the next work opens a new one."""
        self._engine.dispose()

    def _make_engine(self) -> Engine:
        if not self._is_sqlite:
            return create_engine(self._url, pool_pre_ping=True, hide_parameters=True)
        if self.file is None:
            shared = {"check_same_thread": False}
            return create_engine(self._url, poolclass=StaticPool, connect_args=shared, hide_parameters=True)
        patient = {} if "timeout" in self._url.query else {"timeout": BUSY_SECONDS}
        return _with_sqlite_settings(create_engine(self._url, connect_args=patient, hide_parameters=True))

    def _make_ready(self) -> None:
        with self._setting_up:
            if self._is_ready:
                return
            if self.file is not None and "mode" not in self._url.query:
                make_private(self.file)
            self._make_tables()
            self._is_ready = True

    def _make_tables(self) -> None:
        with self._engine.connect() as connection, connection.begin():
            there = connection.dialect.has_table(connection, tables.log_turns.name)
        if there:
            return
        with self._engine.connect().execution_options(is_writing=True) as connection, connection.begin():
            if not self._is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _SETTING_UP})
            tables.metadata.create_all(connection)
            if connection.execute(select(tables.log_turns.c.id)).first() is None:
                connection.execute(insert(tables.log_turns).values(id=1, taken=0))


def _understood(url: str) -> URL:
    try:
        parsed = make_url(url)
        backend = parsed.get_backend_name()
        if parsed.drivername == "postgresql":
            parsed = parsed.set(drivername="postgresql+psycopg")
        parsed.get_dialect()
    except (ArgumentError, NoSuchModuleError, ImportError, ValueError, AttributeError) as exc:
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", "store is no database URL that can be used") from exc
    if backend not in ("sqlite", "postgresql"):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", f"store is a sqlite: or postgresql: URL, not {backend}:")
    return parsed


def _file_of(url: URL) -> Path | None:
    name = url.database or ""
    if url.get_backend_name() != "sqlite" or name in ("", ":memory:"):
        return None
    return Path(name.removeprefix("file:"))


def _with_sqlite_settings(engine: Engine) -> Engine:
    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _record: Any) -> None:
        # SQLAlchemy says when a transaction begins (below), not the driver.
        connection.isolation_level = None
        cursor = connection.cursor()
        try:
            cursor.execute(f"PRAGMA journal_mode={journal_mode(sqlite3.sqlite_version_info)}")
            cursor.execute("PRAGMA synchronous=FULL")
        except sqlite3.OperationalError:
            # Read-only or locked at this moment; the first write will say so itself.
            pass
        finally:
            cursor.close()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:
        is_writing = connection.get_execution_options().get("is_writing", False)
        connection.exec_driver_sql("BEGIN IMMEDIATE" if is_writing else "BEGIN")

    return engine


@contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except (SQLAlchemyError, OSError) as exc:
        # The driver's text may hold the address with its password, and values of the statement.
        kind = type(getattr(exc, "orig", None) or exc).__name__
        failure = StoreUnavailable(f"The store cannot be used: {kind}")
    else:
        return
    raise failure
