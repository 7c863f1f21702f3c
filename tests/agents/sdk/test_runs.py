"""Runs on the SDK's engine: what only the SDK can show. Everything else is in the contract of the engine."""

import asyncio
from typing import Any

import agents as sdk
import pytest
from pydantic import BaseModel

from openai_responses_mcp.agents import (
    Agent,
    AgentsError,
    Extensions,
    RequestedToolCall,
    ResumeOptions,
    RunOptions,
    create_guardrails_template,
    create_runner,
)
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import FakeJudge, within
from tests.agents.scenes import LOOK, PAY, Scene


async def test_a_result_is_also_the_sdks() -> None:
    scene = Scene(LOOK, "all good")
    result = await scene.go()
    assert result.final_output == "all good"
    assert [type(item).__name__ for item in result.new_items] == [
        "ToolCallItem",
        "ToolCallOutputItem",
        "MessageOutputItem",
    ]
    assert result.to_input_list() == result.messages
    assert result.final_output_as(str) == "all good"
    assert result.last_agent is scene.agent
    assert result.new_items[0].agent is scene.agent
    assert ": 1 call>" in repr(result)
    with pytest.raises(AttributeError):
        _ = result.no_such_thing


def spender(ran: list[str]) -> tuple[ScriptedModel, sdk.Agent[Any]]:
    """An agent whose tool is there for some callers only, and asks for approval above a limit of the caller's."""

    async def above_the_limit(context: Any, args: dict[str, Any], call_id: str) -> bool:
        return bool(args["amount"] > context.context["limit"])

    def for_members(context: Any, agent: object) -> bool:
        return bool(context.context["is_member"])

    @sdk.function_tool(needs_approval=above_the_limit, is_enabled=for_members)
    def spend(amount: int) -> str:
        """Spend something."""
        ran.append(f"spend {amount}")
        return "spent"

    model = ScriptedModel()
    return model, Agent(name="A", model=model, tools=[spend])


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_sees_the_callers_context_also_after_a_pause(stream: bool) -> None:
    ran: list[str] = []
    model, agent = spender(ran)
    model.enqueue(ScriptedCall("spend", {"amount": 5}), "small", ScriptedCall("spend", {"amount": 50}), "large")
    runner = create_runner(safety_agent=FakeJudge())
    options = RunOptions(stream=stream, sdk={"context": {"limit": 10, "is_member": True}})
    assert (await within(runner.run(agent, "go", options))).output_text == "small"
    paused = await within(runner.run(agent, "go", options))
    assert [request.reason for request in paused.interruptions] == ["the tool asks for approval"]
    waiting = paused.interruptions[0].approval_id
    result = await within(runner.approve_and_resume(paused.run_id, waiting, options=RunOptions(stream=stream)))
    assert (result.output_text, ran) == ("large", ["spend 5", "spend 50"])


async def test_the_callers_context_counts_for_arguments_that_a_human_changed() -> None:
    ran: list[str] = []
    model, agent = spender(ran)
    model.enqueue(ScriptedCall("spend", {"amount": 50}), "done")
    runner = create_runner(safety_agent=FakeJudge())
    context = {"limit": 10, "is_member": True}
    paused = await within(runner.run(agent, "go", RunOptions(sdk={"context": context})))
    token = await runner.submit_approval(paused.interruptions[0].approval_id, "approve", arguments={"amount": 7})
    assert (await within(runner.resume_run(paused.run_id, token.token))).output_text == "done"
    assert ran == ["spend 7"]


async def test_calls_that_the_caller_asks_for_find_tools_by_the_callers_context() -> None:
    ran: list[str] = []
    _, agent = spender(ran)
    runner = create_runner(safety_agent=FakeJudge())
    calls = Extensions(tool_calls=(RequestedToolCall("spend", {"amount": 5}),))
    member, guest = ({"context": {"limit": 10, "is_member": is_member}} for is_member in (True, False))
    await within(runner.run(agent, "", RunOptions(extensions=calls, sdk=member)))
    assert ran == ["spend 5"]
    with pytest.raises(AgentsError, match="AGENTS-E-AGENT-CAPABILITY-RESOLVE"):
        await within(runner.run(agent, "", RunOptions(extensions=calls, sdk=guest)))


