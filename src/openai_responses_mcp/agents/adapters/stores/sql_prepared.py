"""Statements that are run with every call, put together once.

SQLite takes a few microseconds for one of them, and SQLAlchemy many times that for what it puts around it. So SQLite
gets them from its own driver, inside the transaction that SQLAlchemy has begun. On PostgreSQL it is the way to the server
that takes long, and they run like any other statement.
"""

import sqlite3
from collections.abc import Mapping, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Insert, Select
from sqlalchemy.dialects import sqlite


class Prepared:
    def __init__(self, statement: Insert | Select[Any], on_postgresql: Insert | None = None) -> None:
        dialect = sqlite.dialect()
        compiled = statement.compile(dialect=dialect)
        self._on_sqlite = str(compiled)
        names = compiled.positiontup or ()
        self._binds = [(name, compiled.binds[name].type.bind_processor(dialect)) for name in names]
        self._elsewhere = statement if on_postgresql is None else on_postgresql

    def run(self, connection: Connection, rows: Sequence[Mapping[str, object]]) -> None:
        """Once for each row."""
        if _is_sqlite(connection):
            driver_of(connection).executemany(self._on_sqlite, map(self._bound, rows))
        else:
            connection.execute(self._elsewhere, rows)

    def first(self, connection: Connection, **values: object) -> Sequence[Any] | None:
        """The first row, if there is one. Texts in it are as they are stored."""
        if _is_sqlite(connection):
            found: Sequence[Any] | None = driver_of(connection).execute(self._on_sqlite, self._bound(values)).fetchone()
            return found
        return connection.execute(self._elsewhere, values).first()

    def _bound(self, values: Mapping[str, object]) -> list[object]:
        return [values[name] if process is None else process(values[name]) for name, process in self._binds]


def _is_sqlite(connection: Connection) -> bool:
    return connection.dialect.name == "sqlite"


def driver_of(connection: Connection) -> sqlite3.Connection:
    return cast(sqlite3.Connection, connection.connection.driver_connection)
