"""Mistakes in the arguments of a run are named before anything runs."""

from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents import Agent, create_runner
from openai_responses_mcp.agents.runs.models import Extensions, RunOptions
from openai_responses_mcp.agents.testing import ScriptedModel
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import FakeJudge, collected, within
from tests.agents.scenes import LOOK, PAY, Scene


async def error_of(work: Any) -> str:
    with pytest.raises(AgentsError) as caught:
        await within(work)
    assert caught.value.code == "AGENTS-E-RUNNER-CONFIG"
    return caught.value.message


async def test_options_in_a_dict_are_refused() -> None:
    scene, options = Scene("never said"), {"extensions": Extensions(require_human_approval=True)}
    assert "RunOptions" in await error_of(scene.runner.run(scene.agent, "go", options))  # type: ignore[arg-type]
    stream = scene.runner.run_stream(scene.agent, "go", options)  # type: ignore[arg-type]
    assert "RunOptions" in await error_of(collected(stream))
    work = scene.runner.resume_run("run_x", options=options)  # type: ignore[arg-type]
    assert "RunOptions" in await error_of(work)


async def test_a_resume_takes_no_extensions() -> None:
    scene = Scene(PAY)
    run = await scene.paused()
    options = RunOptions(extensions=Extensions(policy_profile="fast"))
    assert "started with" in await error_of(scene.runner.resume_run(run.run_id, options=options))


async def test_a_run_state_as_input_names_the_way_to_resume_it() -> None:
    class RunState:
        """As the SDK's, which code written for the SDK goes on with."""

    scene = Scene()
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER") as caught:
        await within(scene.runner.run(scene.agent, RunState()))
    assert "approve_and_resume" in caught.value.message


# ---------------------------------------------------------------------------------------------------------------------
# RunOptions(stream=True)


async def test_run_with_stream_returns_the_result() -> None:
    class OnlyStreams(ScriptedModel):
        async def get_response(self, *args: Any, **options: Any) -> Any:
            raise AssertionError("asked for the whole reply at once")

    scene = Scene()
    scene.agent.model = OnlyStreams(LOOK, PAY, "all good")
    options = RunOptions(stream=True)
    paused = await within(scene.runner.run(scene.agent, "go", options))
    assert [one.tool_name for one in paused.interruptions] == ["pay"]
    approval_id = paused.interruptions[0].approval_id
    result = await within(scene.runner.approve_and_resume(paused.run_id, approval_id, options=options))
    assert (result.output_text, scene.ran) == ("all good", ["look here", "pay 5"])


# ---------------------------------------------------------------------------------------------------------------------
# Mistakes with the SDK's own objects


def look() -> str:
    """Look around."""
    return "seen"


class Looker:
    def __call__(self) -> str:
        return "seen"


@pytest.mark.parametrize("tool", [look, lambda: "seen", Looker(), "look"])
@pytest.mark.parametrize("agent_class", [Agent, sdk.Agent])
async def test_a_plain_function_among_the_tools_says_what_to_do(agent_class: Any, tool: Any) -> None:
    model = ScriptedModel("never said")
    agent = agent_class(name="A", model=model, tools=[tool])
    with pytest.raises(AgentsError) as caught:
        await within(create_runner(safety_agent=FakeJudge()).run(agent, "go"))
    assert caught.value.code == "AGENTS-E-AGENT-CAPABILITY-RESOLVE"
    assert "@tool" in caught.value.message
    assert model.calls == []


@pytest.mark.parametrize(
    "given", [{"extensions": {"require_human_approval": True}}, {"guardrails": {"input_rules": ()}}]
)
def test_an_agent_refuses_rules_of_another_type(given: dict[str, Any]) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        Agent(name="A", **given)


async def test_an_option_that_the_sdk_does_not_know_is_named() -> None:
    agent = Agent(name="A", model=ScriptedModel("never said"))
    runner = create_runner(safety_agent=FakeJudge())
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG") as caught:
        await within(runner.run(agent, "go", RunOptions(sdk={"contxt": 1})))
    assert "contxt" in caught.value.message
    assert "context" in caught.value.message
