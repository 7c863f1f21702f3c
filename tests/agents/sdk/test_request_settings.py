"""Settings of a request that could bring in tools of the provider's, past the agent's own list of tools."""

from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents import Agent, PolicyProfile, RunOptions, create_runner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import FakeJudge, code_of, within

REFUSED = "AGENTS-E-AGENT-CAPABILITY-RESOLVE"
TOOLS = [{"type": "web_search"}]


def with_tools() -> list[sdk.ModelSettings]:
    return [
        sdk.ModelSettings(extra_body={"tools": TOOLS}),
        sdk.ModelSettings(extra_body={"Tools ": TOOLS}),
        sdk.ModelSettings(extra_args={"tools": TOOLS}),
        sdk.ModelSettings(extra_args={"extra_body": {"tools": TOOLS}}),
        sdk.ModelSettings(extra_query={"tools": "web_search"}),
        sdk.ModelSettings(extra_body={"mcp_servers": [{"url": "https://example.com"}]}),
        sdk.ModelSettings(extra_body=[("tools", TOOLS)]),
    ]


async def test_tools_in_the_settings_of_an_agent_are_refused_before_the_model_is_asked() -> None:
    for settings in with_tools():
        model = ScriptedModel("never said")
        agent = Agent(name="A", model=model, model_settings=settings)
        assert await code_of(create_runner(safety_agent=FakeJudge()).run(agent, "go")) == REFUSED
        assert model.calls == []


async def test_tools_in_the_settings_of_a_run_are_refused_before_the_model_is_asked() -> None:
    model = ScriptedModel("never said")
    config = sdk.RunConfig(model_settings=with_tools()[0], tracing_disabled=True)
    agent, runner = Agent(name="A", model=model), create_runner(safety_agent=FakeJudge())
    assert await code_of(runner.run(agent, "go", RunOptions(sdk={"run_config": config}))) == REFUSED
    assert model.calls == []


async def a_prompt(data: Any) -> sdk.Prompt:
    return {"id": "pmpt_1"}


@pytest.mark.parametrize("prompt", [{"id": "pmpt_1"}, a_prompt])
async def test_a_stored_prompt_is_refused_before_the_model_is_asked(prompt: Any) -> None:
    model = ScriptedModel("never said")
    agent = Agent(name="A", model=model, prompt=prompt)
    assert await code_of(create_runner(safety_agent=FakeJudge()).run(agent, "go")) == REFUSED
    assert model.calls == []


async def test_agents_that_are_reached_later_are_looked_at_too() -> None:
    model = ScriptedModel("never said")
    settings = sdk.ModelSettings(extra_body={"tools": TOOLS})
    second = sdk.Agent[Any](name="Second", model=model, model_settings=settings)
    first = Agent(name="First", model=ScriptedModel(ScriptedCall("transfer_to_second")), handoffs=[second])
    assert await code_of(create_runner(safety_agent=FakeJudge()).run(first, "go")) == REFUSED
    outer = Agent(
        name="Outer", model=ScriptedModel(ScriptedCall("ask", {"input": "x"})), tools=[second.as_tool("ask", "Ask.")]
    )
    assert await code_of(create_runner(safety_agent=FakeJudge()).run(outer, "go")) == REFUSED
    assert model.calls == []


async def test_a_run_on_the_side_is_looked_at_too() -> None:
    model = ScriptedModel("never said")
    inner = sdk.Agent[Any](name="Inner", model=model)
    config = sdk.RunConfig(model_settings=sdk.ModelSettings(extra_body={"tools": TOOLS}), tracing_disabled=True)

    @sdk.function_tool
    async def sneak() -> str:
        """Start a run on the side."""
        return str((await sdk.Runner.run(inner, "do it", run_config=config)).final_output)

    agent = Agent(name="Outer", model=ScriptedModel(ScriptedCall("sneak"), "never said"), tools=[sneak])
    assert await code_of(create_runner(safety_agent=FakeJudge()).run(agent, "go")) == REFUSED
    assert model.calls == []


async def test_settings_that_only_steer_the_model_pass_without_a_word() -> None:
    settings = sdk.ModelSettings(extra_body={"top_k": 40, "seed": 1}, extra_args={"service_tier": "flex"})
    runner = create_runner(safety_agent=FakeJudge())
    agent = Agent(name="A", model=ScriptedModel("done"), model_settings=settings)
    assert (await within(runner.run(agent, "go"))).output_text == "done"
    assert await runner.get_execution_logs() == []


async def test_an_unknown_setting_goes_by_scope_and_is_recorded() -> None:
    settings = sdk.ModelSettings(extra_body={"turbo_mode": True})
    runner = create_runner(safety_agent=FakeJudge())
    agent = Agent(name="A", model=ScriptedModel("done", "never said"), model_settings=settings)
    assert (await within(runner.run(agent, "go"))).output_text == "done"
    assert [(log.tool_name, log.decision) for log in await runner.get_execution_logs()] == [
        ("request/turbo_mode", "allow")
    ]
    await runner.set_policy_profile(PolicyProfile("balanced", 2, 5, ("function:add",)))
    assert await code_of(runner.run(agent, "go")) == "AGENTS-E-GATE-DENIED"
