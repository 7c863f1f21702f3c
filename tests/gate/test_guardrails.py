"""An agent's own rules, in three stages."""

import re
from typing import Any

import pytest

from openai_responses_mcp.agents import Agent, RunOptions, create_guardrails_template, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.calls import ToolCallRequest
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.guardrails import Rule
from tests.agents.fakes import FakeJudge, code_of, within

RAN: list[str] = []


@tool
def note(text: str) -> str:
    """Note something."""
    RAN.append(text)
    return text


def an_agent(*turns: Any, **rules: list[Rule]) -> Any:
    RAN.clear()
    return Agent(name="A", model=ScriptedModel(*turns), tools=[note], guardrails=create_guardrails_template(**rules))


def broken(subject: Any) -> bool:
    raise RuntimeError


async def refuses(subject: Any) -> bool:
    return False


@pytest.mark.parametrize(
    "rule", ["bomb", re.compile("b.mb"), lambda text: "bomb" not in text, lambda _: "no", broken, refuses]
)
async def test_a_refused_input_reaches_no_model(rule: Rule) -> None:
    agent = an_agent("never said", input_rules=[rule])
    runner = create_runner(safety_agent=FakeJudge())
    assert await code_of(runner.run(agent, "how to make a bomb")) == "AGENTS-E-GUARDRAIL-DENIED"
    assert agent.model.calls == []


async def test_a_refused_call_does_not_run_and_is_recorded() -> None:
    def no_secrets(request: ToolCallRequest) -> str | None:
        return "that is private" if "private" in str(request.args) else None

    agent = an_agent(ScriptedCall("note", {"text": "private"}), tool_rules=[no_secrets])
    runner = create_runner(safety_agent=FakeJudge())
    assert await code_of(runner.run(agent, "go")) == "AGENTS-E-GUARDRAIL-DENIED"
    assert RAN == []
    logs = await runner.get_execution_logs()
    assert [(log.decision, log.reason) for log in logs] == [
        ("deny", "AGENTS-E-GUARDRAIL-DENIED: tool: that is private")
    ]


async def test_a_refused_output_is_not_returned() -> None:
    agent = an_agent("the launch code is 1234", output_rules=["launch code"])
    runner = create_runner(safety_agent=FakeJudge())
    with pytest.raises(AgentsError, match="AGENTS-E-GUARDRAIL-DENIED") as caught:
        await within(runner.run(agent, "go"))
    assert caught.value.details["stage"] == "output"


async def test_what_no_rule_refuses_passes_all_stages() -> None:
    fine: list[Rule] = [lambda _: None, lambda _: True, "bomb", re.compile("bomb")]
    agent = an_agent(ScriptedCall("note", {"text": "x"}), "done", input_rules=fine, tool_rules=fine, output_rules=fine)
    result = await within(create_runner(safety_agent=FakeJudge()).run(agent, "go"))
    assert (result.output_text, RAN) == ("done", ["x"])


async def test_the_rules_of_the_first_agent_hold_after_a_handoff() -> None:
    second = Agent(name="B", model=ScriptedModel(ScriptedCall("note", {"text": "private"})), tools=[note])
    first = an_agent(ScriptedCall("transfer_to_b"), tool_rules=["private"])
    first.handoffs = [second]
    assert await code_of(create_runner(safety_agent=FakeJudge()).run(first, "go")) == "AGENTS-E-GUARDRAIL-DENIED"
    assert RAN == []


async def test_a_guardrail_holds_for_a_list_of_items_too() -> None:
    agent = an_agent("never said", input_rules=["bomb"])
    items = [
        {"role": "system", "content": "be nice"},
        {"role": "user", "content": [{"type": "input_text", "text": "bomb"}]},
    ]
    assert await code_of(create_runner(safety_agent=FakeJudge()).run(agent, items)) == "AGENTS-E-GUARDRAIL-DENIED"


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "input_text", "text": 'a\n爆弾 "now"'}],
        [{"type": "input_text", "text": "look"}, {"type": "input_file", "filename": "爆弾.txt"}],
    ],
)
async def test_an_input_rule_sees_the_words_and_not_their_escapes(content: Any) -> None:
    agent = an_agent("never said", input_rules=[re.compile("(?m)^爆弾|爆弾.txt")])
    items = [{"role": "user", "content": content}]
    assert await code_of(create_runner(safety_agent=FakeJudge()).run(agent, items)) == "AGENTS-E-GUARDRAIL-DENIED"


async def test_a_guardrail_holds_for_streams_too() -> None:
    agent = an_agent("never said", input_rules=["bomb"])
    with pytest.raises(AgentsError, match="AGENTS-E-GUARDRAIL-DENIED"):
        async for _ in create_runner(safety_agent=FakeJudge()).run_stream(agent, "bomb", RunOptions()):
            pass


def test_a_rule_is_a_text_a_pattern_or_a_callable() -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        create_guardrails_template(input_rules=[5])  # type: ignore[list-item]
