"""The SDK's way to decide on a paused run: its items and its state, over this library's approvals."""

from collections.abc import Iterator
from typing import Any

import agents as sdk
import pytest
from openai.types.responses import ResponseCustomToolCall
from openai.types.responses.response_output_item import McpApprovalRequest

from openai_responses_mcp import agents as guarded
from openai_responses_mcp.agents import Agent, AgentsError, Extensions, RunOptions, RunState, configure, create_runner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import ASK, FakeJudge, code_of, within
from tests.agents.sdk.scenes import LOOK, PAY, Scene


@pytest.fixture(autouse=True)
def nothing_configured() -> Iterator[None]:
    yield
    configure(None)


def a_scene(*turns: Any, is_allowed: bool = True) -> Scene:
    scene = Scene(*turns)
    configure(scene.runner, allow_code_approval=is_allowed)
    return scene


async def run(scene: Scene, input: Any, *, is_streamed: bool = False) -> Any:
    if not is_streamed:
        return await within(guarded.Runner.run(scene.agent, input))
    result = guarded.Runner.run_streamed(scene.agent, input)
    async for _ in result.stream_events():
        pass
    return result


STREAMED = pytest.mark.parametrize("is_streamed", [False, True], ids=["run", "streamed"])


@STREAMED
async def test_an_interruption_has_the_fields_of_the_sdk_and_ours(is_streamed: bool) -> None:
    scene = a_scene(PAY, "paid")
    result = await run(scene, "go", is_streamed=is_streamed)
    item = result.interruptions[0]
    assert (item.name, item.arguments, item.raw_item.call_id) == ("pay", '{"amount": 5}', "p-1")
    assert item.agent is scene.agent
    assert (item.tool_kind, item.run_id, item.risk_level) == ("function", result.run_id, 3)


@STREAMED
async def test_code_approves_where_it_may_and_is_recorded_as_code(is_streamed: bool) -> None:
    scene = a_scene(PAY, "paid")
    result = await run(scene, "go", is_streamed=is_streamed)
    state = result.to_state()
    state.approve(state.get_interruptions()[0])
    result = await run(scene, state, is_streamed=is_streamed)
    assert (result.final_output, scene.ran) == ("paid", ["pay 5"])
    logs = await scene.runner.get_execution_logs(result.run_id)
    assert [log.comment for log in logs if log.event == "approval"] == ["by code"]


async def test_code_may_not_approve_unless_it_is_switched_on() -> None:
    scene = a_scene(PAY, "paid", is_allowed=False)
    result = await run(scene, "go")
    with pytest.raises(AgentsError, match=r"AGENTS-E-APPROVAL-INVALID: .*allow_code_approval=True"):
        result.to_state().approve(result.interruptions[0])
    assert scene.ran == []


async def test_a_rejection_is_told_to_the_model_and_the_run_goes_on() -> None:
    scene = a_scene([LOOK, PAY], "as you wish", is_allowed=False)
    result = await run(scene, "go")
    state = result.to_state()
    state.reject(result.interruptions[0], rejection_message="not today")
    result = await run(scene, state)
    assert (result.final_output, scene.ran) == ("as you wish", ["look here"])
    assert "not today" in str(scene.model.calls[-1].input)


async def test_what_is_undecided_comes_back() -> None:
    scene = a_scene([PAY, ScriptedCall("pay", {"amount": 6}, "p-2")], "paid")
    result = await run(scene, "go")
    state = result.to_state()
    state.approve(result.interruptions[0])
    result = await run(scene, state)
    assert [item.raw_item.call_id for item in result.interruptions] == ["p-2"]
    assert scene.ran == []
    state = result.to_state()
    state.approve(result.interruptions[0])
    assert (await run(scene, state)).final_output == "paid"
    assert scene.ran == ["pay 5", "pay 6"]


async def test_always_approve_covers_the_tool_for_the_rest_of_the_run() -> None:
    scene = a_scene(PAY, ScriptedCall("pay", {"amount": 6}, "p-2"), "paid")
    result = await run(scene, "go")
    state = result.to_state()
    state.approve(result.interruptions[0], always_approve=True)
    assert (await run(scene, state)).final_output == "paid"
    assert scene.ran == ["pay 5", "pay 6"]


