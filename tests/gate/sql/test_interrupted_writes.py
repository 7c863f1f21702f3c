"""After a kill or a full disk in the middle of a write, every way to open the store works, and only ours is touched."""

import asyncio
import os
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents import Agent, create_runner, tool
from openai_responses_mcp.agents.command_line import main as diagnose
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.desk.terminal.command_line import main
from openai_responses_mcp.gate.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.gate.sql.database_urls import MARK
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from tests.agents.fakes import FakeJudge, within
from tests.gate.sql.interrupted_writes import MUCH, full_at, has_hot_journal, leave_journal, leave_wal

ran: list[str] = []


@tool(risk_level=3)
def pay(mark: str) -> str:
    """Pay somebody."""
    ran.append(mark)
    return "paid"


async def a_run(url: str, mark: str = "a") -> Any:
    agent = Agent(name="Clerk", model=ScriptedModel(ScriptedCall("pay", {"mark": mark}), "done"), tools=[pay])
    return await within(create_runner(safety_agent=FakeJudge(), store=url).run(agent, "go"))


@pytest.fixture
def waiting(sqlite_url: str) -> str:
    """The id of a request that waits in the store."""
    return str(asyncio.run(a_run(sqlite_url)).interruptions[0].approval_id)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "agents.db"


def snapshot(folder: Path) -> dict[str, tuple[bytes, int, int]]:
    found = {one: one.stat() for one in folder.iterdir()}
    return {one.name: (one.read_bytes(), stat.st_mtime_ns, stat.st_mode) for one, stat in found.items()}


def use(url: str) -> None:
    database = SqlDatabase(url)
    database.work_now(lambda connection: None)
    database.close()


def names_in(file: Path) -> set[str]:
    with closing(sqlite3.connect(file)) as connection:
        return {row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}


# ---------------------------------------------------------------------------------------------------------------------
# Ours


COMMANDS = [
    ["approvals", "list"],
    ["approvals", "deny", "ID"],
    ["approvals", "standing"],
    ["log"],
    ["log", "verify"],
    ["status"],
    ["policy", "test", "POLICY"],
    ["policy", "check", "POLICY"],
]


@pytest.mark.parametrize(
    ("command", "leave"),
    [*((command, leave_journal) for command in COMMANDS), (COMMANDS[0], leave_wal), (COMMANDS[1], leave_wal)],
)
def test_every_command_opens_a_store_whose_writer_was_killed(
    waiting: str, sqlite_url: str, file: Path, command: list[str], leave: Callable[[Path], None]
) -> None:
    policy = file.with_name("policy.yaml")
    policy.write_text("version: 1\nrules:\n  - {tools: ['*'], decide: ask}\n")
    leave(file)
    words = [{"ID": waiting, "POLICY": str(policy)}.get(word, word) for word in command]
    assert main([*words, "--store", sqlite_url]) == 0
    assert not has_hot_journal(file)


def test_the_doctor_opens_a_store_whose_writer_was_killed(
    waiting: str, sqlite_url: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    leave_journal(file)
    diagnose(["--store", sqlite_url])
    assert "ok    store: the log of 2 records is intact" in capsys.readouterr().out


async def test_a_run_goes_on_in_a_store_whose_writer_was_killed(sqlite_url: str, file: Path) -> None:
    paused = await a_run(sqlite_url, "b")
    leave_journal(file)
    runner = create_runner(safety_agent=FakeJudge(), store=sqlite_url)
    agent = Agent(name="Clerk", model=ScriptedModel("done"), tools=[pay])
    await within(runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id, agent=agent))
    assert ran.count("b") == 1
    assert (await runner.verify_execution_logs()).is_intact


@pytest.mark.parametrize("pages", [1, 9])
def test_a_store_that_was_being_made_is_known_at_every_page(file: Path, sqlite_url: str, pages: int) -> None:
    """The journal of a first write has no pages: SQLite cuts the file to its old size."""
    use(sqlite_url)
    whole = file.read_bytes()
    with closing(sqlite3.connect(file)) as connection:
        page_size = connection.execute("PRAGMA page_size").fetchone()[0]
    file.unlink()
    with closing(sqlite3.connect(file)) as connection:
        connection.execute(f"PRAGMA application_id = {MARK}")
    leave_journal(file, "CREATE TABLE agents_x (a)", "CREATE TABLE agents_y (a)")
    file.write_bytes(whole[: pages * page_size])
    use(sqlite_url)
    assert "agents_budgets" in names_in(file)


def test_a_store_of_an_earlier_version_has_no_mark_and_is_known_by_its_tables(
    waiting: str, sqlite_url: str, file: Path
) -> None:
    with closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA application_id = 0")
    leave_journal(file)
    assert main(["log", "--verify", "--store", sqlite_url]) == 0


def test_many_open_a_store_whose_writer_was_killed_at_once(waiting: str, sqlite_url: str, file: Path) -> None:
    leave_journal(file)
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(use, [sqlite_url] * 8, timeout=30))


# ---------------------------------------------------------------------------------------------------------------------
# Not ours, or not to be written


