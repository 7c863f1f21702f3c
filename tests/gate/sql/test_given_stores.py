"""Stores of the user's own: they must be complete, and their errors are translated."""

from typing import Any

import pytest

from openai_responses_mcp.agents import create_runner
from openai_responses_mcp.agents.composition import checked_store
from openai_responses_mcp.gate.audit.records import ExecutionLog, ExecutionLogStore
from openai_responses_mcp.gate.errors import AgentsError, DuplicateRecord, RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.agents.fake_stores import FakeExecutionLogStore
from tests.agents.fakes import FakeJudge, code_of, within
from tests.agents.scenes import LOOK, PAY, Scene

LOG = ExecutionLog("r1", "c1", "decision", "allow", "2026")


PORTS = {
    "approval_store": "approvals",
    "standing_store": "standing",
    "run_state_store": "runs",
    "log_store": "logs",
    "policy_store": "policies",
    "budget_store": "budgets",
    "pin_store": "pins",
    "decision_store": "decisions",
}


class DatabaseDown(Exception):
    """An error of the user's own driver."""


class OwnLog:
    """A log of the user's own that does not inherit the port, and raises what it likes."""

    def __init__(self, error: Exception | None = None, event: str = "") -> None:
        self.error = error
        self.event = event
        self.inner = FakeExecutionLogStore()

    async def append(self, log: ExecutionLog) -> ExecutionLog:
        if self.error is not None and self.event in ("", log.event):
            raise self.error
        return await self.inner.append(log)

    async def query(self, run_id: str | None = None, since: str | None = None) -> list[ExecutionLog]:
        return await self.inner.query(run_id, since)


def a_store(error: Exception | None = None) -> ExecutionLogStore:
    store: Any = OwnLog(error)
    made: ExecutionLogStore = checked_store(store, ExecutionLogStore)
    return made


async def test_errors_of_a_foreign_store_get_a_class_of_ours_and_lose_their_text() -> None:
    cases: list[tuple[Exception, type[AgentsError]]] = [
        (DatabaseDown("password=hush"), StoreUnavailable),
        (UnicodeEncodeError("utf-8", "hush", 0, 1, "hush"), RecordRefused),
        (TypeError("hush"), RecordRefused),
        (DuplicateRecord("there already"), DuplicateRecord),
    ]
    for error, kind in cases:
        with pytest.raises(AgentsError) as caught:
            await a_store(error).append(LOG)
        assert type(caught.value) is kind
        assert "hush" not in repr(caught.value)
        assert caught.value.__cause__ is None


def test_an_object_that_is_not_a_store_is_refused_with_what_it_lacks() -> None:
    for name in PORTS:
        with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG") as caught:
            create_runner(safety_agent=FakeJudge(), store="sqlite://", **{name: object()})  # type: ignore[arg-type]
        assert "it lacks" in caught.value.message


async def test_a_log_with_errors_of_its_own_does_not_hinder_a_run_with_best_effort() -> None:
    scene = Scene(LOOK, "one", store="sqlite://", log_store=OwnLog(DatabaseDown("down")))
    result = await scene.go()
    assert (result.output_text, scene.ran) == ("one", ["look here"])
    assert "AGENTS-E-LOG-STORE" in result.extensions


async def test_a_log_with_errors_of_its_own_keeps_the_tool_from_running_with_required() -> None:
    own = OwnLog(DatabaseDown("down"), "started")
    scene = Scene(LOOK, "one", store="sqlite://", log_store=own, audit="required")
    assert await code_of(scene.go()) == "AGENTS-E-LOG-STORE"
    assert scene.ran == []


def own_stores(sqlite_url: str) -> dict[str, Any]:
    opened = open_stores(sqlite_url)
    return {name: getattr(opened, field) for name, field in PORTS.items()}


@pytest.mark.parametrize("left_out", PORTS)
def test_some_ports_of_a_store_need_a_store_for_the_others(sqlite_url: str, left_out: str) -> None:
    own = own_stores(sqlite_url)
    del own[left_out]
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG: Some stores are given") as caught:
        create_runner(safety_agent=FakeJudge(), **own)
    assert caught.value.details["missing"] == [left_out]
    create_runner(safety_agent=FakeJudge(), store="sqlite://", **own)


async def test_a_store_that_is_given_as_its_eight_ports_is_used_whole(sqlite_url: str) -> None:
    scene = Scene(PAY, "paid", **own_stores(sqlite_url))
    paused = await scene.paused()
    other = create_runner(safety_agent=FakeJudge(), store=sqlite_url)
    waiting = await other.get_pending_approvals(paused.run_id)
    assert [request.tool_name for request in waiting] == ["pay"]
    await other.submit_approval(waiting[0].approval_id, "approve")
    assert (await within(scene.runner.resume_run(paused.run_id))).output_text == "paid"
    assert (await other.get_run(paused.run_id)).status == "done"
