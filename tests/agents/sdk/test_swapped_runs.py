"""Code written for the SDK, run by the swapped `Runner`: what its own tests expect, and what may never follow from it."""

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import agents as sdk
import pytest
from agents import CustomTool, RunContextWrapper, ShellTool, ToolApprovalItem
from openai.types.responses import ResponseCustomToolCall, ResponseFunctionShellToolCall, ResponseFunctionToolCall
from openai.types.responses.response_function_shell_tool_call import Action

from openai_responses_mcp.agents import Agent, AgentsError, Runner, configure, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import code_of, within
from tests.agents.scenes import LOOK, PAY, Scene


@pytest.fixture(autouse=True)
def _unconfigured() -> Iterator[None]:
    yield
    configure(None)


class NamesItsCalls(ScriptedModel):
    """A model that calls a tool with a text."""

    async def get_response(self, *args: Any, **options: Any) -> Any:
        response = await super().get_response(*args, **options)
        for place, item in enumerate(response.output):
            if item.type == "function_call" and item.name == "query":
                response.output[place] = ResponseCustomToolCall(
                    type="custom_tool_call", name="query", call_id=item.call_id, input="select 1"
                )
        return response


def queried(scene: Scene, *, needs_approval: bool = False) -> Agent[Any]:
    async def invoke(context: Any, text: str) -> str:
        scene.ran.append(text)
        return "1"

    query = CustomTool("query", "Ask the database.", invoke, needs_approval=needs_approval)
    return Agent(name="Asker", model=NamesItsCalls(ScriptedCall("query", {}, "q-1"), "done"), tools=[query])


async def test_a_tool_that_is_called_with_a_text_waits_for_a_human() -> None:
    scene = Scene()
    paused = await within(scene.runner.run(queried(scene, needs_approval=True), "go"))
    assert scene.ran == []
    assert [request.args for request in scene.judge.requests] == [{"input": "select 1"}]
    request = paused.interruptions[0]
    result = await within(scene.runner.approve_and_resume(paused.run_id, request.approval_id))
    assert (result.output_text, scene.ran) == ("done", ["select 1"])


async def test_a_tool_that_is_called_with_a_text_and_fails_is_recorded_as_failed() -> None:
    scene = Scene()

    def broken(context: Any, text: str) -> str:
        raise ValueError(text)

    agent = queried(scene)
    agent.tools = [CustomTool("query", "Ask the database.", broken)]
    await code_of(scene.runner.run(agent, "go"))
    assert (await scene.events())[-1] == ("outcome", "failed")


async def test_a_shell_that_the_provider_runs_goes_by_scope() -> None:
    scene = Scene("done")
    scene.agent.tools = [ShellTool(environment={"type": "container_auto"})]
    assert (await scene.go()).output_text == "done"
    assert [request.tool_name for request in scene.judge.requests] == []


class ShellModel(ScriptedModel):
    async def get_response(self, *args: Any, **options: Any) -> Any:
        response = await super().get_response(*args, **options)
        for place, item in enumerate(response.output):
            if item.type == "function_call":
                response.output[place] = ResponseFunctionShellToolCall(
                    type="shell_call",
                    id="s",
                    call_id=item.call_id,
                    status="completed",
                    action=Action(commands=["rm -r build"]),
                )
        return response


@pytest.mark.parametrize("decision", ["approve", "changed", "deny"])
async def test_a_shell_that_runs_here_asks_a_human_about_its_commands(decision: str) -> None:
    scene, ran = Scene(), list[list[str]]()

    def execute(request: Any) -> str:
        ran.append(request.data.action.commands)
        return "removed"

    model = ShellModel(ScriptedCall("shell", {}, "s-1"), "done")
    agent = Agent(name="Sheller", model=model, tools=[ShellTool(executor=execute)])
    paused = await within(scene.runner.run(agent, "go"))
    request = paused.interruptions[0]
    assert (ran, request.arguments["commands"]) == ([], ["rm -r build"])
    changed = {**request.arguments, "commands": ["ls"]} if decision == "changed" else None
    verdict: Any = "deny" if decision == "deny" else "approve"
    await scene.runner.submit_approval(request.approval_id, verdict, tell_model=decision == "deny", arguments=changed)
    result = await within(scene.runner.resume_run(paused.run_id))
    assert result.output_text == "done"
    assert ran == {"approve": [["rm -r build"]], "changed": [["ls"]], "deny": []}[decision]
    assert ("outcome", "completed") in await scene.events() or decision == "deny"


