"""Agents inside agents: as tools, by handoff, and started by a tool itself. All of it passes one gate."""

from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents import Agent, create_runner, tool
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import ASK, FakeJudge, code_of, within


class Scene:
    """An outer agent and an inner one with a tool `write`, and what the tool was called with."""

    def __init__(self) -> None:
        self.written: list[str] = []
        self.judge = FakeJudge()
        self.inner_model = ScriptedModel()
        self.outer_model = ScriptedModel()

        @sdk.function_tool
        def write(text: str) -> str:
            """Write something down."""
            self.written.append(text)
            return f"wrote {text}"

        self.write = write
        self.inner = sdk.Agent[Any](name="Inner", tools=[write], model=self.inner_model)

    def runner(self, store: str | None = None) -> AgentRunner:
        return create_runner(safety_agent=self.judge, store=store)

    def outer_with_tool(self) -> sdk.Agent[Any]:
        return Agent(
            name="Outer", model=self.outer_model, tools=[self.inner.as_tool("ask_inner", "Ask the inner one.")]
        )


@pytest.mark.parametrize("decision", ["allow", "ask"])
async def test_one_agent_can_be_used_twice_in_a_turn(decision: str, sqlite_url: str) -> None:
    scene = Scene()
    if decision == "ask":
        scene.judge.on("write", ASK)
    calls = [ScriptedCall("ask_inner", {"input": "a"}, "outer-a"), ScriptedCall("ask_inner", {"input": "b"}, "outer-b")]
    scene.outer_model.enqueue(calls, "all done")
    scene.inner_model.enqueue(ScriptedCall("write", {"text": "x"}, "x-1"), ScriptedCall("write", {"text": "y"}, "y-1"))
    scene.inner_model.enqueue("done", "done")
    result = await within(scene.runner(sqlite_url).run(scene.outer_with_tool(), "go"))
    waiting = {request.tool_call_id for request in result.interruptions}
    assert waiting == ({"x-1", "y-1"} if decision == "ask" else set())
    other, agent = scene.runner(sqlite_url), scene.outer_with_tool()
    for request in result.interruptions:
        result = await within(other.approve_and_resume(result.run_id, request.approval_id, agent=agent))
    assert (result.output_text, sorted(scene.written)) == ("all done", ["x", "y"])
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
    scene = Scene()
    scene.judge.on("write", ASK)

    @sdk.function_tool
    async def sneak() -> str:
        """Start a run on the side."""
        result = sdk.Runner.run_streamed(scene.inner, "do it")
        async for _ in result.stream_events():
            pass
        return str(result.final_output)

    scene.outer_model.enqueue(ScriptedCall("sneak"), "never said")
    scene.inner_model.enqueue(ScriptedCall("write", {"text": "x"}))
    agent = Agent(name="Outer", model=scene.outer_model, tools=[sneak])
    assert await code_of(scene.runner().run(agent, "go")) == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"
    assert scene.written == []


async def test_a_handoff_inside_an_agent_tool_cannot_wait_for_a_human() -> None:
    scene = Scene()
    scene.judge.on("Inner", ASK)
    middle: sdk.Agent[Any] = sdk.Agent(
        name="Middle", model=ScriptedModel(ScriptedCall("transfer_to_inner")), handoffs=[scene.inner]
    )
    scene.outer_model.enqueue(ScriptedCall("ask", {"input": "x"}))
    agent = Agent(name="Outer", model=scene.outer_model, tools=[middle.as_tool("ask", "Ask.")])
    assert await code_of(scene.runner().run(agent, "go")) == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"


async def test_the_users_own_objects_are_not_changed() -> None:
    @tool
    def noop() -> str:
        """Do nothing."""
        return "nothing"

    agent = Agent(name="Outer", model=ScriptedModel(ScriptedCall("noop"), "done"), tools=[noop])
    before = (noop.on_invoke_tool, noop.needs_approval, list(agent.tools), list(agent.handoffs))
    await within(create_runner(safety_agent=FakeJudge()).run(agent, "go"))
    assert (noop.on_invoke_tool, noop.needs_approval, list(agent.tools), list(agent.handoffs)) == before
