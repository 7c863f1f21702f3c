"""What may go wrong around a run, and what must follow."""

import asyncio
import re
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from openai_responses_mcp.agents import Agent, SafetyAgent, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.approvals.decisions import seal, token_hash
from openai_responses_mcp.gate.approvals.models import ApprovalChoice
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import digest
from openai_responses_mcp.gate.sql.sql_approvals import SqlApprovalStore
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase, journal_mode
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from tests.agents.fakes import ASK, FakeJudge, code_of, within
from tests.agents.scenes import PAY, Scene
from tests.tools import kills

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
KEY = "sk-live-0123456789abcdef"


# ---------------------------------------------------------------------------------------------------------------------
# 31: the judge


async def test_a_broken_judge_lets_nothing_run_and_is_recorded() -> None:
    scene = Scene(PAY, judge=SafetyAgent(lambda *_: asyncio.Event().wait(), timeout_seconds=0.05))
    assert await code_of(scene.runner.run(scene.agent, "go")) == "AGENTS-E-GATE-EVAL"
    assert scene.ran == []
    (log,) = await scene.runner.get_execution_logs()
    assert (log.event, log.decision, log.tool_call_id) == ("decision", "deny", "p-1")
    assert log.reason.startswith("AGENTS-E-GATE-EVAL")


# ---------------------------------------------------------------------------------------------------------------------
# 33: one token


@pytest.mark.slow
@pytest.mark.parametrize(("store", "processes"), [("sqlite", 100), ("postgres", 30)])
async def test_of_many_processes_with_one_token_one_uses_it(
    store: str, processes: int, sqlite_url: str, request: pytest.FixtureRequest
) -> None:
    url = sqlite_url if store == "sqlite" else request.getfixturevalue("postgres")()
    scene = Scene(PAY, store=url)
    paused, token = await scene.decided()
    command = [sys.executable, str(HERE / "race_token.py"), url, paused.run_id, token.token, str(processes)]
    done = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=50, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "1"), done.stderr


# ---------------------------------------------------------------------------------------------------------------------
# 34: what was approved is not what is there


def tampered(url: str, statement: str, **values: Any) -> None:
    SqlDatabase(url).work_now(lambda connection: connection.execute(text(statement), values))


def payload_in(url: str) -> str:
    row = SqlDatabase(url).work_now(
        lambda connection: connection.execute(text("SELECT payload FROM agents_runs")).one()
    )
    return str(row.payload)


def with_payload(url: str, change: Callable[[str], str]) -> None:
    """Change the saved run, and make every hash in the store fit it again."""
    changed = change(payload_in(url))
    tampered(url, "UPDATE agents_runs SET payload = :payload", payload=changed)
    tampered(url, "UPDATE agents_approvals SET state_hash = :hash", hash=digest(changed))


