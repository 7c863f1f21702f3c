"""A human refuses a call and wants the model to know: the run goes on, and the rest of the turn is decided again."""

from openai_responses_mcp.agents import Agent
from openai_responses_mcp.agents.runs.models import Extensions, ResumeOptions, RunOptions
from openai_responses_mcp.agents.testing import ScriptedCall
from tests.agents.fakes import ASK, code_of, within
from tests.agents.scenes import LOOK, PAY, Scene

PAY_MORE = ScriptedCall("pay", {"amount": 7}, "p-2")


async def test_the_run_goes_on_and_the_output_is_the_refusal_with_the_comment() -> None:
    scene = Scene(PAY, "then not")
    run = await scene.paused()
    token = await scene.runner.submit_approval(
        run.interruptions[0].approval_id, "deny", "別の口座にして", tell_model=True
    )
    result = await within(scene.runner.resume_run(run.run_id, token.token))
    assert result.output_text == "then not"
    assert scene.ran == []
    assert result.tool_calls == []
    assert scene.heard[-1][-1]["output"] == "A human refused this call: 別の口座にして"
    assert await scene.events() == [
        ("decision", "needs_human"),
        ("approval_requested", "pending"),
        ("approval", "denied"),
        ("told", "deny"),
    ]
    assert (await scene.runner.get_run(run.run_id)).status == "done"
    assert (await scene.runner.verify_execution_logs()).is_intact


async def test_a_denial_without_a_text_for_the_model_ends_the_run() -> None:
    scene = Scene([PAY, PAY_MORE], "never said")
    run = await scene.paused()
    first, second = run.interruptions
    await scene.runner.submit_approval(first.approval_id, "deny", tell_model=True)
    await scene.runner.submit_approval(second.approval_id, "deny")
    assert await code_of(scene.runner.resume_run(run.run_id)) == "AGENTS-E-GATE-DENIED"
    assert (await scene.runner.get_run(run.run_id)).status == "denied"
    assert len(scene.heard) == 1


async def test_the_rest_of_the_turn_is_decided_again_and_what_was_approved_stays_so() -> None:
    scene = Scene([LOOK, PAY, PAY_MORE], "done")
    run = await scene.paused()
    first, second = run.interruptions
    await scene.runner.submit_approval(first.approval_id, "deny", "not this one", tell_model=True)
    await scene.runner.submit_approval(second.approval_id, "approve")
    asked = len(scene.judge.requests)
    result = await within(scene.runner.resume_run(run.run_id))
    assert scene.ran == ["look here", "pay 7"]
    assert [request.tool_call_id for request in scene.judge.requests[asked:]] == ["l-1", "p-2"]
    assert {request.attempt for request in scene.judge.requests[asked:]} == {2}
    assert [call.tool_call_id for call in result.tool_calls] == ["l-1", "p-2"]
    decided = [
        (one.tool_call_id, one.decision) for one in await scene.runner.get_execution_logs() if one.event == "decision:2"
    ]
    assert decided == [("l-1", "allow"), ("p-2", "needs_human")]
    assert (await scene.runner.verify_execution_logs()).is_intact


async def test_the_rest_of_the_turn_can_need_a_human_again() -> None:
    scene = Scene([LOOK, PAY, PAY_MORE], "done")
    run = await scene.paused()
    first, second = run.interruptions
    await scene.runner.submit_approval(first.approval_id, "deny", "no", tell_model=True)
    await scene.runner.submit_approval(second.approval_id, "approve")
    scene.judge.on("look", ASK)
    again = await within(scene.runner.resume_run(run.run_id))
    assert scene.ran == []
    assert [(one.tool_call_id, one.reason) for one in again.interruptions] == [("l-1", "ask somebody")]
    assert (await scene.runner.get_run(run.run_id)).status == "paused"
    # What was decided before stays decided, in another process as well.
    result = await within(scene.runner.approve_and_resume(run.run_id, again.interruptions[0].approval_id))
    assert result.output_text == "done"
    assert scene.ran == ["look here", "pay 7"]
    assert "A human refused this call: no" in str(scene.heard[-1])
    assert (await scene.runner.verify_execution_logs()).is_intact


async def test_an_agent_inside_gets_the_refusal_and_goes_on() -> None:
    scene = Scene(ScriptedCall("ask", {"input": "pay"}, "a-1"), PAY, "inside: then not", "done")
    inside = Agent(name="Inside", model=scene.model, tools=[scene.pay])
    scene.agent = Agent(name="Outside", model=scene.model, tools=[inside.as_tool("ask", "Ask somebody else.")])
    run, _ = await scene.decided("deny", "no", tell_model=True)
    result = await within(scene.runner.resume_run(run.run_id))
    assert result.output_text == "done"
    assert scene.ran == []
    assert scene.heard[-2][-1]["output"] == "A human refused this call: no"
    assert scene.heard[-1][-1]["output"] == "inside: then not"


async def test_a_human_response_reaches_the_model_after_a_second_pause() -> None:
    scene = Scene([LOOK, PAY], "done")
    run, token = await scene.decided("deny", tell_model=True)
    scene.judge.on("look", ASK)
    options = RunOptions(extensions=Extensions(resume=ResumeOptions(token.token, "急いで")))
    again = await within(scene.runner.run(scene.agent, "", options))
    await within(scene.runner.approve_and_resume(run.run_id, again.interruptions[0].approval_id))
    assert str(scene.heard[-1]).count("急いで") == 1
