"""Runs on the SDK's engine: handoffs and agents inside agents pass one gate, and failures have the names of this library."""

import pytest

from openai_responses_mcp.agents import Agent, AgentsError, tool
from openai_responses_mcp.agents.testing import ScriptedCall
from tests.agents.fakes import code_of, collected
from tests.agents.scenes import LOOK, Scene

OVER = ScriptedCall("transfer_to_other", {}, "h-1")
INSIDE = ScriptedCall("ask", {"input": "do it"}, "o-1")


async def test_a_model_that_fails_is_a_runner_error_with_its_cause() -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER: ConnectionError: no line") as caught:
        await Scene(ConnectionError("no line")).go()
    assert isinstance(caught.value.__cause__, ConnectionError)


async def test_a_stream_that_breaks_is_a_stream_error() -> None:
    scene = Scene(ConnectionError("cut"))
    assert await code_of(collected(scene.runner.run_stream(scene.agent, "go"))) == "AGENTS-E-STREAM"


async def test_a_call_of_an_unknown_tool_is_a_runner_error() -> None:
    assert await code_of(Scene(ScriptedCall("fly")).go()) == "AGENTS-E-RUNNER"


async def test_an_error_of_this_library_comes_out_of_a_tool_as_it_is() -> None:
    def fail() -> str:
        raise AgentsError("AGENTS-E-MCP-EXEC", "no luck")

    scene = Scene(ScriptedCall("fail"))
    scene.agent.tools = [tool(fail, failure_error_function=None)]
    assert await code_of(scene.go()) == "AGENTS-E-MCP-EXEC"


async def test_a_handoff_is_judged_by_its_target_and_the_next_turn_with_the_new_agent() -> None:
    scene = Scene(OVER, LOOK, "other here")
    other = Agent(name="Other", model=scene.model, tools=[scene.look])
    scene.agent.handoffs = [other]
    result = await scene.go()
    assert (result.output_text, result.last_agent) == ("other here", other)
    assert [request.tool_name for request in scene.judge.requests] == ["Other", "look"]
    assert all(judged is own for judged, own in zip(scene.judge.agents, [scene.agent, other], strict=True))
    catalogs = [[described.name for described in request.tool_catalog] for request in scene.judge.requests]
    assert catalogs == [["look", "pay", "Other"], ["look"]]
    assert [call.output for call in result.tool_calls] == ["Other", "saw here"]


def with_an_agent_inside(scene: Scene) -> None:
    inside = Agent(name="Inside", model=scene.model, tools=[scene.look, scene.pay])
    scene.agent.tools = [inside.as_tool("ask", "Ask somebody else.")]


async def test_calls_of_an_agent_inside_pass_the_same_gate() -> None:
    scene = Scene(INSIDE, LOOK, "inner done", "all done")
    with_an_agent_inside(scene)
    result = await scene.go()
    assert (result.output_text, result.usage.requests) == ("all done", 4)
    logs = await scene.runner.get_execution_logs(result.run_id)
    assert [(log.tool_call_id, log.event) for log in logs] == [
        ("o-1", "decision"), ("o-1", "started"), ("l-1", "decision"), ("l-1", "started"), ("l-1", "outcome"),
        ("o-1", "outcome"),
    ]  # fmt: skip
