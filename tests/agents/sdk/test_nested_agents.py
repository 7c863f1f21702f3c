"""Agents inside agents: as tools, by handoff, and started by a tool itself. All of it passes one gate."""

from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents import Agent, Extensions, RunOptions, create_runner, tool
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import ASK, DENY, FakeClock, FakeJudge, code_of, within


class Scene:
    """An outer agent and an inner one with a tool `write`, and what the tool was called with."""

    def __init__(self, inner_class: Any = sdk.Agent) -> None:
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
        self.inner = inner_class(name="Inner", tools=[write], model=self.inner_model)

    def runner(self, store: str | None = None, clock: FakeClock | None = None) -> AgentRunner:
        return create_runner(safety_agent=self.judge, store=store, clock=clock)

    def outer_with_tool(self) -> sdk.Agent[Any]:
        return Agent(
            name="Outer", model=self.outer_model, tools=[self.inner.as_tool("ask_inner", "Ask the inner one.")]
        )

    def outer_with_handoff(self) -> sdk.Agent[Any]:
        return Agent(name="Outer", model=self.outer_model, handoffs=[self.inner])


async def test_a_plain_agent_used_as_a_tool_is_judged_call_by_call() -> None:
    scene = Scene()
    scene.outer_model.enqueue(ScriptedCall("ask_inner", {"input": "do it"}, "outer-1"), "all done")
    scene.inner_model.enqueue(ScriptedCall("write", {"text": "x"}, "inner-1"), "inner done")
    result = await within(scene.runner().run(scene.outer_with_tool(), "go"))
    assert result.output_text == "all done"
    assert [request.tool_name for request in scene.judge.requests] == ["ask_inner", "write"]
    assert [agent.name for agent in scene.judge.agents] == ["Outer", "Inner"]
    assert scene.written == ["x"]
    assert [call.tool_call_id for call in result.tool_calls] == ["outer-1", "inner-1"]


async def test_a_refusal_inside_an_agent_tool_ends_the_whole_run() -> None:
    scene = Scene()
    scene.judge.on("write", DENY)
    scene.outer_model.enqueue(ScriptedCall("ask_inner", {"input": "do it"}), "never said")
    scene.inner_model.enqueue(ScriptedCall("write", {"text": "x"}))
    assert await code_of(scene.runner().run(scene.outer_with_tool(), "go")) == "AGENTS-E-GATE-DENIED"
    assert scene.written == []
    assert len(scene.outer_model.calls) == 1


async def test_a_pause_inside_an_agent_tool_can_be_approved_and_resumed() -> None:
    scene = Scene()
    scene.judge.on("write", ASK)
    runner = scene.runner()
    scene.outer_model.enqueue(ScriptedCall("ask_inner", {"input": "do it"}, "outer-1"), "all done")
    scene.inner_model.enqueue(ScriptedCall("write", {"text": "x"}, "inner-1"), "inner done")
    paused = await within(runner.run(scene.outer_with_tool(), "go"))
    assert [request.tool_name for request in paused.interruptions] == ["write"]
    assert scene.written == []
    result = await within(runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert (result.output_text, scene.written) == ("all done", ["x"])
    events = [(log.tool_call_id, log.event) for log in await runner.get_execution_logs()]
    assert events.count(("outer-1", "started")) == 1
    assert events.count(("outer-1", "outcome")) == 1


async def test_a_pause_inside_an_agent_tool_is_resumed_by_another_runner(sqlite_url: str) -> None:
    scene = Scene()
    scene.judge.on("write", ASK)
    scene.outer_model.enqueue(ScriptedCall("ask_inner", {"input": "do it"}, "outer-1"), "all done")
    scene.inner_model.enqueue(ScriptedCall("write", {"text": "x"}, "inner-1"), "inner done")
    paused = await within(scene.runner(sqlite_url).run(scene.outer_with_tool(), "go"))
    other = scene.runner(sqlite_url)
    waiting = await other.get_pending_approvals(paused.run_id)
    result = await within(
        other.approve_and_resume(paused.run_id, waiting[0].approval_id, agent=scene.outer_with_tool())
    )
    assert (result.output_text, scene.written) == ("all done", ["x"])


async def test_two_agent_tools_that_pause_in_one_turn_wait_for_both() -> None:
    scene, other = Scene(), Scene()
    judge = scene.judge
    judge.on("write", ASK)
    model = ScriptedModel([ScriptedCall("one", {"input": "a"}), ScriptedCall("two", {"input": "b"})], "all done")
    tools: list[sdk.Tool] = [scene.inner.as_tool("one", "One."), other.inner.clone(name="Other").as_tool("two", "Two.")]
    scene.inner_model.enqueue(ScriptedCall("write", {"text": "x"}, "x-1"), "done")
    other.inner_model.enqueue(ScriptedCall("write", {"text": "y"}, "y-1"), "done")
    runner = scene.runner()
    paused = await within(runner.run(Agent(name="Outer", model=model, tools=tools), "go"))
    first, second = paused.interruptions
    halfway = await within(runner.approve_and_resume(paused.run_id, first.approval_id))
    assert [request.approval_id for request in halfway.interruptions] == [second.approval_id]
    assert scene.written == other.written == []
    result = await within(runner.approve_and_resume(paused.run_id, second.approval_id))
    assert result.output_text == "all done"
    assert (scene.written, other.written) == (["x"], ["y"])


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


async def test_a_handoff_is_judged_by_its_target_and_the_snapshot_is_the_new_agents() -> None:
    scene = Scene()
    scene.outer_model.enqueue(ScriptedCall("transfer_to_inner"))
    scene.inner_model.enqueue(ScriptedCall("write", {"text": "x"}), "inner done")
    result = await within(scene.runner().run(scene.outer_with_handoff(), "go"))
    assert result.output_text == "inner done"
    assert result.last_agent is scene.inner
    handed_over, wrote = scene.judge.requests
    assert (handed_over.tool_kind, handed_over.tool_name) == ("function", "Inner")
    assert wrote.capability_snapshot is not None
    assert wrote.capability_snapshot.agent_name == "Inner"
    assert wrote.capability_snapshot.tool_names == ("write",)


async def test_a_refused_handoff_does_not_happen() -> None:
    scene = Scene()
    scene.judge.on("Inner", DENY)
    scene.outer_model.enqueue(ScriptedCall("transfer_to_inner"))
    assert await code_of(scene.runner().run(scene.outer_with_handoff(), "go")) == "AGENTS-E-GATE-DENIED"
    assert scene.inner_model.calls == []


async def test_a_handoff_alone_can_wait_for_a_human_and_be_resumed_elsewhere(sqlite_url: str) -> None:
    scene = Scene()
    scene.judge.on("Inner", ASK)
    scene.outer_model.enqueue(ScriptedCall("transfer_to_inner", call_id="h-1"))
    scene.inner_model.enqueue("inner done")
    paused = await within(scene.runner(sqlite_url).run(scene.outer_with_handoff(), "go"))
    assert [request.tool_name for request in paused.interruptions] == ["Inner"]
    assert paused.final_output is None
    assert scene.inner_model.calls == []
    other = scene.runner(sqlite_url)
    result = await within(
        other.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id, agent=scene.outer_with_handoff())
    )
    assert result.output_text == "inner done"
    assert len(scene.outer_model.calls) == 1
    assert result.usage.requests == 2


