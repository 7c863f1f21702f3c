"""Whether a file is ours, and making it private if so. Nothing is touched before that is known.

The file is opened by SQLite, read-only, and never directly. Closing a file that SQLite has open elsewhere in this
process would take SQLite's locks away.
"""

import os
import sqlite3
import stat
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from openai_responses_mcp.agents.adapters.private_files import create_private, make_private
from openai_responses_mcp.agents.adapters.stores.database_urls import SqliteFile
from openai_responses_mcp.agents.adapters.stores.sql_tables import metadata
from openai_responses_mcp.agents.errors import AgentsError


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
        _check_tables(file.path, busy_seconds)
    if not file.is_read_only:
        make_private(file.path)


def _check_tables(path: Path, busy_seconds: float) -> None:
    try:
        address = f"file:{quote(str(path))}?mode=ro"
        with closing(sqlite3.connect(address, uri=True, timeout=busy_seconds)) as connection:
            names = {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    except sqlite3.OperationalError:
        raise
    except sqlite3.DatabaseError:
        message = f"store names {path.name}, which is not a SQLite database; nothing was changed"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message) from None
    if names and not names & set(metadata.tables):
        message = f"store names {path.name}, which is the database of something else; name a file of its own"
        raise AgentsError("AGENTS-E-RUNNER-CONFIG", message)
