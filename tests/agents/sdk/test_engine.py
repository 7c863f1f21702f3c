"""Runs on the SDK's engine: handoffs, agents inside agents and runs that a tool starts pass one gate; failures have our names."""

from collections.abc import Sequence
from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents import Agent, AgentsError, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import ASK, FakeJudge, code_of, collected, within
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


class Nested(Scene):
    """The tools are those of an inner agent, which the outer one asks."""

    def __init__(self, *turns: Any, inner: Sequence[Any] = (), **options: Any) -> None:
        super().__init__(*turns, **options)
        self.inner = sdk.Agent[Any](name="Inner", model=ScriptedModel(*inner), tools=self.agent.tools)
        self.agent.tools = [self.inner.as_tool("ask", "Ask somebody else.")]


async def test_calls_of_an_agent_inside_pass_the_same_gate() -> None:
    scene = Nested(INSIDE, "all done", inner=[LOOK, "inner done"])
    result = await scene.go()
    assert (result.output_text, result.usage.requests) == ("all done", 4)
    logs = await scene.runner.get_execution_logs(result.run_id)
    assert [(log.tool_call_id, log.event) for log in logs] == [
        ("o-1", "decision"), ("o-1", "started"), ("l-1", "decision"), ("l-1", "started"), ("l-1", "outcome"),
        ("o-1", "outcome"),
    ]  # fmt: skip


@pytest.mark.parametrize("decision", ["allow", "ask"])
async def test_one_agent_can_be_used_twice_in_a_turn(decision: str, sqlite_url: str) -> None:
    asks = [ScriptedCall("ask", {"input": text}, f"outer-{text}") for text in "ab"]
    looks = [ScriptedCall("look", {"what": text}, f"l-{text}") for text in "xy"]
    scene, other = Nested(asks, "all done", inner=[*looks, "done", "done"], store=sqlite_url), Nested(store=sqlite_url)
    if decision == "ask":
        scene.judge.on("look", ASK)
    result = await scene.go()
    waiting = {request.tool_call_id for request in result.interruptions}
    assert waiting == ({"l-x", "l-y"} if decision == "ask" else set())
    for request in result.interruptions:
        result = await within(other.runner.approve_and_resume(result.run_id, request.approval_id, agent=scene.agent))
    assert (result.output_text, sorted(scene.ran)) == ("all done", ["look x", "look y"])
    outputs = {call.tool_call_id: call.output for call in result.tool_calls}
    assert (outputs["outer-a"], outputs["outer-b"]) == ("done", "done")


async def test_agents_that_hand_over_in_circles_are_taken_over_once() -> None:
    ping, pong = ScriptedModel(), ScriptedModel()
    first: sdk.Agent[Any] = sdk.Agent(name="Ping", model=ping)
    second: sdk.Agent[Any] = sdk.Agent(name="Pong", model=pong, handoffs=[first])
    first.handoffs = [sdk.handoff(second)]
    ping.enqueue(ScriptedCall("transfer_to_pong"), "home again")
    pong.enqueue(ScriptedCall("transfer_to_ping"))
    runner = create_runner(safety_agent=FakeJudge())
    result = await within(runner.run(first, "go"))
    assert result.output_text == "home again"
    assert result.last_agent is first


async def test_a_run_that_a_tool_starts_itself_cannot_wait_for_a_human() -> None:
    scene = Nested(ScriptedCall("sneak"), "never said", inner=[LOOK])
    scene.judge.on("look", ASK)

    @sdk.function_tool
    async def sneak() -> str:
        """Start a run on the side."""
        result = sdk.Runner.run_streamed(scene.inner, "do it")
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    scene.agent.tools = [sneak]
    assert await code_of(scene.go()) == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"
    assert scene.ran == []


async def test_a_handoff_inside_an_agent_tool_cannot_wait_for_a_human() -> None:
    scene = Nested(INSIDE, inner=[ScriptedCall("transfer_to_last")])
    scene.inner.handoffs = [sdk.Agent[Any](name="Last", model=scene.model)]
    scene.judge.on("Last", ASK)
    assert await code_of(scene.go()) == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"


async def test_the_users_own_objects_are_not_changed() -> None:
    scene = Scene(LOOK, "done")
    agent, look = scene.agent, scene.look
    before = (look.on_invoke_tool, look.needs_approval, list(agent.tools), list(agent.handoffs))
    await scene.go()
    assert (look.on_invoke_tool, look.needs_approval, list(agent.tools), list(agent.handoffs)) == before
