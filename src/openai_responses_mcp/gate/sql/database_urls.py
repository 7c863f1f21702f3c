"""Which database a URL means. One that cannot be used is `AGENTS-E-RUNNER-CONFIG`, with what to write instead."""

from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from sqlalchemy.engine import URL, make_url
from sqlalchemy.exc import ArgumentError, NoSuchModuleError

from openai_responses_mcp.domain.extras import install_line
from openai_responses_mcp.gate.errors import AgentsError

# What the driver takes itself; anything else in the query is SQLite's, and SQLite reads it only in a URI.
_DRIVER_ARGUMENTS = frozenset(
    ("uri", "timeout", "isolation_level", "detect_types", "check_same_thread", "cached_statements")
)


def understood(url: str) -> URL:
    try:
        # Neither can be in the name of a file, nor in an address.
        url.encode()
        if "\0" in url:
            raise ValueError
        parsed = make_url(url)
    except (ArgumentError, ValueError, AttributeError, TypeError):
        raise _unusable("store is not a database URL; write sqlite:///agents.db or postgresql://…") from None
    backend = parsed.get_backend_name()
    if backend == "postgres":
        raise _unusable("store begins with postgresql://, not with postgres://")
    if backend not in ("sqlite", "postgresql"):
        raise _unusable(f"store is a sqlite: or postgresql: URL, not {backend}:")
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
        raise _unusable(f"store names a driver that does not exist: {url.drivername}") from None
    except ImportError as exc:
        message = f"The driver of {url.drivername} is not installed ({exc.name}); write postgresql:// and {install_line('postgres')}"
        raise _unusable(message) from None
    if dialect.is_async:
        raise _unusable(f"store takes no asynchronous driver; write {url.get_backend_name()}:// alone")


def _check_query(url: URL) -> None:
    if url.get_backend_name() != "sqlite":
        return
    unread = sorted(set(url.query) - _DRIVER_ARGUMENTS)
    if unread and not _is_uri(url):
        names = ", ".join(unread)
        raise _unusable(f"SQLite reads {names} of store only in a URI: sqlite:///file:agents.db?…&uri=true")


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


def _unusable(message: str) -> AgentsError:
    return AgentsError("AGENTS-E-RUNNER-CONFIG", message)
