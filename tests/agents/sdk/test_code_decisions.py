"""The SDK's way to decide on a paused run: its items and its state, over this library's approvals."""

from collections.abc import Iterator
from typing import Any

import agents as sdk
import pytest
from openai.types.responses.response_output_item import McpApprovalRequest

from openai_responses_mcp import agents as guarded
from openai_responses_mcp.agents import Agent, AgentsError, Extensions, RunOptions, RunState, configure, create_runner
from openai_responses_mcp.agents.testing import ScriptedCall
from tests.agents.fakes import FakeJudge, code_of, within
from tests.agents.scenes import LOOK, PAY, Scene


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
    configure(scene.runner, allow_code_approval=True)
    state = result.to_state()
    state.approve(result.interruptions[0])
    configure(scene.runner)
    with pytest.raises(AgentsError, match=r"AGENTS-E-APPROVAL-INVALID: .*allow_code_approval=True"):
        await run(scene, state)
    assert scene.ran == []


@pytest.mark.parametrize("is_read_back", [False, True])
async def test_rejecting_all_that_waits_refuses_only_what_needs_a_human_and_the_run_goes_on(is_read_back: bool) -> None:
    scene = a_scene([LOOK, PAY], "as you wish", is_allowed=False)
    state = (await run(scene, "go")).to_state()
    state = await RunState.from_string(scene.agent, state.to_string()) if is_read_back else state
    for item in state.get_interruptions():
        state.reject(item, rejection_message="not today")
    result = await run(scene, state)
    assert (result.final_output, scene.ran) == ("as you wish", ["look here"])
    assert "not today" in str(scene.model.calls[-1].input)


async def test_undecided_calls_stay_interruptions() -> None:
    scene = a_scene([PAY, ScriptedCall("pay", {"amount": 6}, "p-2")], "paid")
    result = await run(scene, "go")
    state = result.to_state()
    state.approve(result.interruptions[0])
    result = await run(scene, state)
    assert [item.raw_item.call_id for item in result.interruptions] == ["p-2"]
    assert [item.get("call_id") for item in result.to_input_list()] == [None, "p-1", "p-2"]
    assert (len(result.raw_responses), result.current_turn, scene.ran) == (1, 1, [])
    state = result.to_state()
    state.approve(result.interruptions[0])
    assert (await run(scene, state)).final_output == "paid"
    assert scene.ran == ["pay 5", "pay 6"]


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