@pytest.mark.parametrize("is_decided", [False, True])
async def test_a_run_that_is_changed_in_the_store_is_refused_even_with_hashes_that_fit(
    sqlite_url: str, is_decided: bool
) -> None:
    scene = Scene(PAY, store=sqlite_url)
    paused, token = await scene.decided() if is_decided else (await scene.paused(), None)
    with_payload(sqlite_url, lambda payload: payload.replace('\\"amount\\": 5', '\\"amount\\": 5000'))
    token = token or await scene.runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    assert await code_of(scene.runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-RESUME-TOKEN"
    assert scene.ran == []


async def test_a_changed_tool_definition_is_refused(sqlite_url: str) -> None:
    scene = Scene(PAY, store=sqlite_url)
    paused, token = await scene.decided()
    other = Scene("done", pays_by="Pay somebody twice.", store=sqlite_url)
    work = other.runner.resume_run(paused.run_id, token.token, agent=other.agent)
    assert await code_of(work) == "AGENTS-E-RESUME-TOKEN"
    assert other.ran == []
    same = Scene("done", store=sqlite_url)
    await within(same.runner.resume_run(paused.run_id, token.token, agent=same.agent))
    assert same.ran == ["pay 5"]


async def test_a_call_that_is_no_longer_there_is_refused(sqlite_url: str) -> None:
    scene = Scene(PAY, store=sqlite_url)
    paused = await scene.paused()
    tampered(sqlite_url, "UPDATE agents_approvals SET tool_call_id = 'p-2'")
    token = await scene.runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    assert await code_of(scene.runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-RESUME-TOKEN"
    assert scene.ran == []


@pytest.mark.parametrize(
    "change",
    [
        lambda payload: payload.replace('"$schemaVersion": "1.21"', '"$schemaVersion": "99.0"'),
        lambda payload: re.sub('"format": [0-9]+', '"format": 0', payload),
        lambda payload: "not json",
        lambda payload: payload.replace('"kept"', '"other"'),
    ],
)
async def test_a_state_that_cannot_be_read_is_a_named_error_and_spends_nothing(
    sqlite_url: str, change: Callable[[str], str]
) -> None:
    scene = Scene(PAY, "done", store=sqlite_url)
    paused = await scene.paused()
    before = payload_in(sqlite_url)
    with_payload(sqlite_url, change)
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER") as caught:
        await within(scene.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert caught.value.details["reason"] == "state_unreadable"
    with_payload(sqlite_url, lambda _: before)
    result = await within(scene.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert (result.output_text, scene.ran) == ("done", ["pay 5"])


@pytest.mark.parametrize(("decision", "code"), [("deny", "AGENTS-E-GATE-DENIED"), ("approve", "AGENTS-E-RESUME-TOKEN")])
async def test_a_run_that_is_gone_is_refused(sqlite_url: str, decision: Any, code: str) -> None:
    scene = Scene(PAY, store=sqlite_url)
    paused, token = await scene.decided(decision)
    tampered(sqlite_url, "DELETE FROM agents_runs")
    assert await code_of(scene.runner.resume_run(paused.run_id, token.token)) == code


# ---------------------------------------------------------------------------------------------------------------------
# 35: thieves and crashes


async def test_nothing_in_a_stolen_database_is_a_token(tmp_path: Path, sqlite_url: str) -> None:
    scene = Scene(PAY, store=sqlite_url)
    paused, token = await scene.decided()
    with sqlite3.connect(tmp_path / "agents.db") as connection:
        tables = [row[0] for row in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        values = {str(cell) for name in tables for row in connection.execute(f"SELECT * FROM {name}") for cell in row}
    connection.close()
    assert token.token not in values
    for value in values:
        assert await code_of(scene.runner.resume_run(paused.run_id, value)) == "AGENTS-E-RESUME-TOKEN"
    assert scene.ran == []


DIES = """
import asyncio, os, sys
from openai_responses_mcp.agents import Agent, SafetyAgent, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedModel

@tool(risk_level=3, description="Pay somebody.")
def pay(amount: int) -> str:
    os._exit(3)

store, run_id, token = sys.argv[1:]
runner = create_runner(safety_agent=SafetyAgent.allow_all(), store=store)
agent = Agent(name="Clerk", model=ScriptedModel(), tools=[pay])
asyncio.run(runner.resume_run(run_id, token, agent=agent))
"""


async def test_a_crash_in_an_approved_tool_is_shown_as_unknown_and_never_run_again(sqlite_url: str) -> None:
    scene = Scene(PAY, store=sqlite_url)
    paused, token = await scene.decided()
    command = [sys.executable, "-c", DIES, sqlite_url, paused.run_id, token.token]
    died = await asyncio.to_thread(subprocess.run, command, capture_output=True, text=True, timeout=30, check=False)
    assert died.returncode == 3, died.stderr
    with pytest.raises(AgentsError, match="AGENTS-E-RESUME-TOKEN") as caught:
        await within(scene.runner.resume_run(paused.run_id, token.token))
    assert caught.value.details == {"reason": "used", "outcome": "unknown", "tool_call_ids": ["p-1"]}
    assert scene.ran == []
    assert await scene.runner.get_pending_approvals(paused.run_id) == []
    assert [log.event for log in await scene.runner.get_execution_logs()][-1] == "started"
    assert (await scene.runner.verify_execution_logs()).is_intact


@pytest.mark.parametrize("decision", ["approve", "deny"])
async def test_a_crash_between_using_a_token_and_saving_that_the_run_goes_on_is_shown_as_unknown(
    sqlite_url: str, decision: Any
) -> None:
    scene = Scene(PAY, store=sqlite_url)
    paused, token = await scene.decided(decision)
    tampered(sqlite_url, "UPDATE agents_approvals SET used_at = '2026-11-16T09:00:00.000000+00:00'")
    with pytest.raises(AgentsError, match="AGENTS-E-RESUME-TOKEN") as caught:
        await within(scene.runner.resume_run(paused.run_id, token.token))
    unknown = {"outcome": "unknown", "tool_call_ids": ["p-1"]} if decision == "approve" else {}
    assert caught.value.details == {"reason": "used", **unknown}
    assert scene.ran == []


async def test_a_used_token_of_a_run_that_ended_well_has_no_unknown_outcome() -> None:
    scene = Scene(PAY, "done")
    paused, token = await scene.decided()
    await within(scene.runner.resume_run(paused.run_id, token.token))
    with pytest.raises(AgentsError) as caught:
        await within(scene.runner.resume_run(paused.run_id, token.token))
    assert caught.value.details == {"reason": "used"}


@pytest.mark.slow
@pytest.mark.timeout(300)  # Dozens of processes one after another, on a busy machine.
def test_killed_at_any_point_nothing_is_lost_doubled_or_locked() -> None:
    command = [sys.executable, "-m", kills.__name__, "--kills", "4"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=240, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "4 kills on disk" in done.stdout


@pytest.mark.parametrize(("version", "mode"), [((3, 51, 2), "PERSIST"), ((3, 51, 3), "WAL")])
def test_the_journal_is_safe_for_the_version_found(version: tuple[int, ...], mode: str) -> None:
    assert journal_mode(version) == mode


def test_a_sqlite_file_is_synced_and_journalled_as_its_version_needs(sqlite_url: str) -> None:
    database = SqlDatabase(sqlite_url)

    def pragma(name: str) -> Any:
        return database.work_now(lambda c: c.exec_driver_sql(f"PRAGMA {name}").scalar(), is_writing=False)

    assert str(pragma("journal_mode")).upper() == journal_mode(sqlite3.sqlite_version_info)
    assert pragma("synchronous") == 2


# ---------------------------------------------------------------------------------------------------------------------
# 37: keys


async def test_a_key_in_a_paused_run_is_not_stored_and_not_lost(tmp_path: Path, sqlite_url: str) -> None:
    scene, other = Scene(ScriptedCall("look", {"what": KEY}), "done", store=sqlite_url), Scene(store=sqlite_url)
    scene.judge.on("look", ASK)
    paused = await scene.paused()
    assert KEY.encode() not in (tmp_path / "agents.db").read_bytes()
    approval_id = paused.interruptions[0].approval_id
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER") as caught:
        await within(other.runner.approve_and_resume(paused.run_id, approval_id, agent=other.agent))
    assert caught.value.details == {"reason": "secret_withheld"}
    await within(scene.runner.approve_and_resume(paused.run_id, approval_id))
    assert scene.ran == [f"look {KEY}"]


# ---------------------------------------------------------------------------------------------------------------------
# 40: the audit store is full, locked, read-only


@pytest.fixture(params=["full", "locked", "read-only"])
def troubled(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[SqlExecutionLogStore]:
    """A log store that really cannot be written to."""
    file = tmp_path / "audit.db"
    SqlDatabase(f"sqlite:///{file}").work_now(lambda connection: None)
    if request.param == "read-only":
        yield SqlExecutionLogStore(SqlDatabase(f"sqlite:///file:{file}?mode=ro&uri=true"))
        return
    if request.param == "locked":
        holder = sqlite3.connect(file, isolation_level=None)
        holder.execute("BEGIN EXCLUSIVE")
        yield SqlExecutionLogStore(SqlDatabase(f"sqlite:///{file}?timeout=0"))
        holder.close()
        return
    database = SqlDatabase(f"sqlite:///{file}")

    def fill(connection: Any) -> None:
        pages = connection.exec_driver_sql("PRAGMA page_count").scalar()
        connection.exec_driver_sql(f"PRAGMA max_page_count = {pages}")

    database.work_now(fill)
    store = SqlExecutionLogStore(database)
    fillers = [ExecutionLog("r", f"c{n}", "decision", "allow", "2026", arguments={"x": "y" * 4000}) for n in range(20)]
    codes = [asyncio.run(code_of(store.append(filler))) for filler in fillers]
    assert codes[-1] == "AGENTS-E-LOG-STORE"
    yield store
    database.close()


BIG = ScriptedCall("look", {"what": "z" * 8000}, "l-1")


async def test_with_required_a_troubled_store_keeps_the_tool_from_running(troubled: SqlExecutionLogStore) -> None:
    scene = Scene(BIG, store="sqlite://", log_store=troubled, audit="required")
    assert await code_of(scene.go()) == "AGENTS-E-LOG-STORE"
    assert scene.ran == []


async def test_with_best_effort_a_troubled_store_is_reported_not_hidden(
    troubled: SqlExecutionLogStore, caplog: pytest.LogCaptureFixture
) -> None:
    scene = Scene(BIG, "done", store="sqlite://", log_store=troubled)
    result = await scene.go()
    assert (result.output_text, len(scene.ran)) == ("done", 1)
    assert "AGENTS-E-LOG-STORE" in result.extensions
    assert "AGENTS-E-LOG-STORE" in caplog.text


async def test_a_store_that_is_locked_while_the_tool_runs_does_not_lose_the_result(
    sqlite_url: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    holder = sqlite3.connect(tmp_path / "agents.db", isolation_level=None, check_same_thread=False)

    @tool
    def look(what: str) -> str:
        """Look at something, while another process locks the database."""
        holder.execute("BEGIN EXCLUSIVE")
        return "seen"

    agent = Agent(name="A", model=ScriptedModel(BIG, "done"), tools=[look])
    runner = create_runner(safety_agent=FakeJudge(), store=f"{sqlite_url}?timeout=0")
    result = await within(runner.run(agent, "go"))
    assert (result.output_text, [call.output for call in result.tool_calls]) == ("done", ["seen"])
    assert "1 audit record is not written yet" in str(result.extensions["AGENTS-E-LOG-STORE"])
    assert "the end of the run is not stored" in str(result.extensions["AGENTS-E-LOG-STORE"])
    assert "AGENTS-E-LOG-STORE" in caplog.text
    holder.close()
    assert [log.event for log in await runner.get_execution_logs()] == ["decision", "started", "outcome"]


async def test_with_required_the_end_of_a_run_that_cannot_be_stored_is_an_error(
    sqlite_url: str, tmp_path: Path
) -> None:
    holder = sqlite3.connect(tmp_path / "agents.db", isolation_level=None, check_same_thread=False)
    scene = Scene("done", "done", store=f"{sqlite_url}?timeout=0", audit="required")
    await scene.go()
    holder.execute("BEGIN EXCLUSIVE")
    assert await code_of(scene.go()) == "AGENTS-E-LOG-STORE"
    holder.close()


async def test_a_database_that_is_not_there_is_named() -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-LOG-STORE") as caught:
        await Scene("hi", store="postgresql://nobody:hush@127.0.0.1:1/none?connect_timeout=2").go()
    assert "hush" not in str(caught.value)
    assert caught.value.__cause__ is None


# ---------------------------------------------------------------------------------------------------------------------
# 47: a store that was tampered with


async def test_a_call_that_was_approved_in_the_store_by_hand_is_named(sqlite_url: str) -> None:
    scene = Scene(PAY, "done", store=sqlite_url)
    paused = await scene.paused()
    # An attacker who can write to the store, and knows this library.
    store, never = SqlApprovalStore(SqlDatabase(sqlite_url)), "2999-01-01T00:00:00.000000+00:00"
    record = await store.get(paused.interruptions[0].approval_id)
    assert record is not None
    binding = seal("mine", record, "approved", never)
    approval_id = record.request.approval_id
    assert await store.decide(ApprovalChoice(approval_id, "approved", "", "2026", token_hash("mine"), never, binding))
    result = await within(scene.runner.resume_run(paused.run_id, "mine"))
    assert (result.output_text, scene.ran) == ("done", ["pay 5"])
    found = await scene.runner.verify_execution_logs()
    assert not found.is_intact
    assert found.problem == (
        f"call p-1 of {paused.run_id} (function pay) started, and needed a human, and no approval was recorded"
    )


# ---------------------------------------------------------------------------------------------------------------------
# 50: texts


@pytest.mark.parametrize("odd", ["\ud800", "x" * 10_000_000], ids=["surrogate", "long"])
async def test_odd_ids_are_not_found(odd: str, store_url: str) -> None:
    runner = Scene(store=store_url).runner
    assert await code_of(runner.get_pending_approvals(odd)) == "AGENTS-E-APPROVAL-NOT-FOUND"
    assert await code_of(runner.submit_approval(odd, "approve")) == "AGENTS-E-APPROVAL-NOT-FOUND"
    assert await code_of(runner.resume_run(odd, odd)) == "AGENTS-E-RESUME-TOKEN"
    assert await runner.get_execution_logs(odd) == []


# ---------------------------------------------------------------------------------------------------------------------
# A tool that raises


@tool
def breaks(what: str) -> str:
    """Break, and let the SDK tell the model about it."""
    raise LookupError(f"no {what} {KEY}")


@tool(failure_error_function=lambda context, error: f"sorry: {error}")
def breaks_politely(what: str) -> str:
    """Break, and tell the model in words of its own."""
    raise LookupError(f"no {what}")


@tool(failure_error_function=None)
def breaks_the_run(what: str) -> str:
    """Break, and the run with it."""
    raise LookupError(f"no {what}")


@pytest.mark.parametrize("broken", [breaks, breaks_politely, breaks_the_run], ids=lambda one: one.name)
async def test_a_tool_that_raises_has_failed_whatever_the_model_gets(broken: Any) -> None:
    agent = Agent(name="A", model=ScriptedModel(ScriptedCall(broken.name, {"what": "ink"}), "done"), tools=[broken])
    runner = create_runner(safety_agent=FakeJudge())
    code = await code_of(runner.run(agent, "go"))
    assert (code != "") is (broken is breaks_the_run)
    last = (await runner.get_execution_logs())[-1]
    assert (last.event, last.decision) == ("outcome", "failed")
    assert last.reason.startswith("LookupError: no ink")
    assert KEY not in last.reason


async def test_an_agent_as_a_tool_that_breaks_has_failed() -> None:
    inner = Agent(name="Inner", model=ScriptedModel(ConnectionError("cut")))
    outer = Agent(
        name="Outer",
        model=ScriptedModel(ScriptedCall("ask", {"input": "hi"}), "done"),
        tools=[inner.as_tool("ask", "Ask the inner one.")],
    )
    runner = create_runner(safety_agent=FakeJudge())
    await within(runner.run(outer, "go"))
    last = (await runner.get_execution_logs())[-1]
    assert (last.event, last.decision, last.tool_name) == ("outcome", "failed", "ask")
