"""The rules themselves, without a run around them."""

import asyncio
import re
from typing import Any

import pytest

from openai_responses_mcp.gate.calls import ToolCallRequest
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.guardrails import (
    NO_GUARDRAILS,
    AgentGuardrails,
    Rule,
    create_guardrails_template,
    guardrails_of,
)
from tests.agents.fakes import code_of, within

DENIED = "AGENTS-E-GUARDRAIL-DENIED"


def a_call(**args: Any) -> ToolCallRequest:
    return ToolCallRequest("note", "function", args)


async def refusal_of(rule: Rule, **args: Any) -> str:
    try:
        await within(create_guardrails_template(tool_rules=[rule]).check_call(a_call(**args)))
    except AgentsError as exc:
        return exc.message
    return ""


@pytest.mark.parametrize(
    ("rule", "text"),
    [
        ("削除", "全部削除して"),
        ('say "hi"', 'say "hi" to them'),
        ("C:\\Windows", "del C:\\Windows\\*"),
        ("rm\n-rf", "rm\n-rf /"),
        ("tab\there", "a tab\there"),
        ("é", "café"),
        ("🔥", "set on 🔥"),
        (re.compile("^rm"), "rm -rf /"),
        (re.compile("/$"), "rm -rf /"),
        (re.compile(r'"[a-z]+"'), 'say "hi"'),
        (re.compile(r"\\\\share"), "\\\\share\\x"),
        (re.compile("(?m)^second$"), "first\nsecond"),
    ],
)
async def test_rules_see_the_texts_themselves(rule: Rule, text: str) -> None:
    places: list[dict[str, Any]] = [{"x": text}, {text: 1}, {"x": ["a", text]}, {"x": [{"y": {"z": (text,)}}]}]
    for args in places:
        assert await refusal_of(rule, **args), args


@pytest.mark.parametrize(
    ("rule", "args"),
    [
        ("rm -rf", {"argv": ["rm", "-rf", "/"]}),
        (re.compile("curl.*password"), {"a": "curl", "b": "the password"}),
        ("9000000", {"amount": 9000000}),
        ('"amount":5', {"amount": 5}),
        ('"名":"値"', {"名": "値"}),
        ('note {"a":1,"b":2}', {"b": 2, "a": 1}),
        ("true", {"force": True}),
        ("note", {}),
        (re.compile("^note$"), {}),
        ("note x rm", {"x": "rm"}),
    ],
)
async def test_rules_see_what_stands_in_several_places_too(rule: Rule, args: dict[str, Any]) -> None:
    assert await refusal_of(rule, **args)


async def test_what_no_rule_speaks_against_passes() -> None:
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


@pytest.mark.parametrize(
    ("rule", "message"),
    [
        ("x", "tool: a text that must not occur"),
        (re.compile("x"), "tool: a pattern that must not match"),
        (lambda _: "not now", "tool: not now"),
        (lambda _: "", "tool: "),
        (lambda _: False, "tool: a rule refused it"),
        (lambda _: 0, "tool: a rule refused it"),
        (lambda _: 1, "tool: a rule refused it"),
        (_refuses, "tool: because"),
        (_breaks, "tool: the rule failed with KeyError"),
        (_gives_up, "tool: the rule failed with CancelledError"),
        (_leaves, "tool: the rule failed with SystemExit"),
    ],
)
async def test_a_refusal_says_why(rule: Rule, message: str) -> None:
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
    assert await code_of(rules.check_input("in")) == DENIED
    assert await code_of(rules.check_output("out")) == DENIED
    assert await code_of(rules.check_call(a_call(x="call"))) == DENIED
    for text in ("out", "call"):
        await rules.check_input(text)
    for text in ("in", "call"):
        await rules.check_output(text)
        await rules.check_call(a_call(x={"in": "in", "call": "out"}[text]))


@pytest.mark.parametrize("stage", ["input", "tool", "output"])
async def test_a_refusal_names_its_stage(stage: str) -> None:
    rules = create_guardrails_template(["x"], ["x"], ["x"])
    work = {"input": rules.check_input, "output": rules.check_output}.get(stage)
    with pytest.raises(AgentsError, match=DENIED) as caught:
        await (work("x") if work else rules.check_call(a_call(x="x")))
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


def test_only_guardrails_count_as_such() -> None:
    class Agent:
        guardrails: Any = create_guardrails_template(["x"])

    agent = Agent()
    assert guardrails_of(agent).input_rules == ("x",)
    agent.guardrails = ["x"]
    assert guardrails_of(agent) is NO_GUARDRAILS
    assert guardrails_of(None) is NO_GUARDRAILS


@pytest.mark.parametrize("stage", ["input_rules", "output_rules", "tool_rules"])
def test_a_rule_of_another_kind_is_refused_at_every_stage(stage: str) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        create_guardrails_template(**{stage: ["fine", 5]})  # type: ignore[arg-type]
    with pytest.raises(AgentsError, match="given as a list, also a single one"):
        create_guardrails_template(**{stage: "fine"})