async def test_a_state_that_was_written_and_read_here_keeps_its_decisions() -> None:
    scene = a_scene(PAY, "paid")
    state = (await run(scene, "go")).to_state()
    state.approve(state.get_interruptions()[0])
    read: Any = await RunState.from_string(scene.agent, state.to_string())
    assert (await run(scene, read)).final_output == "paid"


async def test_an_approval_that_only_a_text_claims_does_not_count() -> None:
    scene = a_scene(PAY, "paid")
    state = (await run(scene, "go")).to_state()
    state.approve(state.get_interruptions()[0])
    written = state.to_json()
    written["openai_responses_mcp"]["decisions"] = "from elsewhere"
    read: Any = await RunState.from_json(scene.agent, written)
    assert [item.name for item in (await run(scene, read)).interruptions] == ["pay"]
    assert scene.ran == []


async def test_code_does_not_answer_for_a_caller_who_demands_a_human() -> None:
    scene = Scene(LOOK, "seen")
    scene.agent.extensions = Extensions(require_human_approval=True)
    configure(scene.runner, allow_code_approval=True)
    state = (await run(scene, "go")).to_state()
    state.approve(state.get_interruptions()[0])
    assert await code_of(run(scene, state)) == "AGENTS-E-APPROVAL-INVALID"
    assert scene.ran == []


async def test_a_state_of_no_run_begins_a_new_one() -> None:
    scene = a_scene("done")
    plain: Any = RunState(context=guarded.RunContextWrapper(None), original_input="go", starting_agent=scene.agent)
    assert (await run(scene, plain)).final_output == "done"


async def test_a_state_from_elsewhere_approves_nothing() -> None:
    scene = Scene(ScriptedCall("pay", {"amount": 1}, "p-1"), "done")
    configure(scene.runner, allow_code_approval=True)
    paused = (await run(scene, "go")).to_state()
    paused.approve(paused.get_interruptions()[0], always_approve=True)
    written = sdk.RunState.to_json(paused)
    foreign = await sdk.RunState.from_json(scene.agent, written)
    again = await run(scene, foreign)
    assert [item.name for item in again.interruptions] == ["pay"]
    assert scene.ran == []


async def test_a_context_may_know_calls_of_another_run() -> None:
    context: sdk.RunContextWrapper[Any] = sdk.RunContextWrapper(context=None)
    first, second = a_scene(LOOK, "seen"), Scene(PAY, "paid")
    await within(guarded.Runner.run(first.agent, "go", context=context))
    paused = await within(guarded.Runner.run(second.agent, "go", context=context))
    state = paused.to_state()
    state.approve(paused.interruptions[0])
    result = await within(guarded.Runner.run(second.agent, state))
    assert (result.final_output, second.ran) == ("paid", ["pay 5"])


async def test_a_call_of_an_inner_agent_is_decided_also_with_the_id_of_the_call_around_it() -> None:
    inner = Scene(ScriptedCall("pay", {"amount": 5}, "shared"), "paid")
    asked = inner.agent.as_tool("ask_inner", "Ask.")
    outer = a_scene(ScriptedCall("ask_inner", {"input": "go"}, "shared"), "all done")
    outer.agent.tools = [asked]
    state = (await run(outer, "go")).to_state()
    state.approve(state.get_interruptions()[0])
    assert ((await run(outer, state)).final_output, inner.ran) == ("all done", ["pay 5"])


async def test_a_session_beside_the_history_of_the_provider_is_refused_at_once() -> None:
    scene = a_scene("never said")
    state: Any = RunState(sdk.RunContextWrapper(None), "go", scene.agent, conversation_id="conversation")
    with pytest.raises(sdk.UserError, match="Session persistence"):
        guarded.Runner.run_streamed(scene.agent, state, session=sdk.SQLiteSession("one"))


