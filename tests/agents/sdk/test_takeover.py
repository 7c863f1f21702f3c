"""Agents that are taken over: handoffs, runs inside runs, settings of the SDK, and replayed replies."""

from typing import Any

import agents as sdk
import pytest
from pydantic import BaseModel

from openai_responses_mcp.agents import Agent, Extensions, ResumeOptions, RunOptions, create_runner
from openai_responses_mcp.agents.mcp.guarded_tools import guarded_mcp_tools
from openai_responses_mcp.agents.sdk.engine import RepeatedModel
from openai_responses_mcp.agents.sdk.takeover import Takeover
from openai_responses_mcp.agents.sdk.turns import TurnHooks
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fake_stores import FakeExecutionLogStore
from tests.agents.fakes import ASK, FakeJudge, code_of, within
from tests.agents.runs.ledgers import ledger_on
from tests.agents.scenes import Scene

TRANSFER = ScriptedCall("transfer_to_second")


async def test_a_handoff_made_by_hand_leads_to_a_guarded_agent() -> None:
    target = Agent(name="Target", model=ScriptedModel("target here"))

    async def choose(context: Any, arguments: str) -> Any:
        return target

    by_hand = sdk.Handoff[Any, Any](
        tool_name="go_there",
        tool_description="Go.",
        input_json_schema={},
        on_invoke_handoff=choose,
        agent_name="Somewhere",
    )
    agent = Agent(name="First", model=ScriptedModel(ScriptedCall("go_there")), handoffs=[by_hand])
    judge = FakeJudge()
    result = await within(create_runner(safety_agent=judge).run(agent, "go"))
    assert (result.output_text, result.last_agent) == ("target here", target)
    assert [request.tool_name for request in judge.requests] == ["Somewhere"]


def first_of_two(second: ScriptedModel, *turns: Any, **options: Any) -> Scene:
    """A scene whose agent hands over to another one, which a human must allow."""
    scene = Scene(*turns, **options)
    scene.agent.handoffs = [sdk.Agent[Any](name="Second", model=second)]
    scene.judge.on("Second", ASK)
    return scene


async def test_a_model_for_all_agents_still_speaks_after_a_handoff_was_approved() -> None:
    scene = first_of_two(ScriptedModel())
    model = ScriptedModel(TRANSFER, "second here")
    options = RunOptions(sdk={"run_config": sdk.RunConfig(model=model, tracing_disabled=True)})
    paused = await within(scene.runner.run(scene.agent, "go", options))
    result = await within(scene.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id))
    assert result.output_text == "second here"


async def test_an_agent_that_is_not_the_one_of_the_run_cannot_resume_its_handoff() -> None:
    scene = first_of_two(ScriptedModel(), TRANSFER)
    paused = await scene.paused()
    stranger = Agent(name="Stranger", model=ScriptedModel())
    work = scene.runner.approve_and_resume(paused.run_id, paused.interruptions[0].approval_id, agent=stranger)
    assert await code_of(work) == "AGENTS-E-RUNNER"


async def test_a_human_can_say_something_to_the_agent_that_takes_over() -> None:
    heard = ScriptedModel("fine")
    scene = first_of_two(heard, TRANSFER)
    _, token = await scene.decided()
    assert (await scene.go(Extensions(resume=ResumeOptions(token.token, "be kind")))).output_text == "fine"
    assert "be kind" in str(heard.calls[0].input)


class Why(BaseModel):
    reason: str


@pytest.mark.parametrize("stream", [False, True])
async def test_a_second_handoff_of_a_turn_is_ignored(stream: bool) -> None:
    """The SDK makes the first of them. The other one must not be taken for one that comes later."""

    def asked(number: int) -> ScriptedCall:
        return ScriptedCall("transfer_to_second", {"reason": str(number)}, f"h-{number}")

    second = Agent(name="Second", model=ScriptedModel(ScriptedCall("transfer_to_first", {}, "back"), "all done"))
    there = sdk.handoff(second, input_type=Why, on_handoff=lambda context, why: None)
    first = Agent(name="First", model=ScriptedModel([asked(1), asked(2)], asked(3)), handoffs=[there])
    second.handoffs = [first]
    runner = create_runner(safety_agent=FakeJudge())
    result = await within(runner.run(first, "go", RunOptions(stream=stream)))
    assert result.output_text == "all done"
    started = [log.tool_call_id for log in await runner.get_execution_logs() if log.event == "started"]
    assert started == ["h-1", "back", "h-3"]


async def test_a_replayed_reply_is_given_once_and_then_the_model_is_asked() -> None:
    rest = ScriptedModel("from the model", "streamed")
    repeated = RepeatedModel(sdk.ModelResponse(output=[], usage=sdk.Usage(), response_id="before"), lambda: rest)
    assert (await repeated.get_response(None, "go", None, [])).response_id == "before"
    assert "from the model" in str((await repeated.get_response(None, "go", None, [])).output)
    assert len([event async for event in repeated.stream_response(None, "go", None, [])]) == 2


async def test_after_a_refusal_no_model_is_asked_any_more() -> None:
    ledger = ledger_on(FakeExecutionLogStore(), FakeJudge())
    ledger.refuse(AgentsError("AGENTS-E-GATE-DENIED", "no"))
    hooks = TurnHooks(Takeover(ledger, guarded_mcp_tools), None)
    with pytest.raises(AgentsError, match="AGENTS-E-GATE-DENIED"):
        await hooks.on_llm_start(sdk.RunContextWrapper(context=None), sdk.Agent(name="A"), None, [])
