"""What runs leave in the log, and what happens when it cannot be written."""

import logging

import pytest

from tests.agents.fake_stores import FakeExecutionLogStore
from tests.agents.fakes import BreakableLogStore, FakeClock, code_of
from tests.agents.scenes import LOOK, Scene


async def test_the_log_is_found_by_run_and_by_time(clock: FakeClock) -> None:
    scene = Scene(LOOK, "one", LOOK, "two", clock=clock)
    first = await scene.go()
    clock.move(60)
    second = await scene.go()
    assert {log.run_id for log in await scene.runner.get_execution_logs(first.run_id)} == {first.run_id}
    logs = await scene.runner.get_execution_logs(since="2026-11-16T09:01:00+00:00")
    assert {log.run_id for log in logs} == {second.run_id}


async def test_best_effort_runs_on_and_says_so(caplog: pytest.LogCaptureFixture) -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    store.is_broken = True
    scene = Scene(LOOK, "one", LOOK, "two", log_store=store)
    with caplog.at_level(logging.WARNING):
        result = await scene.go()
    assert (result.output_text, scene.ran) == ("one", ["look here"])
    assert "AGENTS-E-LOG-STORE" in result.extensions
    assert "AGENTS-E-LOG-STORE" in caplog.text
    store.is_broken = False
    assert "AGENTS-E-LOG-STORE" not in (await scene.go()).extensions
    assert len(await scene.events()) == 6


@pytest.mark.parametrize("event", ["decision", "started"])
async def test_required_does_not_run_the_tool(event: str) -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    store.breaks_at = lambda log: log.event == event
    scene = Scene(LOOK, "one", log_store=store, audit="required")
    assert await code_of(scene.go()) == "AGENTS-E-LOG-STORE"
    assert scene.ran == []


async def test_required_reports_an_outcome_that_could_not_be_recorded() -> None:
    store = BreakableLogStore(FakeExecutionLogStore())
    store.breaks_at = lambda log: log.event == "outcome"
    scene = Scene(LOOK, "one", log_store=store, audit="required")
    assert await code_of(scene.go()) == "AGENTS-E-LOG-STORE"
    assert scene.ran == ["look here"]
