"""Strictest wins: demands of tools, agents and runs all count, at every depth."""

import dataclasses
from typing import Any

import pytest

from openai_responses_mcp.agents import Agent, Extensions, RunOptions, create_guardrails_template, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import FakeJudge, code_of, within

RAN: list[str] = []
DENIED = "AGENTS-E-GUARDRAIL-DENIED"


@pytest.fixture(autouse=True)
def nothing_ran() -> None:
    RAN.clear()


@tool
def look(what: str = "around") -> str:
    """Look at something."""
    RAN.append(what)
    return f"saw {what}"


@tool(risk_level=3)
def pay(amount: int) -> str:
    """Pay somebody."""
    RAN.append(str(amount))
    return "paid"


@tool(require_approval=True)
def send(text: str) -> str:
    """Send something."""
    RAN.append(text)
    return "sent"


LOOK = ScriptedCall("look", {"what": "here"})


def an_agent(name: str, *turns: Any, **options: Any) -> Any:
    return Agent(name=name, model=ScriptedModel(*turns), **{"tools": [look], **options})


async def waiting(agent: Any, extensions: Extensions | None = None) -> list[str]:
    """The tools that wait for a human."""
    runner = create_runner(safety_agent=FakeJudge())
    result = await within(runner.run(agent, "go", RunOptions(extensions=extensions)))
    return [request.tool_name for request in result.interruptions]


async def code_for(agent: Any, said: str = "go") -> str:
    return await code_of(create_runner(safety_agent=FakeJudge()).run(agent, said))


# ---------------------------------------------------------------------------------------------------------------------
# Copies of a tool


@pytest.mark.parametrize(
    ("made", "call"), [(pay, ScriptedCall("pay", {"amount": 5})), (send, ScriptedCall("send", {"text": "x"}))]
)
async def test_a_copy_of_a_tool_keeps_what_was_declared(made: Any, call: ScriptedCall) -> None:
    copies = dataclasses.replace(made), dataclasses.replace(made, description="Another.", needs_approval=False)
    for copied in copies:
        assert await waiting(an_agent("A", call, tools=[copied])) == [made.name]
    assert RAN == []


# ---------------------------------------------------------------------------------------------------------------------
# What the agent demands, and what the run says


@pytest.mark.parametrize("given", [None, Extensions(max_turns=5), Extensions(policy_profile="fast")])
async def test_an_agents_demand_for_a_human_holds_whatever_else_the_run_says(given: Extensions | None) -> None:
    agent = an_agent("A", LOOK, extensions=Extensions(require_human_approval=True))
    assert await waiting(agent, given) == ["look"]


@pytest.mark.parametrize(
    ("agents_own", "given", "counts"),
    [
        ("strict", "fast", "strict"),
        (None, "fast", "fast"),
        (None, None, "balanced"),
    ],
)
async def test_of_two_profiles_the_stricter_counts(agents_own: Any, given: Any, counts: str) -> None:
    agent = an_agent("A", "done", extensions=Extensions(policy_profile=agents_own))
    options = RunOptions(extensions=Extensions(policy_profile=given))
    result = await within(create_runner(safety_agent=FakeJudge()).run(agent, "go", options))
    assert result.extensions["policy_profile"] == counts


async def test_an_agents_limit_of_turns_holds_unless_the_run_has_one() -> None:
    for given, code in ((Extensions(), "AGENTS-E-RUNNER"), (Extensions(max_turns=3), "")):
        agent = an_agent("A", LOOK, "done", extensions=Extensions(max_turns=1))
        runner = create_runner(safety_agent=FakeJudge())
        assert await code_of(runner.run(agent, "go", RunOptions(extensions=given))) == code


# ---------------------------------------------------------------------------------------------------------------------
# Handoffs


async def test_a_demand_of_the_agent_that_takes_over_holds_for_its_calls() -> None:
    second = an_agent("B", LOOK, extensions=Extensions(require_human_approval=True))
    first = an_agent("A", ScriptedCall("transfer_to_b"), handoffs=[second])
    assert await waiting(first) == ["look"]
    assert RAN == []


async def test_the_profile_of_the_agent_that_takes_over_holds_for_its_calls_where_it_is_stricter() -> None:
    call = ScriptedCall("pay", {"amount": 5})
    for profile, asked in (("fast", []), ("balanced", ["pay"])):
        second = an_agent("B", call, "done", tools=[pay], extensions=Extensions(policy_profile=profile))  # type: ignore[arg-type]
        first = an_agent("A", ScriptedCall("transfer_to_b"), handoffs=[second])
        assert await waiting(first, Extensions(policy_profile="fast")) == asked


async def test_the_output_rules_of_the_last_agent_hold_as_well() -> None:
    rules = create_guardrails_template(output_rules=["launch code"])
    second = an_agent("B", "the launch code is 1234", guardrails=rules)
    assert await code_for(an_agent("A", ScriptedCall("transfer_to_b"), handoffs=[second])) == DENIED


async def test_the_input_rules_of_the_agent_that_takes_over_hold_for_what_the_user_said() -> None:
    second = an_agent("B", "never said", guardrails=create_guardrails_template(input_rules=["爆弾"]))
    first = an_agent("A", ScriptedCall("transfer_to_b"), handoffs=[second])
    assert await code_for(first, "爆弾の作り方") == DENIED
    assert second.model.calls == []


# ---------------------------------------------------------------------------------------------------------------------
# Agents inside agents


def with_inner(inner: Any, said: str = "do it") -> Any:
    inside = inner.as_tool("ask_inner", "Ask the inner one.")
    return an_agent("Outer", ScriptedCall("ask_inner", {"input": said}), "done", tools=[inside])


@pytest.mark.parametrize(
    ("rules", "said", "answered"),
    [
        ({"input_rules": ["爆弾"]}, "a 爆弾 please", "never said"),
        ({"output_rules": ["launch code"]}, "do it", "the launch code is 1234"),
        ({"tool_rules": ["here"]}, "do it", LOOK),
    ],
)
async def test_the_rules_of_an_agent_used_as_a_tool_hold(rules: Any, said: str, answered: Any) -> None:
    inner = an_agent("Inner", answered, guardrails=create_guardrails_template(**rules))
    outer = with_inner(inner, said)
    assert await code_for(outer) == DENIED
    assert RAN == []
    assert len(outer.model.calls) == 1
    assert len(inner.model.calls) == (0 if "input_rules" in rules else 1)


async def test_the_rules_of_an_inner_agent_hold_when_it_hands_over() -> None:
    second = an_agent("B", "the launch code is 1234")
    rules = create_guardrails_template(output_rules=["launch code"])
    inner = an_agent("Inner", ScriptedCall("transfer_to_b"), handoffs=[second], guardrails=rules)
    assert await code_for(with_inner(inner)) == DENIED


async def test_a_demand_of_an_agent_used_as_a_tool_holds_for_its_calls() -> None:
    inner = an_agent("Inner", LOOK, extensions=Extensions(require_human_approval=True))
    assert await waiting(with_inner(inner)) == ["look"]
    assert RAN == []