async def test_a_tools_output_keeps_its_type_when_its_state_goes_on() -> None:
    output = sdk.ToolOutputText(text="made")
    seen: list[Any] = []

    @sdk.function_tool
    def make() -> Any:
        return output

    def finish(context: Any, results: Any) -> sdk.ToolsToFinalOutputResult:
        seen.append(results[0].output)
        return sdk.ToolsToFinalOutputResult(is_final_output=True, final_output="done")

    class FailingHooks(sdk.RunHooks[Any]):
        async def on_tool_end(self, context: Any, agent: Any, tool: Any, result: object) -> None:
            raise sdk.UserError("the hook failed")

    scene = a_scene(ScriptedCall("make", {}, "m-1"))
    scene.judge.on("make", ASK)
    scene.agent.tools, scene.agent.tool_use_behavior = [make], finish
    state = (await run(scene, "go")).to_state()
    state.approve(state.get_interruptions()[0])
    with pytest.raises(sdk.UserError, match="the hook failed"):
        await within(guarded.Runner.run(scene.agent, state, hooks=FailingHooks()))
    assert (await run(scene, state)).final_output == "done"
    assert seen == [output]


async def test_always_approve_covers_the_tool_of_one_server_of_the_provider() -> None:
    def asked(label: str) -> McpApprovalRequest:
        kind: Any = "mcp_approval_request"
        return McpApprovalRequest(id=f"r-{label}", arguments="{}", name="read", server_label=label, type=kind)

    scene = a_scene(asked("wiki"), asked("mail"))
    configs: list[Any] = [
        {"type": "mcp", "server_label": name, "server_url": "https://x/"} for name in ("wiki", "mail")
    ]
    scene.agent.tools = [sdk.HostedMCPTool(tool_config=config) for config in configs]
    paused = await run(scene, "go")
    state = paused.to_state()
    state.approve(paused.interruptions[0], always_approve=True)
    paused = await run(scene, state)
    assert [item.raw_item.server_label for item in paused.interruptions] == ["mail"]


async def test_a_rejected_call_whose_tool_is_gone_is_told_to_the_model() -> None:
    def edit(context: Any, text: str) -> str:
        raise AssertionError("must not run")

    call = ResponseCustomToolCall(type="custom_tool_call", name="edit", call_id="e-1", input="x")
    scene = a_scene(call, "done")
    scene.agent.tools = [sdk.CustomTool(name="edit", description="", on_invoke_tool=edit, needs_approval=True)]
    state = (await run(scene, "go")).to_state()
    state.reject(state.get_interruptions()[0], rejection_message="not now")
    scene.agent.tools = []
    assert (await run(scene, state)).final_output == "done"
    assert [item["output"] for item in scene.model.calls[-1].input if "output" in item] == ["not now"]


async def test_an_agent_used_as_a_tool_that_is_another_one_now_does_not_go_on() -> None:
    inner = Scene(PAY)
    inner.agent.name = "Inner"
    outer = a_scene(ScriptedCall("look", {"input": "go"}, "o-1"))
    outer.agent.tools = [inner.agent.as_tool("look", "Ask.")]
    state = (await run(outer, "go")).to_state()
    state.approve(state.get_interruptions()[0])
    outer.agent.tools = [outer.look]
    with pytest.raises(AgentsError, match="is another one now") as refused:
        await run(outer, state)
    assert (refused.value.code, inner.ran, outer.ran) == ("AGENTS-E-RESUME-TOKEN", [], [])


async def test_a_tool_that_a_hook_adds_is_seen_at_the_next_turn_and_passes_the_gate() -> None:
    scene = Scene(ScriptedCall("pay", {"amount": 1}, "p-1"), "done")
    seen: list[Any] = []

    class Adding(sdk.AgentHooks[Any]):
        async def on_start(self, context: Any, agent: Any) -> None:
            seen.append(agent)
            agent.tools = [scene.pay]

    agent = Agent(name="A", model=scene.model, tools=[], hooks=Adding())
    runner = create_runner(safety_agent=FakeJudge())
    result = await within(runner.run(agent, "go", RunOptions()))
    assert [request.tool_name for request in result.interruptions] == ["pay"]
    assert seen == [agent]
    assert seen[0] is agent


async def test_a_stream_is_cancelled_after_the_turn() -> None:
    model = ScriptedModel(ScriptedCall("look", {}, "l-1"), "never said")
    scene = a_scene()
    agent = Agent(name="A", model=model, tools=[scene.look])
    result = guarded.Runner.run_streamed(agent, "go")
    async for _ in result.stream_events():
        result.cancel(mode="after_turn")
    assert scene.ran == ["look around"]
    assert len(model.calls) == 1
    assert [item.type for item in result.new_items] == ["tool_call_item", "tool_call_output_item"]
    assert result.last_agent is agent
