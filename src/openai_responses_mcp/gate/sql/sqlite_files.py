"""Whether a file is ours, and making it private if so. Nothing is touched before that is known.

A process that was killed in the middle of a write leaves a journal, and SQLite undoes that write when the file is next
opened for writing. That would change a file of somebody else. So the first look is `immutable`: SQLite takes no lock,
makes no file and ignores journals. What it sees may be half written, but our mark is on the first page before our first
table is made, and a write never changes the names of tables that are there already.

The file is opened by SQLite and never directly. Closing a file that SQLite has open elsewhere in this process would
take SQLite's locks away.
"""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.sql.database_urls import SqliteFile
from openai_responses_mcp.gate.sql.private_files import create_private, make_private
from openai_responses_mcp.gate.sql.sql_tables import metadata

MARK = 0x6F726D67
"""The `application_id` of our files. Stores of earlier versions have none until tables are added to them."""


def make_ours(file: SqliteFile, busy_seconds: float) -> None:
    """A missing file is created; one that is there is made private if it is empty or holds our tables.

    Anything else is `AGENTS-E-RUNNER-CONFIG` and stays as it is. Raises `OSError` and `sqlite3.OperationalError`.
    """
    if file.may_create and not file.path.exists() and create_private(file.path):
        return
    found = os.stat(file.path)
    if not stat.S_ISREG(found.st_mode):
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", f"store names {file.path.name}, which is not a file")
    if found.st_size > 0:
        _check_owner(file.path, busy_seconds)
    if not file.is_read_only:
        make_private(file.path)


def _check_owner(path: Path, busy_seconds: float) -> None:
    try:
        is_marked, names = _look(path, "immutable=1", busy_seconds)
        if not is_marked and not names:
            # No table is visible: the file is empty, is being written, or its tables are still in the write-ahead log.
            is_marked, names = _look(path, "mode=ro", busy_seconds)
            if names is None:
                raise sqlite3.DatabaseError
    except sqlite3.OperationalError as exc:
        if getattr(exc, "sqlite_errorcode", None) != sqlite3.SQLITE_READONLY_ROLLBACK:
            raise
        message = f"store names {path.name}, in which another program has left an unfinished write; nothing was changed"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message) from None
    except sqlite3.DatabaseError:
        message = f"store names {path.name}, which is not a SQLite database; nothing was changed"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message) from None
    if names and not is_marked and not names & set(metadata.tables):
        message = f"store names {path.name}, which is the database of something else; name a file of its own"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)


def _look(path: Path, how: str, busy_seconds: float) -> tuple[bool, set[str] | None]:
    """Whether the file has our mark, and the names of its tables; None where these cannot be read."""
    with closing(sqlite3.connect(f"file:{quote(str(path))}?{how}", uri=True, timeout=busy_seconds)) as connection:
        # A file that is shorter than its first page says is read as far as it goes. Nothing is written.
        connection.execute("PRAGMA writable_schema=ON")
        is_marked = connection.execute("PRAGMA application_id").fetchone()[0] == MARK
        try:
            rows = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall()
        except sqlite3.OperationalError:
            raise
        except sqlite3.DatabaseError:
            return is_marked, None
    return is_marked, {name for (name,) in rows}
