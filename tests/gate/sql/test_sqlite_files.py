"""Files of other programs stay untouched, and our own can be read by their owner alone."""

import asyncio
import os
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from openai_responses_mcp.agents import Agent, create_runner
from openai_responses_mcp.agents.testing import ScriptedModel
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.sql.database_urls import create_private, make_private
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from tests.agents.fakes import FakeJudge, code_of


def use(url: str) -> None:
    database = SqlDatabase(url)
    database.work_now(lambda connection: None)
    database.close()


def mode_of(file: Path) -> int:
    return file.stat().st_mode & 0o777


FORMS = [
    "sqlite:///{path}",
    "sqlite:///file:{path}?uri=true",
    "sqlite:///file://{path}?mode=rwc&cache=private&uri=true",
]


@pytest.fixture
def open_umask() -> object:
    before = os.umask(0)
    yield None
    os.umask(before)


@pytest.mark.usefixtures("open_umask")
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("was_there", [False, True])
def test_the_database_is_private_with_every_form_of_url(tmp_path: Path, form: str, was_there: bool) -> None:
    file = tmp_path / "agents.db"
    if was_there:
        use(f"sqlite:///{file}")
        file.chmod(0o666)
    use(form.format(path=file))
    assert mode_of(file) == 0o600
    # The journal of SQLite stays beside it.
    assert {one.name for one in tmp_path.iterdir()} <= {"agents.db", "agents.db-journal"}
    assert {mode_of(one) for one in tmp_path.iterdir()} == {0o600}


def test_an_empty_file_and_a_database_without_tables_become_the_store(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch(0o644)
    with closing(sqlite3.connect(tmp_path / "no tables.db")) as connection:
        connection.execute("PRAGMA user_version = 1")
    for name in ("empty.db", "no tables.db"):
        use(f"sqlite:///{tmp_path}/{name}")
        assert mode_of(tmp_path / name) == 0o600


def test_a_file_that_is_no_database_is_refused_and_stays_as_it_is(tmp_path: Path) -> None:
    file = tmp_path / "hosts"
    file.write_text("127.0.0.1 localhost\n")
    file.chmod(0o644)
    before = file.stat()
    runner = create_runner(safety_agent=FakeJudge(), store=f"sqlite:///{file}")
    work = runner.run(Agent(name="A", model=ScriptedModel("hi")), "go")
    assert asyncio.run(code_of(work)) == "AGENTS-E-RUNNER-CONFIG"
    assert (file.read_text(), mode_of(file)) == ("127.0.0.1 localhost\n", 0o644)
    assert (file.stat().st_mtime_ns, file.stat().st_ctime_ns) == (before.st_mtime_ns, before.st_ctime_ns)
    assert [one.name for one in tmp_path.iterdir()] == ["hosts"]


@pytest.mark.parametrize("kind", ["folder", "pipe"])
def test_a_folder_or_a_pipe_is_refused_as_a_store(tmp_path: Path, kind: str) -> None:
    place = tmp_path / "place"
    if kind == "folder":
        place.mkdir()
    else:
        os.mkfifo(place)
    with pytest.raises(AgentsError, match="is not a file"):
        use(f"sqlite:///{place}")


def test_a_database_that_is_only_read_keeps_its_mode(tmp_path: Path) -> None:
    file = tmp_path / "agents.db"
    use(f"sqlite:///{file}")
    file.chmod(0o644)
    database = SqlDatabase(f"sqlite:///file:{file}?mode=ro&uri=true")
    database.work_now(lambda connection: None, is_writing=False)
    database.close()
    assert mode_of(file) == 0o644


def test_a_file_is_not_created_where_the_url_forbids_it(tmp_path: Path) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-LOG-STORE"):
        use(f"sqlite:///file:{tmp_path}/none.db?mode=rw&uri=true")
    assert list(tmp_path.iterdir()) == []


def test_a_locked_database_says_so_after_one_wait(tmp_path: Path) -> None:
    file = tmp_path / "agents.db"
    use(f"sqlite:///{file}")
    holder = sqlite3.connect(file, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    with pytest.raises(AgentsError, match=r"AGENTS-E-LOG-STORE: .* is locked by another process"):
        use(f"sqlite:///{file}?timeout=0")
    holder.close()
    # Settings are made with less patience than work.
    database = SqlDatabase(f"sqlite:///{file}?timeout=3")
    assert database.work_now(lambda c: c.exec_driver_sql("PRAGMA busy_timeout").scalar_one()) == 3000


def test_a_damaged_file_says_what_to_do(tmp_path: Path) -> None:
    file = tmp_path / "agents.db"
    use(f"sqlite:///{file}")
    whole = file.read_bytes()
    file.write_bytes(whole[:4096] + b"x" * (len(whole) - 4096))
    with pytest.raises(AgentsError, match="the file is damaged; put back a copy"):
        use(f"sqlite:///{file}")


def test_a_file_that_is_replaced_under_a_running_program_takes_nothing(tmp_path: Path) -> None:
    file = tmp_path / "agents.db"
    database = SqlDatabase(f"sqlite:///{file}")
    write = "INSERT INTO agents_budgets VALUES ('', 0, 0)"
    database.work_now(lambda connection: connection.exec_driver_sql(write))
    file.unlink()
    with pytest.raises(AgentsError, match="was moved or replaced while it was in use; restart"):
        database.work_now(lambda connection: connection.exec_driver_sql(write))
    database.close()


def test_a_file_that_is_there_already_is_not_created_again(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("kept")
    (tmp_path / "there").chmod(0o644)
    assert create_private(tmp_path / "there") is False
    assert (mode_of(tmp_path / "there"), (tmp_path / "there").read_text()) == (0o644, "kept")


def test_a_file_of_somebody_else_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError

    (tmp_path / "theirs").touch(0o644)
    monkeypatch.setattr(os, "chmod", refuse)
    make_private(tmp_path / "theirs")
    assert mode_of(tmp_path / "theirs") == 0o644
