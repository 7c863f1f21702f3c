"""An agent's own rules, in three stages: by themselves, and around a run."""

import asyncio
import re
from typing import Any

import pytest

from openai_responses_mcp.agents import Agent, RunOptions, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.calls import ToolCallRequest
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.guardrails import (
    NO_GUARDRAILS,
    AgentGuardrails,
    Rule,
    create_guardrails_template,
    guardrails_of,
)
from tests.agents.fakes import FakeJudge, code_of, within

DENIED = "AGENTS-E-GUARDRAIL-DENIED"


def a_call(**args: Any) -> ToolCallRequest:
    return ToolCallRequest("note", "function", args)


async def refusal_of(rule: Rule, **args: Any) -> str:
    try:
        await within(create_guardrails_template(tool_rules=[rule]).check_call(a_call(**args)))
    except AgentsError as exc:
        return exc.message
    return ""


async def test_rules_see_the_texts_themselves() -> None:
    cases: list[tuple[Rule, str]] = [
        ('say "hi"', 'say "hi" to them'),
        ("rm\n-rf", "rm\n-rf /"),
        (re.compile("(?m)^second$"), "first\nsecond"),
    ]
    for rule, text in cases:
        for args in ({text: 1}, {"x": [{"y": {"z": (text,)}}]}):
            assert await refusal_of(rule, **args)


async def test_rules_see_what_stands_in_several_places_too() -> None:
    cases: list[tuple[Rule, dict[str, Any]]] = [
        ("rm -rf", {"argv": ["rm", "-rf", "/"]}),
        (re.compile("curl.*password"), {"a": "curl", "b": "the password"}),
        ('"名":"値"', {"名": "値"}),
        ('note {"a":1,"b":2}', {"b": 2, "a": 1}),
        (re.compile("^note$"), {}),
        ("note x rm", {"x": "rm"}),
    ]
    for rule, args in cases:
        assert await refusal_of(rule, **args)


async def test_a_call_that_breaks_no_rule_passes() -> None:
    for rule in ("bomb", re.compile("bomb"), lambda _: None, lambda _: True):
        assert await refusal_of(rule, x="a\nb", y=[1, None, {"z": "日本"}]) == ""


async def _refuses(_: Any) -> str:
    return "because"


def _breaks(_: Any) -> None:
    raise KeyError("my secret")


async def _gives_up(_: Any) -> None:
    raise asyncio.CancelledError


def _leaves(_: Any) -> None:
    raise SystemExit


async def test_a_refusal_says_why() -> None:
    cases: list[tuple[Rule, str]] = [
        ("x", "tool: a text that must not occur"),
        (re.compile("x"), "tool: a pattern that must not match"),
        (lambda _: "not now", "tool: not now"),
        (lambda _: False, "tool: a rule refused it"),
        (lambda _: 0, "tool: a rule refused it"),
        (_refuses, "tool: because"),
        (_breaks, "tool: the rule failed with KeyError"),
        (_gives_up, "tool: the rule failed with CancelledError"),
        (_leaves, "tool: the rule failed with SystemExit"),
    ]
    for rule, message in cases:
        assert await refusal_of(rule, x="x") == message


async def test_a_run_that_is_cancelled_while_a_rule_thinks_is_cancelled() -> None:
    asked = asyncio.Event()

    async def thinks(_: Any) -> None:
        asked.set()
        await asyncio.Event().wait()

    task = asyncio.ensure_future(create_guardrails_template(input_rules=[thinks]).check_input("x"))
    await within(asked.wait())
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await within(task)


async def test_each_stage_has_its_own_rules() -> None:
    rules = create_guardrails_template(input_rules=["in"], output_rules=["out"], tool_rules=["call"])
    checks: dict[str, Any] = {
        "in": rules.check_input,
        "out": rules.check_output,
        "call": lambda text: rules.check_call(a_call(x=text)),
    }
    for text, check in checks.items():
        assert [one for one in checks if await code_of(check(one)) == DENIED] == [text]
        with pytest.raises(AgentsError) as caught:
            await check(text)
        stage = {"in": "input", "out": "output", "call": "tool"}[text]
        assert caught.value.details == {"stage": stage}
        assert caught.value.message.startswith(f"{stage}: ")


