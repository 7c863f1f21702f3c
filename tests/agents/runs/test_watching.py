"""For workers that wait for a human elsewhere: the status of runs, waiting for decisions, callbacks for requests."""

import asyncio
from typing import Any

import pytest

from openai_responses_mcp.agents.testing import ScriptedCall
from openai_responses_mcp.gate.approvals.models import HumanApprovalRequest
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import DENY, code_of, within
from tests.agents.scenes import LOOK, PAY, Scene


async def test_runs_are_listed_by_their_status(store_url: str) -> None:
    scene = Scene(PAY, "all good", LOOK, PAY, store=store_url)
    waiting = await scene.paused()
    done = await scene.go()
    scene.judge.on("look", DENY)
    assert await code_of(scene.go()) == "AGENTS-E-GATE-DENIED"
    statuses = [run.status for run in await scene.runner.list_runs()]
    assert statuses == ["paused", "done", "denied"]
    assert [run.run_id for run in await scene.runner.list_runs("paused")] == [waiting.run_id]
    assert [run.run_id for run in await scene.runner.list_runs("done")] == [done.run_id]
    assert await scene.runner.list_runs("failed") == []
    assert await code_of(scene.runner.list_runs("sleeping")) == "AGENTS-E-RUNNER-CONFIG"  # type: ignore[arg-type]


# ---------------------------------------------------------------------------------------------------------------------
# Waiting


async def test_waiting_ends_when_the_whole_turn_is_decided() -> None:
    scene = Scene([PAY, ScriptedCall("pay", {"amount": 6}, "p-2")], "all good")
    run = await scene.paused()
    first, second = run.interruptions
    await scene.runner.submit_approval(first.approval_id, "approve", "seen")
    waiting = asyncio.create_task(scene.runner.wait_for_decision(run.run_id))
    await asyncio.sleep(0)  # it begins to wait
    assert not waiting.done()
    await scene.runner.submit_approval(second.approval_id, "deny", "seen")
    decided = await within(waiting)
    assert [(one.status, one.comment) for one in decided] == [("approved", "seen"), ("denied", "seen")]


async def test_waiting_times_out() -> None:
    scene = Scene(PAY)
    run = await scene.paused()
    with pytest.raises(AgentsError, match="AGENTS-E-APPROVAL-INVALID") as caught:
        await within(scene.runner.wait_for_decision(run.run_id, 0))
    approval_id = run.interruptions[0].approval_id
    assert caught.value.details == {"reason": "timeout", "approval_ids": [approval_id]}


async def test_waiting_for_a_made_decision_returns_at_once() -> None:
    scene = Scene(PAY, "all good", "nothing to wait for")
    run, _ = await scene.decided()
    assert [one.status for one in await within(scene.runner.wait_for_decision(run.run_id, 0))] == ["approved"]
    await within(scene.runner.resume_run(run.run_id))
    done = await scene.go()
    assert await within(scene.runner.wait_for_decision(done.run_id, 0)) == []
    assert await code_of(scene.runner.wait_for_decision("run_x")) == "AGENTS-E-APPROVAL-NOT-FOUND"


@pytest.mark.parametrize("seconds", [-1, "5"])
async def test_a_timeout_that_is_no_number_is_refused(seconds: Any) -> None:
    assert await code_of(Scene().runner.wait_for_decision("run_x", seconds)) == "AGENTS-E-RUNNER-CONFIG"


# ---------------------------------------------------------------------------------------------------------------------
# Callbacks


async def test_the_callback_may_decide_at_once() -> None:
    async def decide(request: HumanApprovalRequest) -> None:
        await scene.runner.submit_approval(request.approval_id, "approve")

    scene = Scene(PAY, "all good", on_approval_requested=decide)
    run = await scene.paused()
    assert (await within(scene.runner.resume_run(run.run_id))).output_text == "all good"