async def test_a_call_inside_a_call_with_the_same_id_waits_and_goes_on() -> None:
    scene = Scene(ScriptedCall("ask", {"input": "hi"}, "1"), "outer")
    inner = Agent(
        name="Inner", model=ScriptedModel(ScriptedCall("pay", {"amount": 5}, "1"), "inner"), tools=[scene.pay]
    )
    scene.agent.tools = [inner.as_tool("ask", "Ask.")]
    paused = await scene.paused()
    assert [request.tool_call_id for request in paused.interruptions] == ["1/1"]
    result = await within(scene.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert (result.output_text, scene.ran) == ("outer", ["pay 5"])


async def test_a_streamed_run_ends_without_a_reader_and_shows_its_failure() -> None:
    scene = Scene(LOOK, "done", ConnectionError("no line"))
    configure(scene.runner)
    run = Runner.run_streamed(scene.agent, "go")
    assert run.run_loop_task is not None
    await within(run.run_loop_task)
    assert (run.final_output, scene.ran) == ("done", ["look here"])
    broken = Runner.run_streamed(scene.agent, "go")
    with pytest.raises(ConnectionError):
        [event async for event in broken.stream_events()]


async def test_options_that_the_sdk_rejects_before_a_run_are_rejected_before_it_here() -> None:
    scene = Scene("done")
    configure(scene.runner)
    with pytest.raises(TypeError, match="RunHooks"):
        Runner.run_streamed(scene.agent, "go", hooks=sdk.AgentHooks())
    with pytest.raises(sdk.UserError, match="Session persistence"):
        Runner.run_streamed(scene.agent, "go", session=sdk.SQLiteSession("s"), conversation_id="c")
    scene.agent.output_guardrails = [sdk.OutputGuardrail(lambda *given: None)]  # type: ignore[arg-type]
    with pytest.raises(sdk.UserError, match="Output guardrails"):
        Runner.run_streamed(scene.agent, "go", conversation_id="c", run_config={})
    with pytest.raises(AgentsError, match="did you mean context"):
        Runner.run_streamed(scene.agent, "go", contxt={})
    with pytest.raises(AgentsError, match="A str is not an agent"):
        Runner.run_streamed("Clerk", "go")  # type: ignore[arg-type]


def approving(agent: Any) -> RunContextWrapper[Any]:
    call = ResponseFunctionToolCall(type="function_call", name="pay", call_id="p-1", arguments='{"amount": 5}')
    context: RunContextWrapper[Any] = RunContextWrapper(context={})
    context.approve_tool(ToolApprovalItem(agent=agent, raw_item=call))
    return context


@pytest.mark.parametrize("is_allowed", [False, True])
async def test_an_approval_in_the_context_counts_where_code_may_approve(is_allowed: bool) -> None:
    scene = Scene(PAY, "paid")
    configure(scene.runner, allow_code_approval=is_allowed)
    result = await within(Runner.run(scene.agent, "go", context=approving(scene.agent)))
    assert scene.ran == (["pay 5"] if is_allowed else [])
    assert len(result.interruptions) == (0 if is_allowed else 1)
    comments = [log.comment for log in await scene.runner.get_execution_logs() if log.event == "approval"]
    assert comments == (["by code"] if is_allowed else [])


async def test_a_decision_for_always_survives_a_text_with_agents_made_again() -> None:
    again = ScriptedCall("pay", {"amount": 6}, "p-2")
    scene = Scene(PAY, again, "paid")
    configure(scene.runner, allow_code_approval=True)
    state = (await within(Runner.run(scene.agent, "go"))).to_state()
    state.approve(state.get_interruptions()[0], always_approve=True)
    assert state.to_json() == state.to_json()
    remade = Agent(name="Clerk", model=scene.model, tools=[scene.look, scene.pay])
    result = await within(Runner.run(remade, await type(state).from_string(remade, state.to_string())))
    assert (result.final_output, scene.ran) == ("paid", ["pay 5", "pay 6"])


async def test_a_state_that_went_on_does_not_run_a_call_again() -> None:
    scene = Scene(PAY, ConnectionError("no line"), "paid")
    configure(scene.runner, allow_code_approval=True)
    state = (await within(Runner.run(scene.agent, "go"))).to_state()
    state.approve(state.get_interruptions()[0])
    with pytest.raises(ConnectionError):
        await within(Runner.run(scene.agent, state))
    result = await within(Runner.run(scene.agent, state))
    assert (result.final_output, scene.ran) == ("paid", ["pay 5"])


async def test_a_tool_that_is_called_by_hand_goes_through_the_configured_runner() -> None:
    scene = Scene(LOOK, "seen")
    configure(scene.runner)
    asked: Any = scene.agent.as_tool("ask", "Ask.")
    context = sdk.tool_context.ToolContext(None, tool_name="ask", tool_call_id="a", tool_arguments="{}")
    assert await within(asked.on_invoke_tool(context, '{"input": "hi"}')) == "seen"
    assert await scene.events() == [("decision", "allow"), ("started", "started"), ("outcome", "completed")]


async def test_a_tool_may_return_an_object_that_holds_itself() -> None:
    scene = Scene(ScriptedCall("turn", {}), "done")
    circle: list[Any] = []
    circle.append(circle)

    @tool
    def turn() -> Any:
        """Give a circle."""
        return circle

    scene.agent.tools = [turn]
    result = await scene.go()
    assert (result.output_text, result.tool_calls[0].output) == ("done", "[[...]]")


async def test_instructions_and_enablement_of_handoffs_see_the_users_own_agent() -> None:
    scene, seen = Scene("done"), list[object]()

    def noted(context: Any, agent: Any) -> Any:
        seen.append(agent)
        return "Be brief."

    scene.agent.instructions = noted
    scene.agent.handoffs = [sdk.handoff(Agent(name="Other"), is_enabled=noted)]
    await scene.go()
    assert len(seen) == 2
    assert all(agent is scene.agent for agent in seen)


async def test_a_handoff_filter_sees_agents_that_equal_the_users_own() -> None:
    @dataclass(eq=False)
    class Named(Agent[Any]):
        __hash__ = object.__hash__

    seen: list[tuple[Any, Any]] = []

    def noted(data: sdk.HandoffInputData) -> sdk.HandoffInputData:
        seen.extend((item.agent, copy.deepcopy(item).agent) for item in data.new_items)
        return data

    other = Agent(name="Other", model=ScriptedModel("done"))
    handoff = sdk.handoff(other, input_filter=noted)
    agent = Named(name="First", model=ScriptedModel(ScriptedCall("transfer_to_other", {}, "h-1")), handoffs=[handoff])
    assert (await within(Scene().runner.run(agent, "go"))).output_text == "done"
    assert len(seen) == 2
    for given, copied in seen:
        assert given == agent
        assert agent == given
        assert given != other
        assert {agent: "found"}[given] == "found"
        assert copied is agent