def theirs(file: Path, *statements: str) -> None:
    with closing(sqlite3.connect(file, isolation_level=None)) as connection:
        connection.execute("CREATE TABLE theirs (id, latest)")
        connection.executemany("INSERT INTO theirs VALUES (1, ?)", MUCH)
        for statement in statements:
            connection.execute(statement)


LEFT: dict[str, Callable[[Path], None]] = {
    "rows": lambda file: leave_journal(file, table="theirs"),
    "a table": lambda file: leave_journal(file, "CREATE TABLE more (a)", "DELETE FROM theirs"),
    "no table": lambda file: leave_journal(file, "DELETE FROM theirs", "DROP TABLE theirs"),
    "a write-ahead log": lambda file: leave_wal(file, "INSERT INTO theirs VALUES (2, 2)"),
    "nothing": lambda file: theirs(file.with_name("other.db")),
    "an empty write-ahead log": lambda file: theirs(file.with_name("other.db"), "PRAGMA journal_mode=WAL"),
}


@pytest.mark.parametrize("left", LEFT)
def test_the_database_of_another_program_is_left_unchanged(tmp_path: Path, left: str) -> None:
    file = tmp_path / "theirs.db"
    theirs(file)
    LEFT[left](file)
    before = snapshot(tmp_path)
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        use(f"sqlite:///{file}")
    assert snapshot(tmp_path) == before


def test_tables_of_another_program_are_seen_in_its_write_ahead_log(tmp_path: Path) -> None:
    file = tmp_path / "theirs.db"
    leave_wal(file, "CREATE TABLE theirs (a)")
    before = (file.read_bytes(), Path(f"{file}-wal").read_bytes())
    with pytest.raises(AgentsError, match="something else"):
        use(f"sqlite:///{file}")
    assert (file.read_bytes(), Path(f"{file}-wal").read_bytes()) == before


def test_commands_that_only_read_work_on_a_store_that_is_read_only(
    waiting: str, sqlite_url: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["approvals", "allow", waiting, "--for", "8h", "--store", sqlite_url]) == 0
    asyncio.run(a_run(sqlite_url, "b"))
    with closing(sqlite3.connect(file)) as connection, connection:
        # A command that may write would ask again, end the standing approval and note the time.
        for table in ("agents_approvals", "agents_standing"):
            connection.execute(f"UPDATE {table} SET expires_at = '2020' WHERE expires_at IS NOT NULL")
        connection.execute("UPDATE agents_clock SET latest = '2020-01-01T00:00:00+00:00'")
    before = file.read_bytes()
    capsys.readouterr()
    for command in (["approvals", "list"], ["approvals", "show", waiting], ["log"], ["log", "--verify"], ["status"]):
        assert main([*command, "--store", f"sqlite:///file:{file}?mode=ro&uri=true"]) == 0
    assert "1 " in capsys.readouterr().out
    assert main(["approvals", "standing", "--json", "--store", f"sqlite:///file:{file}?mode=ro&uri=true"]) == 0
    assert capsys.readouterr().out.strip() == "[]"
    assert main(["approvals", "deny", waiting, "--store", f"sqlite:///file:{file}?mode=ro&uri=true"]) != 0
    assert file.read_bytes() == before


def test_a_store_that_may_only_be_read_says_why_it_cannot_be_opened(waiting: str, file: Path) -> None:
    leave_journal(file)
    database = SqlDatabase(f"sqlite:///file:{file}?mode=ro&uri=true")
    with pytest.raises(StoreUnavailable, match=r"a write was interrupted .* read-only"):
        database.work_now(lambda connection: None, is_writing=False)


# ---------------------------------------------------------------------------------------------------------------------
# A full disk


@pytest.mark.parametrize("more", [0, 100, 10_000])
async def test_after_a_full_disk_everything_works_again(sqlite_url: str, file: Path, more: int) -> None:
    async def go_on() -> None:
        for number in range(50):
            await a_run(sqlite_url, f"{number} {'x' * 500}")

    await a_run(sqlite_url, "first")
    with full_at(os.stat(file).st_size + more):
        with pytest.raises(AgentsError, match="AGENTS-E-LOG-STORE"):
            await go_on()
        runner = create_runner(safety_agent=FakeJudge(), store=sqlite_url)
        assert (await runner.verify_execution_logs()).is_intact
    acknowledged = len(await runner.get_pending_approvals())
    await a_run(sqlite_url, "last")
    assert len(await runner.get_pending_approvals()) == acknowledged + 1
    assert (await runner.verify_execution_logs()).is_intact


async def test_a_disk_that_is_full_at_the_first_write_does_not_spoil_the_store(sqlite_url: str) -> None:
    for size in (0, 100, 600, 5000, 20_000):
        with full_at(size), pytest.raises(AgentsError, match="AGENTS-E-LOG-STORE"):
            await a_run(sqlite_url)
    await a_run(sqlite_url)
    runner = create_runner(safety_agent=FakeJudge(), store=sqlite_url)
    assert (await runner.verify_execution_logs()).is_intact