async def test_output_with_a_structure_is_read_as_its_texts_too() -> None:
    rules = create_guardrails_template(output_rules=['say "hi"', re.compile("^launch")])
    assert await code_of(rules.check_output('{"said": "say \\"hi\\""}')) == DENIED
    assert await code_of(rules.check_output('["x", "launch code"]')) == DENIED
    await rules.check_output('{"half of it": ')
    await rules.check_output("the launch")


async def test_a_callable_is_given_the_call_itself_or_the_text() -> None:
    seen: list[Any] = []
    rules = create_guardrails_template([seen.append], [seen.append], [seen.append])
    await rules.check_input("in")
    await rules.check_output("{}")
    await rules.check_call(a_call(x=1))
    assert seen == ["in", "{}", a_call(x=1)]


def test_joined_rules_keep_their_stages_and_their_order() -> None:
    first, second = AgentGuardrails(("i",), ("o",), ("t",)), AgentGuardrails(("j",), ("p",), ("u",))
    assert first.joined_by(second) == AgentGuardrails(("i", "j"), ("o", "p"), ("t", "u"))


@pytest.mark.parametrize("stage", ["input_rules", "output_rules", "tool_rules"])
def test_a_rule_of_another_kind_is_refused_at_every_stage(stage: str) -> None:
    for rules in (["fine", 5], "fine"):
        with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
            create_guardrails_template(**{stage: rules})  # type: ignore[arg-type]


def test_other_objects_do_not_count_as_guardrails() -> None:
    class Agent:
        guardrails: Any = create_guardrails_template(["x"])

    agent = Agent()
    assert guardrails_of(agent).input_rules == ("x",)
    agent.guardrails = ["x"]
    assert guardrails_of(agent) is NO_GUARDRAILS
    assert guardrails_of(None) is NO_GUARDRAILS


# ---------------------------------------------------------------------------------------------------------------------
# Around a run

RAN: list[str] = []


@tool
def note(text: str) -> str:
    """Note something."""
    RAN.append(text)
    return text


def an_agent(*turns: Any, **rules: list[Rule]) -> Any:
    RAN.clear()
    return Agent(name="A", model=ScriptedModel(*turns), tools=[note], guardrails=create_guardrails_template(**rules))


async def test_a_refused_input_reaches_no_model() -> None:
    agent = an_agent("never said", input_rules=["bomb"])
    runner = create_runner(safety_agent=FakeJudge())
    assert await code_of(runner.run(agent, "how to make a bomb")) == DENIED
    assert agent.model.calls == []


async def test_a_refused_call_does_not_run_and_is_recorded() -> None:
    def no_secrets(request: ToolCallRequest) -> str | None:
        return "that is private" if "private" in str(request.args) else None

    agent = an_agent(ScriptedCall("note", {"text": "private"}), tool_rules=[no_secrets])
    runner = create_runner(safety_agent=FakeJudge())
    assert await code_of(runner.run(agent, "go")) == DENIED
    assert RAN == []
    logs = await runner.get_execution_logs()
    assert [(log.decision, log.reason) for log in logs] == [
        ("deny", "AGENTS-E-GUARDRAIL-DENIED: tool: that is private")
    ]


async def test_the_rules_of_the_first_agent_hold_after_a_handoff() -> None:
    second = Agent(name="B", model=ScriptedModel(ScriptedCall("note", {"text": "private"})), tools=[note])
    first = an_agent(ScriptedCall("transfer_to_b"), tool_rules=["private"])
    first.handoffs = [second]
    assert await code_of(create_runner(safety_agent=FakeJudge()).run(first, "go")) == DENIED
    assert RAN == []


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
    assert await code_of(create_runner(safety_agent=FakeJudge()).run(agent, items)) == DENIED


async def test_a_guardrail_holds_for_streams_too() -> None:
    agent = an_agent("never said", input_rules=["bomb"])
    with pytest.raises(AgentsError, match=DENIED):
        async for _ in create_runner(safety_agent=FakeJudge()).run_stream(agent, "bomb", RunOptions()):
            pass
