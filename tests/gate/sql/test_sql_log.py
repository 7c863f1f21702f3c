"""The log in a database, with its head stored outside."""

import logging

import pytest
from sqlalchemy import Connection, Engine, event

from openai_responses_mcp.agents.testing import ScriptedCall
from openai_responses_mcp.gate.audit.records import ExecutionLog, misfit_of_log
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from tests.agents.fake_stores import FakeHead
from tests.agents.scenes import Scene


def a_log(call: str) -> ExecutionLog:
    return ExecutionLog("r1", call, "decision", "allow", "2026")


async def test_a_record_is_kept_even_if_its_head_cannot_be_confirmed(caplog: pytest.LogCaptureFixture) -> None:
    head = FakeHead()
    store = SqlExecutionLogStore(SqlDatabase(), head)
    head.breaks_at_confirming = True
    with caplog.at_level(logging.WARNING):
        await store.append(a_log("c1"))
    assert "AGENTS-E-LOG-STORE" in caplog.text
    assert misfit_of_log(head.read(), await store.query(), is_sole_writer=True) is None
    head.breaks_at_confirming = False
    await store.append(a_log("c2"))
    assert misfit_of_log(head.read(), await store.query(), is_sole_writer=True) is None


async def test_a_shared_log_may_be_longer_than_its_head_says_but_not_shorter() -> None:
    database, head = SqlDatabase(), FakeHead(is_sole_writer=False)
    ours, theirs = SqlExecutionLogStore(database, head), SqlExecutionLogStore(database)
    await ours.append(a_log("c1"))
    await theirs.append(a_log("c2"))
    await ours.append(a_log("c3"))
    logs = await ours.query()
    assert misfit_of_log(head.read(), logs, is_sole_writer=False) is None
    found = misfit_of_log(head.read(), logs[:2], is_sole_writer=False)
    assert found is not None
    assert found.problem == "the tail from record 3 was cut, or an old copy was put back"


async def test_an_empty_batch_appends_nothing() -> None:
    head = FakeHead()
    assert await SqlExecutionLogStore(SqlDatabase(), head).append_all([]) == []
    assert head.read() is None


@pytest.mark.parametrize("calls", [1, 3])
async def test_each_call_takes_two_durable_writes_and_the_run_one_more(sqlite_url: str, calls: int) -> None:
    committed: list[bool] = []

    def note(connection: Connection) -> None:
        committed.append(bool(connection.get_execution_options().get("is_writing")))

    scene = Scene([ScriptedCall("look", {"what": str(number)}) for number in range(calls)], "one", store=sqlite_url)
    await SqlDatabase(sqlite_url).open()
    event.listen(Engine, "commit", note)
    try:
        assert (await scene.go()).output_text == "one"
    finally:
        event.remove(Engine, "commit", note)
    assert len(scene.ran) == calls
    assert sum(committed) == 2 * calls + 1
