"""Runs that are watched while they go on."""

from typing import Any

from openai_responses_mcp.agents.runs.models import Extensions, ResumeOptions, RunEvent, RunOptions
from tests.agents.fakes import collected, last_result, within
from tests.agents.scenes import LOOK, PAY, Scene


async def test_a_stream_shows_text_calls_and_the_end() -> None:
    scene = Scene(LOOK, "all good")
    events = await within(collected(scene.runner.run_stream(scene.agent, "go")))
    assert [event.type for event in events] == ["tool_call", "tool_output", "text_delta", "final_output"]
    assert events[0].tool_call is not None
    assert events[0].tool_call.args == {"what": "here"}
    assert events[1].tool_call is not None
    assert events[1].tool_call.output == "saw here"
    assert events[2].delta == "all good"
    assert events[3].final_output == "all good"
    assert last_result(events).output_text == "all good"


async def resumed(scene: Scene, paused: Any, human_response: str | None = None) -> list[RunEvent]:
    token = await scene.runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    resume = Extensions(resume=ResumeOptions(token.token, human_response))
    return await within(collected(scene.runner.run_stream(scene.agent, "", RunOptions(extensions=resume))))


async def test_a_stream_resumes_a_paused_run() -> None:
    scene = Scene(PAY, "all good")
    paused = await scene.paused()
    events = await resumed(scene, paused, "but not again this month")
    assert [event.type for event in events] == ["tool_output", "text_delta", "final_output"]
    assert (last_result(events).run_id, events[-1].final_output) == (paused.run_id, "all good")
    assert scene.ran == ["pay 5"]
    assert "but not again this month" in str(scene.heard[-1])
    assert last_result(events).usage.requests == 2


async def test_a_stream_that_is_left_early_ends_the_run() -> None:
    scene = Scene("all good")
    stream = scene.runner.run_stream(scene.agent, "go")
    async for _ in stream:
        break
    await within(stream.aclose())  # type: ignore[attr-defined]
    scene.model.enqueue("again")
    assert (await scene.go()).output_text == "again"
