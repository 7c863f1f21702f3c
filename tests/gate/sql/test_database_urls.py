"""Which database URLs are valid, the SQLite file of each, and the messages for the others."""

import sys
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents import create_runner
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.sql.database_urls import SqliteFile, sqlite_file, understood
from tests.agents.fakes import FakeJudge


def test_a_url_that_cannot_be_used_is_explained() -> None:
    cases: list[tuple[Any, str]] = [
        ("agents.db", "not a database URL"),
        ("postgres://me@host/db", "begins with postgresql://"),
        ("mysql://host/db", "not mysql:"),
        ("sqlite:///a\0b.db", "not a database URL"),
        ("postgresql+psycopg2://me@host/db", "psycopg2"),
        ("postgresql+nothing://me@host/db", "does not exist"),
        ("postgresql+psycopg_async://me@host/db", "asynchronous"),
        ("sqlite:///agents.db?mode=ro", "uri=true"),
        ("postgresql://host:port/db", "not a database URL"),
        ("sqlite:///agents.db?timeout=nan", "number of seconds"),
        (5, "not a database URL"),
    ]
    for url, words in cases:
        with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG") as caught:
            create_runner(safety_agent=FakeJudge(), store=url)
        assert words in caught.value.message
        assert caught.value.__cause__ is None


def test_a_missing_driver_is_reported_with_its_install_command_and_no_password(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    with pytest.raises(AgentsError, match="pip install") as caught:
        understood("postgresql://me:hush@host/db")
    assert "hush" not in str(caught.value)


def test_a_url_maps_to_its_sqlite_file() -> None:
    cases: list[tuple[str, SqliteFile | None]] = [
        ("postgresql://host/db", None),
        ("sqlite://", None),
        ("sqlite:///file:name?mode=memory&cache=shared&uri=true", None),
        ("sqlite:////tmp/a.db", SqliteFile(Path("/tmp/a.db"))),
        ("sqlite:///a.db", SqliteFile(Path.cwd() / "a.db")),
        ("sqlite:///file:a.db?uri=true", SqliteFile(Path.cwd() / "a.db")),
        ("sqlite:///file:///tmp/a%20b.db?uri=true", SqliteFile(Path("/tmp/a b.db"))),
        ("sqlite:///file://localhost/tmp/a.db?mode=rwc&uri=true", SqliteFile(Path("/tmp/a.db"))),
        ("sqlite:///file:/tmp/a.db?mode=rw&uri=true", SqliteFile(Path("/tmp/a.db"), may_create=False)),
        ("sqlite:///file:/tmp/a.db?mode=ro&uri=true", SqliteFile(Path("/tmp/a.db"), False, is_read_only=True)),
        ("sqlite:///file:/tmp/a.db?immutable=1&uri=true", SqliteFile(Path("/tmp/a.db"), is_read_only=True)),
    ]
    for url, file in cases:
        assert sqlite_file(understood(url)) == file