async def test_a_failing_is_enabled_is_a_named_error() -> None:
    _, agent = spender([])
    calls = Extensions(tool_calls=(RequestedToolCall("spend", {"amount": 5}),))
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER: TypeError"):
        await within(create_runner(safety_agent=FakeJudge()).run(agent, "", RunOptions(extensions=calls)))


async def test_arguments_that_are_no_json_are_judged_and_then_left_to_the_sdk() -> None:
    scene = Scene(ScriptedCall("look", "{not json"), "oh well")
    result = await scene.go()
    assert result.output_text == "oh well"
    assert scene.judge.requests[0].args == {"<unreadable>": "{not json"}
    assert scene.ran == []


@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(r'{"what": "here", "what": "rm\u0020-rf"}', id="a key twice"),
        pytest.param(r'{"what": "rm\u0020-rf", "more": ' + "[" * 100 + "]" * 100 + "}", id="many levels"),
    ],
)
async def test_arguments_that_could_be_read_in_two_ways_are_refused(arguments: str) -> None:
    scene = Scene(ScriptedCall("look", arguments), "done")
    with pytest.raises(AgentsError, match=r"AGENTS-E-GATE-DENIED: .* in more than one way"):
        await scene.go()
    assert (scene.ran, scene.judge.requests) == ([], [])
    assert await scene.events() == [("decision", "deny")]


async def test_rules_see_the_texts_of_arguments_that_are_no_object() -> None:
    scene = Scene(ScriptedCall("look", r'["rm\u0020-rf"]'), "done")
    scene.agent.guardrails = create_guardrails_template(tool_rules=["rm -rf"])
    with pytest.raises(AgentsError, match="AGENTS-E-GUARDRAIL-DENIED"):
        await scene.go()


async def test_a_structured_output_is_shown_as_text() -> None:
    class Total(BaseModel):
        total: int

    agent = Agent(name="A", model=ScriptedModel('{"total": 5}'), output_type=Total)
    result = await within(create_runner(safety_agent=FakeJudge()).run(agent, "go"))
    assert result.final_output == Total(total=5)
    assert result.output_text == '{"total":5}'


async def test_many_runs_of_one_agent_at_once_do_not_see_each_other() -> None:
    class Echo(ScriptedModel):
        async def get_response(self, system_instructions: Any, input: Any, *args: Any, **options: Any) -> Any:
            asked = input[0]["content"]
            done = any(item.get("type") == "function_call_output" for item in input if isinstance(item, dict))
            turn = f"done {asked}" if done else ScriptedCall("look", {"what": asked}, f"call-{asked}")
            return await ScriptedModel(turn).get_response(system_instructions, input, *args, **options)

    scene = Scene()
    agent = Agent(name="Echo", model=Echo(), tools=[scene.look])
    results = await within(asyncio.gather(*(scene.runner.run(agent, str(number)) for number in range(20))))
    assert [result.output_text for result in results] == [f"done {number}" for number in range(20)]
    assert [result.tool_calls[0].output for result in results] == [f"saw {number}" for number in range(20)]
    assert (await scene.runner.verify_execution_logs()).is_intact


async def test_a_human_response_is_kept_if_no_model_is_asked_again() -> None:
    scene = Scene(PAY)
    scene.agent.tool_use_behavior = "stop_on_first_tool"
    paused = await scene.paused()
    token = await scene.runner.submit_approval(paused.interruptions[0].approval_id, "approve")
    result = await scene.go(Extensions(resume=ResumeOptions(token.token, "fine")))
    assert result.output_text == "paid 5"
