"""The log in a database, with its head outside."""

import logging

import pytest

from openai_responses_mcp.agents.adapters.stores.sql_database import SqlDatabase
from openai_responses_mcp.agents.adapters.stores.sql_log import SqlExecutionLogStore
from openai_responses_mcp.agents.audit.heads import misfit_of_log
from openai_responses_mcp.agents.audit.models import ExecutionLog
from tests.agents.fake_stores import FakeHead


def a_log(call: str) -> ExecutionLog:
    return ExecutionLog("r1", call, "decision", "allow", "2026")


async def test_a_record_is_there_though_its_head_cannot_be_told_so(caplog: pytest.LogCaptureFixture) -> None:
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


async def test_a_shared_log_may_have_grown_past_the_head_and_must_contain_it() -> None:
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


async def test_nothing_is_appended_where_there_is_nothing() -> None:
    head = FakeHead()
    assert await SqlExecutionLogStore(SqlDatabase(), head).append_all([]) == []
    assert head.read() is None