async def test_a_handoff_next_to_a_tool_waits_with_it(sqlite_url: str) -> None:
    scene = Scene()
    scene.judge.on("write", ASK)
    agent = Agent(name="Outer", model=scene.outer_model, tools=[scene.write], handoffs=[scene.inner])
    scene.outer_model.enqueue(
        [ScriptedCall("write", {"text": "x"}, "w-1"), ScriptedCall("transfer_to_inner", {}, "h-1")]
    )
    scene.inner_model.enqueue("inner done")
    paused = await within(scene.runner(sqlite_url).run(agent, "go"))
    assert scene.written == []
    result = await within(
        scene.runner(sqlite_url).approve_and_resume(paused.run_id, paused.interruptions[0].approval_id, agent=agent)
    )
    assert (result.output_text, scene.written) == ("inner done", ["x"])


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


async def test_a_run_that_a_tool_starts_itself_is_guarded_too() -> None:
    scene = Scene()
    scene.judge.on("write", DENY)

    @sdk.function_tool
    async def sneak() -> str:
        """Start a run on the side."""
        result = await sdk.Runner.run(scene.inner, "do it")
        return str(result.final_output)

    scene.outer_model.enqueue(ScriptedCall("sneak"), "never said")
    scene.inner_model.enqueue(ScriptedCall("write", {"text": "x"}))
    agent = Agent(name="Outer", model=scene.outer_model, tools=[sneak])
    assert await code_of(scene.runner().run(agent, "go")) == "AGENTS-E-GATE-DENIED"
    assert scene.written == []


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


async def test_outside_a_guarded_run_the_sdk_works_as_ever() -> None:
    scene = Scene()
    scene.outer_model.enqueue(ScriptedCall("write", {"text": "guarded"}), "done")
    guarded = Agent(name="Outer", model=scene.outer_model, tools=[scene.write])
    await within(scene.runner().run(guarded, "go"))
    scene.inner_model.enqueue(ScriptedCall("write", {"text": "plain"}), "done")
    config = sdk.RunConfig(tracing_disabled=True)
    await within(sdk.Runner.run(scene.inner, "go", run_config=config))
    assert [request.args["text"] for request in scene.judge.requests] == ["guarded"]
    assert scene.written == ["guarded", "plain"]


async def test_every_handoff_asks_when_the_caller_wants_a_human() -> None:
    scene = Scene()
    scene.outer_model.enqueue(ScriptedCall("transfer_to_inner"))
    options = RunOptions(extensions=Extensions(require_human_approval=True))
    paused = await within(scene.runner().run(scene.outer_with_handoff(), "go", options))
    assert [request.tool_name for request in paused.interruptions] == ["Inner"]


async def test_something_that_is_no_agent_is_refused() -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-AGENT-CAPABILITY-RESOLVE"):
        await within(create_runner(safety_agent=FakeJudge()).run(object(), "go"))


async def test_the_users_own_objects_are_left_as_they_are() -> None:
    @tool
    def noop() -> str:
        """Do nothing."""
        return "nothing"

    agent = Agent(name="Outer", model=ScriptedModel(ScriptedCall("noop"), "done"), tools=[noop])
    before = (noop.on_invoke_tool, noop.needs_approval, list(agent.tools), list(agent.handoffs))
    await within(create_runner(safety_agent=FakeJudge()).run(agent, "go"))
    assert (noop.on_invoke_tool, noop.needs_approval, list(agent.tools), list(agent.handoffs)) == before
