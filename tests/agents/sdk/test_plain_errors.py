"""Mistakes that people make with the SDK's own objects, and the errors that they get."""

from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents import Agent, RunOptions, create_runner
from openai_responses_mcp.agents.testing import ScriptedModel
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import FakeJudge, within


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
