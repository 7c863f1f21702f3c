"""Calls that the caller asks for, without a model."""

from openai_responses_mcp.agents import Agent
from openai_responses_mcp.agents.runs.models import Extensions, RequestedToolCall, RunOptions
from tests.agents.fakes import within
from tests.agents.scenes import Scene


async def test_requested_calls_need_no_model_and_pass_the_gate() -> None:
    scene = Scene()
    calls = (RequestedToolCall("look", {"what": "a"}), RequestedToolCall("look", {"what": "b"}))
    result = await scene.go(Extensions(tool_calls=calls))
    assert scene.ran == ["look a", "look b"]
    assert result.output_text == "saw a\nsaw b"
    assert [call.output for call in result.tool_calls] == ["saw a", "saw b"]
    assert scene.heard == []
    assert len(scene.judge.requests) == 2


async def test_a_handoff_can_be_requested() -> None:
    scene = Scene("second here")
    scene.agent.handoffs = [Agent(name="Second", model=scene.model)]
    result = await scene.go(Extensions(tool_calls=(RequestedToolCall("Second"),)))
    assert result.output_text == "second here"
    assert [request.tool_name for request in scene.judge.requests] == ["Second"]


async def test_a_requested_call_can_wait_for_a_human_elsewhere(sqlite_url: str) -> None:
    scene = Scene(store=sqlite_url)
    call = RequestedToolCall("pay", {"amount": 7})
    paused = await within(scene.runner.run(scene.agent, "", RunOptions(extensions=Extensions(tool_calls=(call,)))))
    other = Scene(store=sqlite_url)
    (request,) = await other.runner.get_pending_approvals(paused.run_id)
    result = await within(other.runner.approve_and_resume(paused.run_id, request.approval_id, agent=other.agent))
    assert (result.output_text, scene.ran, other.ran) == ("paid 7", [], ["pay 7"])
