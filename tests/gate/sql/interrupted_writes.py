"""SQLite files as a process killed in the middle of a write leaves them, and a full disk."""

import resource
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

# So much that pages reach the file before the transaction ends.
MUCH = [("x" * 3000,)] * 50


def leave_journal(file: Path, *statements: str, table: str = "agents_clock (id, latest)") -> None:
    """Write into the file and stop before the commit. Without statements, a table of it gets many rows."""
    aside = file.with_name("aside")
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        for pragma in ("journal_mode=DELETE", "synchronous=OFF", "cache_size=1"):
            connection.execute(f"PRAGMA {pragma}")
        connection.execute("BEGIN IMMEDIATE")
        for statement in statements:
            connection.execute(statement)
        if not statements:
            connection.executemany(f"INSERT INTO {table} VALUES (abs(random()), ?)", MUCH)
        shutil.copy(file, aside)
        shutil.copy(f"{file}-journal", f"{aside}-journal")
        connection.execute("ROLLBACK")
    aside.replace(file)
    Path(f"{aside}-journal").replace(f"{file}-journal")
    assert has_hot_journal(file)


def leave_wal(file: Path, *statements: str) -> None:
    """Commit to a write-ahead log, and leave that beside the file. Without statements, a table of it gets a row."""
    aside = file.with_name("aside")
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("PRAGMA journal_mode=WAL")
        for statement in statements or ("INSERT INTO agents_budgets VALUES ('', 0, 0)",):
            connection.execute(statement)
        for ending in ("", "-wal"):
            shutil.copy(f"{file}{ending}", f"{aside}{ending}")
    for ending in ("", "-wal"):
        Path(f"{aside}{ending}").replace(f"{file}{ending}")


def has_hot_journal(file: Path) -> bool:
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as connection:
        try:
            connection.execute("SELECT count(*) FROM sqlite_master")
        except sqlite3.OperationalError as exc:
            return exc.sqlite_errorname == "SQLITE_READONLY_ROLLBACK"
    return False


@contextmanager
def full_at(size: int) -> Iterator[None]:
    """No file of this process grows past the size."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
