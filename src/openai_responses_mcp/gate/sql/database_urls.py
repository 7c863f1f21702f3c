"""Which database a URL means, and whether a SQLite file is ours.

A URL that cannot be used is `AGENTS-E-RUNNER-CONFIG`, with what to write instead.

Nothing in a file is touched before it is known to be ours. A process that was killed in the middle of a write leaves a
journal, and SQLite undoes that write when the file is next opened for writing. That would change a file of another
program. So the first look is `immutable`: SQLite takes no lock, makes no file and ignores journals. What it sees may be
half written, but our mark is on the first page before our first table is made, and a write never changes the names of
tables that are there already.

The file is opened by SQLite and never directly. Closing a file that SQLite has open elsewhere in this process would
take SQLite's locks away.
"""

import os
import sqlite3
import stat
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote, unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from openai_responses_mcp.domain.extras import install_line
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.errors import config_error
from openai_responses_mcp.gate.sql.sql_tables import metadata

MARK = 0x6F726D67
"""The `application_id` of our files. Stores of earlier versions have none until tables are added to them."""

# Windows has owners and no modes: there the mode only keeps a file writable, and its folder says who may read it.
_OWNER_ONLY = 0o600
_OTHERS = 0o077

# Arguments for the driver. Everything else in the query is for SQLite, which reads it only from a URI.
_DRIVER_ARGUMENTS = frozenset(
    ("uri", "timeout", "isolation_level", "detect_types", "check_same_thread", "cached_statements")
)

_LONGEST_TIMEOUT_SECONDS = 1_000_000


def understood(url: str) -> URL:
    try:
        # No file name and no address can hold half a surrogate pair or NUL.
        url.encode()
        if "\0" in url:
            raise ValueError
        parsed = make_url(url)
    except (ArgumentError, ValueError, AttributeError, TypeError):
        raise config_error(
            Sentence("store is not a database URL; write sqlite:///agents.db or postgresql://…")
        ) from None
    backend = parsed.get_backend_name()
    if backend == "postgres":
        raise config_error(Sentence("store begins with postgresql://, not with postgres://"))
    if backend not in ("sqlite", "postgresql"):
        raise config_error(Sentence("store is a sqlite: or postgresql: URL, not {backend}:", backend=backend))
    if parsed.drivername == "postgresql":
        parsed = parsed.set(drivername="postgresql+psycopg")
    _check_driver(parsed)
    _check_query(parsed)
    return parsed


def _check_driver(url: URL) -> None:
    try:
        dialect = url.get_dialect()
        dialect.import_dbapi()
    except (NoSuchModuleError, ArgumentError):
        raise config_error(
            Sentence("store names a driver that does not exist: {driver}", driver=url.drivername)
        ) from None
    except ImportError as exc:
        message = Sentence(
            "The driver of {driver} is not installed ({name}); write postgresql:// and {command}",
            driver=url.drivername,
            name=exc.name,
            command=install_line("postgres"),
        )
        raise config_error(message) from None
    if dialect.is_async:
        raise config_error(
            Sentence(
                "store takes no asynchronous driver; write {backend}:// alone",
                backend=url.get_backend_name(),
            )
        )


def _check_query(url: URL) -> None:
    if url.get_backend_name() != "sqlite":
        return
    unread = sorted(set(url.query) - _DRIVER_ARGUMENTS)
    if unread and not _is_uri(url):
        names = ", ".join(unread)
        raise config_error(
            Sentence("SQLite reads {names} of store only in a URI: sqlite:///file:agents.db?…&uri=true", names=names)
        )
    try:
        if not abs(float(str(url.query.get("timeout", 0)))) <= _LONGEST_TIMEOUT_SECONDS:
            raise ValueError
    except ValueError:
        raise config_error(Sentence("timeout of store is a number of seconds")) from None


@dataclass(frozen=True, slots=True)
class SqliteFile:
    path: Path
    may_create: bool = True
    is_read_only: bool = False


def sqlite_file(url: URL) -> SqliteFile | None:
    """None where there is no file: another database, or one in memory."""
    name = url.database or ""
    if url.get_backend_name() != "sqlite" or name in ("", ":memory:"):
        return None
    if not _is_uri(url) or not name.startswith("file:"):
        return SqliteFile(Path(name).absolute())
    mode, path = url.query.get("mode", "rwc"), _path_in(name)
    if mode == "memory" or path in ("", ":memory:"):
        return None
    is_read_only = mode == "ro" or url.query.get("immutable", "0") not in ("0", "no", "false", "off")
    return SqliteFile(Path(path).absolute(), may_create=mode == "rwc", is_read_only=is_read_only)


def _is_uri(url: URL) -> bool:
    return str(url.query.get("uri", "")).lower() in ("1", "true", "yes", "on", "y", "t")


def _path_in(uri: str) -> str:
    """The path of a `file:` URI, with or without an empty or local host."""
    path = uri.removeprefix("file:").partition("#")[0]
    if path.startswith("//"):
        path = f"/{path[2:].partition('/')[2]}"
    return unquote(path)


# ---------------------------------------------------------------------------------------------------------------------
# SQLite files


def make_ours(file: SqliteFile, busy_seconds: float) -> None:
    """A missing file is created; one that is there is made private if it is empty or holds our tables.

    Anything else is `AGENTS-E-RUNNER-CONFIG` and is not changed. Raises `OSError` and `sqlite3.OperationalError`.
    """
    if file.may_create and not file.path.exists() and create_private(file.path):
        return
    found = os.stat(file.path)
    if not stat.S_ISREG(found.st_mode):
        raise config_error(Sentence("store names {name}, which is not a file", name=file.path.name))
    if found.st_size > 0:
        _check_owner(file.path, busy_seconds)
    if not file.is_read_only:
        make_private(file.path)


def create_private(file: Path) -> bool:
    """Created with its final mode, so that others can never read it. False if the file exists."""
    try:
        os.close(os.open(file, os.O_RDWR | os.O_CREAT | os.O_EXCL, _OWNER_ONLY))
    except FileExistsError:
        return False
    return True


def make_private(file: Path) -> None:
    """Only for a file that is known to be ours."""
    mode = stat.S_IMODE(os.stat(file).st_mode)
    if mode & _OTHERS:
        # A file of another user, or on a disk that is read-only, keeps its mode.
        with suppress(OSError):
            os.chmod(file, mode & ~_OTHERS)


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
        message = Sentence(
            "store names {name}, in which another program has left an unfinished write; nothing was changed",
            name=path.name,
        )
        raise config_error(message) from None
    except sqlite3.DatabaseError:
        message = Sentence("store names {name}, which is not a SQLite database; nothing was changed", name=path.name)
        raise config_error(message) from None
    if names and not is_marked and not names & set(metadata.tables):
        message = Sentence(
            "store names {name}, which is the database of something else; name a file of its own", name=path.name
        )
        raise config_error(message)


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
