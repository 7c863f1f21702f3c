"""Runs that wait for a human, and go on."""

import pytest

from openai_responses_mcp.agents.testing import ScriptedCall
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import FakeClock, code_of, within
from tests.agents.scenes import LOOK, PAY, Scene


async def test_a_turn_waits_as_a_whole_for_a_human() -> None:
    scene = Scene([LOOK, PAY], "all good")
    paused = await scene.paused()
    assert scene.ran == []
    (request,) = paused.interruptions
    assert (request.tool_name, request.tool_call_id, request.status) == ("pay", "p-1", "pending")
    assert await scene.runner.get_pending_approvals() == [request]
    result = await within(scene.runner.approve_and_resume(paused.run_id, request.approval_id, comment="checked"))
    assert result.output_text == "all good"
    assert sorted(scene.ran) == ["look here", "pay 5"]
    assert [call.tool_name for call in result.tool_calls] == ["look", "pay"]
    assert await scene.runner.get_pending_approvals(paused.run_id) == []
    approval = next(log for log in await scene.runner.get_execution_logs() if log.event == "approval")
    assert (approval.decision, approval.comment) == ("approved", "checked")


async def test_another_process_must_be_given_the_agent_and_nothing_is_spent_before(sqlite_url: str) -> None:
    first, second = Scene(PAY, store=sqlite_url), Scene("all good", store=sqlite_url)
    paused = await first.paused()
    approval_id = paused.interruptions[0].approval_id
    assert await code_of(second.runner.approve_and_resume(paused.run_id, approval_id)) == "AGENTS-E-RUNNER-CONFIG"
    token = await second.runner.submit_approval(approval_id, "approve")
    assert await code_of(second.runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-RUNNER-CONFIG"
    result = await within(second.runner.resume_run(paused.run_id, token.token, agent=second.agent))
    assert result.output_text == "all good"


async def test_resuming_a_denied_run_raises_the_denial() -> None:
    scene = Scene(PAY)
    paused, token = await scene.decided("deny", "too much")
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED") as caught:
        await within(scene.runner.resume_run(paused.run_id, token.token))
    assert "too much" in str(caught.value)
    assert scene.ran == []
    assert await code_of(scene.runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-RESUME-TOKEN"


async def test_with_several_in_one_turn_nothing_runs_until_all_are_decided() -> None:
    scene = Scene([PAY, ScriptedCall("pay", {"amount": 6}, "p-2")], "all good")
    paused = await scene.paused()
    first, second = paused.interruptions
    token = await scene.runner.submit_approval(first.approval_id, "approve")
    assert await code_of(scene.runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-APPROVAL-INVALID"
    assert [one.approval_id for one in await scene.runner.get_pending_approvals()] == [second.approval_id]
    await scene.runner.submit_approval(second.approval_id, "approve")
    assert scene.ran == []
    assert (await within(scene.runner.resume_run(paused.run_id, token.token))).output_text == "all good"
    assert sorted(scene.ran) == ["pay 5", "pay 6"]


async def test_one_denied_of_several_stops_them_all() -> None:
    scene = Scene([PAY, ScriptedCall("pay", {"amount": 6}, "p-2")])
    paused = await scene.paused()
    first, second = paused.interruptions
    halfway = await within(scene.runner.approve_and_resume(paused.run_id, first.approval_id, decision="deny"))
    assert [one.approval_id for one in halfway.interruptions] == [second.approval_id]
    assert await code_of(scene.runner.approve_and_resume(paused.run_id, second.approval_id)) == "AGENTS-E-GATE-DENIED"
    assert scene.ran == []


async def test_an_approval_of_another_run_is_not_found() -> None:
    scene = Scene(PAY, PAY)
    one, other = await scene.paused(), await scene.paused()
    work = scene.runner.approve_and_resume(one.run_id, other.interruptions[0].approval_id)
    assert await code_of(work) == "AGENTS-E-APPROVAL-NOT-FOUND"


async def test_pending_approvals_of_an_unknown_run_are_an_error_and_of_a_known_one_an_empty_list() -> None:
    scene = Scene("all good")
    result = await scene.go()
    assert await scene.runner.get_pending_approvals(result.run_id) == []
    assert await scene.runner.get_pending_approvals() == []
    assert await code_of(scene.runner.get_pending_approvals("run_x")) == "AGENTS-E-APPROVAL-NOT-FOUND"


async def test_an_expired_token_asks_again_and_the_new_one_works(clock: FakeClock) -> None:
    scene = Scene(PAY, "all good", clock=clock, resume_token_ttl_sec=60)
    paused, token = await scene.decided()
    clock.move(60)
    assert await code_of(scene.runner.resume_run(paused.run_id, token.token)) == "AGENTS-E-RESUME-TOKEN"
    (renewed,) = await scene.runner.get_pending_approvals(paused.run_id)
    assert renewed.approval_id != paused.interruptions[0].approval_id
    result = await within(scene.runner.approve_and_resume(paused.run_id, renewed.approval_id))
    assert (result.output_text, scene.ran) == ("all good", ["pay 5"])
