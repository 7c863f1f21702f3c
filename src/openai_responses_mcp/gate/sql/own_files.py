"""Files of our own: the store of a user who has named none, and private files that are written as a whole.

That store is a SQLite file in the folder where programs keep their state. The guard makes it, and the commands in a
terminal find it without a name.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

from openai_responses_mcp.domain.extras import needs_extra
from openai_responses_mcp.domain.texts import Sentence
from openai_responses_mcp.gate.errors import StoreUnavailable

_FOLDER, _FILE = "openai-responses-mcp", "guard.db"
_OWNER_ONLY = 0o600


def own_store(environ: Mapping[str, str]) -> str:
    """The URL of the user's own store. Creates its folder, for its owner alone."""
    path = _path(environ)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    return f"sqlite:///{path}"


def own_folder(environ: Mapping[str, str]) -> str:
    """The folder of the guard's own files."""
    return os.path.dirname(_path(environ))


def store_from(given: str | None, environ: Mapping[str, str]) -> str | None:
    """The given store, else that of `AGENTS_STORE`, else the user's own if it exists."""
    path = _path(environ)
    return given or environ.get("AGENTS_STORE") or (f"sqlite:///{path}" if os.path.exists(path) else None)


def store_to_wait_at(given: str | None, environ: Mapping[str, str]) -> str | None:
    """The same for code that waits for requests: creates the user's own store if there is none.

    None without the extra that a store needs. Raises `StoreUnavailable`.
    """
    store = store_from(given, environ)
    if store is not None or not find_spec("sqlalchemy"):
        return store
    from openai_responses_mcp.gate.sql.sql_database import SqlDatabase

    try:
        database = SqlDatabase(own_store(environ))
    except OSError as exc:
        raise StoreUnavailable(
            Sentence("{folder} cannot be made: {why}", folder=own_folder(environ), why=exc.strerror)
        ) from exc
    database.work_now(lambda connection: None)
    database.close()
    return own_store(environ)


def why_no_store(is_installed: Callable[[str], object] = find_spec) -> str:
    """What to do when `store_from` finds none. Without the extra there cannot be one."""
    if not is_installed("sqlalchemy"):
        return needs_extra("guard")
    return Sentence(
        "there is no store yet: the first guarded call makes one; name another with --store or AGENTS_STORE, such as sqlite:///agents.db"
    )


def _path(environ: Mapping[str, str]) -> str:
    windows = environ.get("LOCALAPPDATA", "")
    if os.name == "nt" and windows:
        return os.path.join(windows, _FOLDER, _FILE)
    state = environ.get("XDG_STATE_HOME", "")
    # The XDG specification says to ignore a relative path.
    folder = state if os.path.isabs(state) else os.path.join(os.path.expanduser("~"), ".local", "state")
    return os.path.join(folder, _FOLDER, _FILE)


def replace_private(file: Path, text: str) -> None:
    """Replace the file as a whole; only its owner may read the new one."""
    with written_beside(file, text.encode()) as new:
        os.replace(new, file)


@contextmanager
def written_beside(file: Path, content: bytes) -> Iterator[Path]:
    """A new private file in the same folder, safe on the disk. It is removed at the end unless it was moved."""
    new = file.with_name(f"{file.name}.{os.getpid()}.new")
    try:
        descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, _OWNER_ONLY)
        with os.fdopen(descriptor, "wb") as opened:
            opened.write(content)
            opened.flush()
            os.fsync(descriptor)
        yield new
    finally:
        new.unlink(missing_ok=True)
