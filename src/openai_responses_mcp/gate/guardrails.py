"""Rules of an agent's own, in three stages: its input, each of its calls, its output. A broken rule is a refusal.

A rule is a text that must not occur, a compiled pattern that must not match, or a callable, sync or async. Texts and
patterns are compared with each text of a call by itself, never with an escaped form of it. A callable gets the text
(for `tool_rules` the `ToolCallRequest`) and returns None or True to let it pass, a reason or False to refuse.
"""

import asyncio
import inspect
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from openai_responses_mcp.gate.calls import ToolCallRequest
from openai_responses_mcp.gate.errors import AgentsError, config_error
from openai_responses_mcp.gate.json_values import texts_of_call, texts_of_output

FAILURES: Final = (Exception, SystemExit, asyncio.CancelledError)


def is_cancellation(failure: BaseException) -> bool:
    """Whether our own task is being cancelled. Code that raises `CancelledError` by itself has only failed."""
    task = asyncio.current_task()
    return isinstance(failure, asyncio.CancelledError) and task is not None and task.cancelling() > 0


Rule = str | re.Pattern[str] | Callable[..., object]


@dataclass(frozen=True, slots=True)
class AgentGuardrails:
    input_rules: tuple[Rule, ...] = ()
    output_rules: tuple[Rule, ...] = ()
    tool_rules: tuple[Rule, ...] = ()

    def joined_by(self, other: "AgentGuardrails") -> "AgentGuardrails":
        return AgentGuardrails(
            (*self.input_rules, *other.input_rules),
            (*self.output_rules, *other.output_rules),
            (*self.tool_rules, *other.tool_rules),
        )

    async def check_input(self, text: str) -> None:
        await _check("input", self.input_rules, text, [text])

    async def check_call(self, request: ToolCallRequest) -> None:
        if self.tool_rules:
            await _check("tool", self.tool_rules, request, texts_of_call(request.tool_name, request.args))

    async def check_output(self, text: str) -> None:
        if self.output_rules:
            await _check("output", self.output_rules, text, texts_of_output(text))


NO_GUARDRAILS = AgentGuardrails()


def create_guardrails_template(
    input_rules: Sequence[Rule] = (), output_rules: Sequence[Rule] = (), tool_rules: Sequence[Rule] = ()
) -> AgentGuardrails:
    stages = (input_rules, output_rules, tool_rules)
    if not all(isinstance(rules, list | tuple) for rules in stages):
        # A text by itself would pass for a list of letters, each of them a rule.
        raise config_error("rules are given as a list, also a single one")
    if not all(isinstance(rule, str | re.Pattern) or callable(rule) for rules in stages for rule in rules):
        raise config_error("a guardrail is a text, a pattern or a callable")
    return AgentGuardrails(tuple(input_rules), tuple(output_rules), tuple(tool_rules))


def guardrails_of(agent: object) -> AgentGuardrails:
    kept = getattr(agent, "guardrails", None)
    return kept if isinstance(kept, AgentGuardrails) else NO_GUARDRAILS


async def _check(stage: str, rules: Sequence[Rule], subject: object, texts: Sequence[str]) -> None:
    for rule in rules:
        reason = await _reason_against(rule, subject, texts)
        if reason is not None:
            raise AgentsError("AGENTS-E-GUARDRAIL-DENIED", f"{stage}: {reason}", details={"stage": stage})


async def _reason_against(rule: Rule, subject: object, texts: Sequence[str]) -> str | None:
    if isinstance(rule, str):
        return "a text that must not occur" if any(rule in text for text in texts) else None
    if isinstance(rule, re.Pattern):
        return "a pattern that must not match" if any(rule.search(text) for text in texts) else None
    try:
        verdict = rule(subject)
        if inspect.isawaitable(verdict):
            verdict = await verdict
    except FAILURES as exc:
        if is_cancellation(exc):
            raise
        return f"the rule failed with {type(exc).__name__}"
    if verdict is None or verdict is True:
        return None
    return verdict if isinstance(verdict, str) else "a rule refused it"
