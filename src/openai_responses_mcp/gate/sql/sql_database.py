"""One database behind all stores: how it is opened, how work reaches it, and what its errors become.

SQLAlchemy's calls block, so each piece of work is one transaction on a thread; a database in memory is quick enough
without. SQLite writes begin with the write lock taken; a file belongs to its owner only. WAL is used from SQLite 3.51.3
on: earlier versions can lose rows in it. They get a rollback journal that stays beside the file: a write that makes one
and deletes it takes longer. Work that can wait is written in the same transaction as the next work that cannot.
"""

import asyncio
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from sqlalchemy import (
    Connection,
    Engine,
    Executable,
    Row,
    StaticPool,
    Table,
    create_engine,
    event,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.exc import DataError, SQLAlchemyError
from sqlalchemy.schema import CreateColumn

from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.errors import ReadOnlyStore, RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.sql import sql_tables as tables
from openai_responses_mcp.gate.sql.database_urls import MARK, make_ours, sqlite_file, understood

SAFE_WAL_VERSION = (3, 51, 3)
IN_MEMORY = "sqlite://"
BUSY_SECONDS = 15.0  # how long to wait for a SQLite file that others lock; `?timeout=` in the URL overrides it

_SETTING_UP = 0x0A6E7_5E7  # the advisory lock of PostgreSQL under which the tables are made
_T = TypeVar("_T")

INSERTS: dict[str, Callable[[Table], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
"""Statements that know what to do on a conflict, by dialect."""

Job = Callable[[Connection], _T]


def row_of(value: object) -> dict[str, object]:
    """The fields of a dataclass with slots, as a row of the table with the same columns."""
    return {name: getattr(value, name) for name in type(value).__slots__}  # type: ignore[attr-defined]


def journal_mode(version: tuple[int, ...]) -> str:
    return "WAL" if version >= SAFE_WAL_VERSION else "PERSIST"


class SqlDatabase:
    def __init__(self, url: str = IN_MEMORY, *, must_exist: bool = False) -> None:
        """Opens nothing yet. A URL of neither SQLite nor PostgreSQL: `AGENTS-E-RUNNER-CONFIG`.

        With `must_exist` nothing is created, and work on a store that is not there is `StoreUnavailable`.
        """
        self._url = understood(url)
        self._sqlite_file = sqlite_file(self._url)
        self._must_exist = must_exist
        self._busy_seconds = float(str(self._url.query.get("timeout", BUSY_SECONDS)))
        self.dialect = self._url.get_backend_name()
        self.is_sqlite = self.dialect == "sqlite"
        self.is_in_memory = self.is_sqlite and self._sqlite_file is None
        self._engine = self._make_engine()
        self._writing = self._engine.execution_options(is_writing=True)
        # Connections are closed in order, also when close() is not called.
        weakref.finalize(self, self._engine.dispose)
        # Own threads, so that slow tools on the loop's threads do not delay the store.
        self._threads = ThreadPoolExecutor(max_workers=4, thread_name_prefix="agents-store")
        self._setting_up = threading.Lock()
        # Threads take turns with a database in memory.
        self._turn = threading.Lock() if self.is_in_memory else nullcontext()
        self._waiting: list[Job[object]] = []
        self._claiming = threading.Lock()
        self._is_ready = False

    @property
    def file(self) -> Path | None:
        """The SQLite file, where there is one."""
        return self._sqlite_file.path if self._sqlite_file else None

    @property
    def has_waiting(self) -> bool:
        return bool(self._waiting)

    async def open(self) -> None:
        """Check once that the database can be used. Raises as `work` does."""
        if not self._is_ready:
            await self.work(lambda connection: None, is_writing=False)

    async def work(self, job: Job[_T], *, is_writing: bool = True) -> _T:
        """Run the job in one transaction. Raises `StoreUnavailable`; an error of the job's own rolls back."""
        work = partial(self.work_now, job, is_writing=is_writing)
        if self.is_in_memory:
            return work()
        return await asyncio.get_running_loop().run_in_executor(self._threads, work)

    async def rows(
        self, query: Executable, values: Mapping[str, object] | None = None, *, is_writing: bool = False
    ) -> Sequence[Row[Any]]:
        """All rows. With `is_writing`, waiting jobs run first."""
        return await self.work(lambda connection: connection.execute(query, values).all(), is_writing=is_writing)

    async def change(self, statement: Executable, values: Mapping[str, object] | None = None) -> int:
        """Run one statement. Returns how many rows it changed."""
        return await self.work(lambda connection: int(connection.execute(statement, values).rowcount))

    def work_later(self, job: Job[object]) -> None:
        """Run the job in the transaction of the next writing work. If none comes, it is lost with the process.

        Others may write in between, and later work may overtake it.
        """
        with self._claiming:
            self._waiting.append(job)

    def work_now(self, job: Job[_T], *, is_writing: bool = True) -> _T:
        with _translated(), self._turn:
            self._make_ready()
            taken_along: list[Job[object]] = []
            if is_writing:
                with self._claiming:
                    taken_along, self._waiting = self._waiting, []
            try:
                with self._transaction(is_writing) as connection:
                    for earlier in taken_along:
                        earlier(connection)
                    return job(connection)
            except BaseException:
                with self._claiming:
                    self._waiting = taken_along + self._waiting
                raise

    @contextmanager
    def own_connection(self) -> Iterator[Connection]:
        """A connection to keep, in autocommit mode. Raises as SQLAlchemy and the driver do."""
        with self._engine.connect() as connection:
            yield connection.execution_options(isolation_level="AUTOCOMMIT")

    @property
    def driver_error(self) -> type[Exception]:
        """What the driver raises when it is used without SQLAlchemy."""
        error: type[Exception] = self._engine.dialect.loaded_dbapi.Error
        return error

    def close(self) -> None:
        """Run waiting jobs and close every connection; later work opens new ones."""
        if self._waiting:
            self.work_now(lambda connection: None)
        with self._turn:
            self._engine.dispose()

    def _transaction(self, is_writing: bool) -> AbstractContextManager[Connection]:
        return (self._writing if is_writing else self._engine).begin()

    def _make_engine(self) -> Engine:
        if not self.is_sqlite:
            return create_engine(self._url, pool_pre_ping=True, hide_parameters=True)
        if self.is_in_memory:
            shared = {"check_same_thread": False}
            return create_engine(self._url, poolclass=StaticPool, connect_args=shared, hide_parameters=True)
        patient = {"timeout": self._busy_seconds}
        return _with_sqlite_settings(
            create_engine(self._url, connect_args=patient, hide_parameters=True), self._busy_seconds
        )

    def _make_ready(self) -> None:
        if self._is_ready:
            return
        with self._setting_up:
            if self._sqlite_file is not None:
                if self._must_exist and not self._sqlite_file.path.exists():
                    raise StoreUnavailable(
                        Sentence(
                            "There is no store at this address: nothing was ever kept there ({name})",
                            name=self._sqlite_file.path.name,
                        )
                    )
                make_ours(self._sqlite_file, self._busy_seconds)
            self._make_tables()
            self._is_ready = True

    def _make_tables(self) -> None:
        with self._transaction(is_writing=False) as connection:
            has = partial(connection.dialect.has_table, connection)
            if self._must_exist and not has(tables.log_turns.name):
                raise StoreUnavailable(Sentence("There is no store at this address: nothing was ever kept there"))
            if all(
                has(one.table.name) and one.name in _columns_of(connection, one.table.name) for one in tables.NEWEST
            ):
                return
        if self.is_sqlite:
            # Committed before the first table, so that a kill while tables are made leaves a file that is known as ours.
            with self._transaction(is_writing=True) as connection:
                connection.exec_driver_sql(f"PRAGMA application_id = {MARK}")
        with self._transaction(is_writing=True) as connection:
            if not self.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": _SETTING_UP})
            tables.metadata.create_all(connection)
            _add_new_columns(connection)
            if connection.execute(select(tables.log_turns.c.id)).first() is None:
                connection.execute(insert(tables.log_turns).values(id=1, taken=0))
            if connection.execute(select(tables.clock.c.id)).first() is None:
                connection.execute(insert(tables.clock).values(id=1, latest=""))


class OnDatabase:
    """A store on a database that it may share with others."""

    def __init__(self, database: SqlDatabase) -> None:
        self._database = database


def _add_new_columns(connection: Connection) -> None:
    """For tables of an earlier version, which can go on using them."""
    for table in tables.metadata.sorted_tables:
        known = _columns_of(connection, table.name)
        for column in table.columns:
            if column.name not in known:
                declared = CreateColumn(column).compile(dialect=connection.dialect)
                connection.exec_driver_sql(f"ALTER TABLE {table.name} ADD COLUMN {declared}")


def _columns_of(connection: Connection, table: str) -> set[str]:
    return {column["name"] for column in inspect(connection).get_columns(table)}


def _with_sqlite_settings(engine: Engine, busy_seconds: float) -> Engine:
    @event.listens_for(engine, "connect")
    def set_up(connection: sqlite3.Connection, _record: object) -> None:
        # SQLAlchemy says when a transaction begins (below), not the driver.
        connection.isolation_level = None
        cursor = connection.cursor()
        try:
            # The transaction waits for a lock anyway. Waiting here too would double the time.
            cursor.execute(f"PRAGMA busy_timeout={min(1000, int(busy_seconds * 1000))}")
            cursor.execute("PRAGMA synchronous=FULL")
            cursor.execute(f"PRAGMA journal_mode={journal_mode(sqlite3.sqlite_version_info)}")
        except sqlite3.OperationalError:
            # Read-only or locked at this moment; the first write will say so itself.
            pass
        finally:
            cursor.execute(f"PRAGMA busy_timeout={int(busy_seconds * 1000)}")
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
    except (DataError, sqlite3.DataError, UnicodeError, OverflowError) as exc:
        failure: StoreUnavailable = RecordRefused(
            Sentence("The store does not take this record: {why}", why=_kind_of(exc))
        )
    except (SQLAlchemyError, sqlite3.Error, OSError) as exc:
        kind = ReadOnlyStore if _sqlite_error(exc) in _READ_ONLY_ERRORS else StoreUnavailable
        failure = kind(Sentence("The store cannot be used: {why}", why=_kind_of(exc)))
    else:
        return
    raise failure


def _kind_of(error: Exception) -> str:
    """In our own words: a driver's may hold the address with its password, or values of the statement."""
    cause = getattr(error, "orig", None) or error
    if known := _SQLITE_WORDS.get(_sqlite_error(error)):
        return known
    if isinstance(cause, sqlite3.OperationalError):
        # SQLite has no address and no password that it could name.
        return str(cause)
    if isinstance(cause, OSError):
        return cause.strerror or Sentence("the system does not say why")
    return _WORDS.get(type(cause).__name__, Sentence("the database does not say why"))


def _sqlite_error(error: Exception) -> str:
    """The name that SQLite gives to the error; empty for any other."""
    return str(getattr(getattr(error, "orig", None) or error, "sqlite_errorname", ""))


_READ_ONLY_ERRORS = ("SQLITE_READONLY", "SQLITE_READONLY_DIRECTORY")
_READ_ONLY = Sentence("the file or its folder is read-only")
_NOT_UNDONE = Sentence("a write was interrupted and has to be undone first, but the file or its folder is read-only")
_MOVED = Sentence("the file was moved or replaced while it was in use; restart this program")
_DAMAGED = Sentence("the file is damaged; put back a copy of it, or move it away to start with an empty store")
_SQLITE_WORDS = {
    "SQLITE_IOERR_WRITE": Sentence("the disk did not take the write; is it full?"),
    **dict.fromkeys(_READ_ONLY_ERRORS, _READ_ONLY),
    "SQLITE_READONLY_ROLLBACK": _NOT_UNDONE,
    "SQLITE_IOERR_DELETE": _NOT_UNDONE,
    "SQLITE_READONLY_DBMOVED": _MOVED,
    "SQLITE_IOERR_FSTAT": _MOVED,
    "SQLITE_BUSY": Sentence("the database is locked by another process; try again when it is done"),
    "SQLITE_CORRUPT": _DAMAGED,
    "SQLITE_NOTADB": _DAMAGED,
}
_WORDS = {
    "OperationalError": Sentence("no connection to the database"),
    "ProgrammingError": Sentence("the database lacks the tables, or the right to use them"),
    "DataError": Sentence("a value does not fit"),
    "IntegrityError": Sentence("it is there already"),
    "OverflowError": Sentence("a number is too large"),
    "UnicodeEncodeError": Sentence("a letter cannot be stored"),
}
