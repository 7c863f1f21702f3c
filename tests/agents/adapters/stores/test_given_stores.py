"""Stores of the user's own: complete, and with errors that have a name."""

from typing import Any

import pytest

from openai_responses_mcp.agents import create_runner
from openai_responses_mcp.agents.adapters.stores.given_stores import given
from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.audit.ports import ExecutionLogStore
from openai_responses_mcp.agents.errors import AgentsError, DuplicateRecord, RecordRefused, StoreUnavailable
from tests.agents.adapters.sdk.scenes import LOOK, Scene
from tests.agents.fake_stores import FakeExecutionLogStore
from tests.agents.fakes import FakeJudge, code_of

LOG = ExecutionLog("r1", "c1", "decision", "allow", "2026")


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
    made: ExecutionLogStore = given(store, ExecutionLogStore)
    return made


async def test_a_store_that_works_is_used_as_it_is() -> None:
    store = a_store()
    await store.append_all([LOG, ExecutionLog("r1", "c2", "decision", "allow", "2026")])
    assert [log.tool_call_id for log in await store.query("r1")] == ["c1", "c2"]


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (DatabaseDown("password=hush"), StoreUnavailable),
        (OSError("password=hush"), StoreUnavailable),
        (KeyError("hush"), StoreUnavailable),
        (UnicodeEncodeError("utf-8", "hush", 0, 1, "hush"), RecordRefused),
        (TypeError("hush"), RecordRefused),
        (DuplicateRecord("there already"), DuplicateRecord),
    ],
)
async def test_what_it_raises_gets_a_name_and_loses_its_text(error: Exception, kind: type[AgentsError]) -> None:
    with pytest.raises(AgentsError) as caught:
        await a_store(error).append(LOG)
    assert type(caught.value) is kind
    assert "hush" not in repr(caught.value)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize("name", ["policy_store", "approval_store", "run_state_store", "log_store"])
def test_what_is_no_store_is_refused_with_what_it_lacks(name: str) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG") as caught:
        create_runner(safety_agent=FakeJudge(), **{name: object()})  # type: ignore[arg-type]
    assert "it lacks" in caught.value.message


async def test_a_log_with_errors_of_its_own_does_not_hinder_a_run_with_best_effort() -> None:
    scene = Scene(LOOK, "one", log_store=OwnLog(DatabaseDown("down")))
    result = await scene.go()
    assert (result.output_text, scene.ran) == ("one", ["look here"])
    assert "AGENTS-E-LOG-STORE" in result.extensions


@pytest.mark.parametrize("error", [DatabaseDown("down"), ValueError("bad")])
async def test_a_log_with_errors_of_its_own_keeps_the_tool_from_running_with_required(error: Exception) -> None:
    scene = Scene(LOOK, "one", log_store=OwnLog(error, "started"), audit="required")
    assert await code_of(scene.go()) == "AGENTS-E-LOG-STORE"
    assert scene.ran == []
