"""What somebody at a terminal asks for, and the question that it makes, by the same rules as a call of a client."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, NamedTuple

from openai_responses_mcp.commands.last_answer import LastAnswer
from openai_responses_mcp.commands.standard_input import InputUnusable, maybe_material, whole_input
from openai_responses_mcp.commands.usage import TOOLS as NAMES
from openai_responses_mcp.domain.errors import InvalidArguments
from openai_responses_mcp.domain.models import Question
from openai_responses_mcp.server.tools import TOOLS, Tool, read_question

FROM_STDIN = "-"

# Option -> the argument of a tool that it sets.
_ARGUMENTS = {
    "--recency": "recency_days",
    "--domains": "domains",
    "--style": "style",
    "--continue": "previous_response_id",
}


class Unaskable(Exception):
    """Nothing is asked; the text says why, on one line."""


class Inquiry(NamedTuple):
    """The command line, as far as it is about the question. `continues` is an id, or empty for the last answer."""

    question: str
    tools: tuple[str, ...] = ()
    continues: str | None = None
    domains: str | None = None
    recency: str | None = None
    style: str | None = None


def tool_of(inquiry: Inquiry) -> Tool:
    """Raises `Unaskable`."""
    chosen = list(dict.fromkeys(inquiry.tools)) or [NAMES[0]]
    if len(chosen) > 1:
        raise Unaskable(f"choose one tool (found {' and '.join(chosen)})")
    if chosen[0] not in NAMES:
        raise Unaskable(f"--tool must be one of {', '.join(NAMES)} (found {chosen[0]})")
    return TOOLS[chosen[0]]


def question_of(inquiry: Inquiry, tool: Tool, last_answer: LastAnswer, *, keeps_responses: bool) -> Question:
    """Reads stdin if there is anything to read. Raises `Unaskable`."""
    spelled = tool._replace(arguments=tuple(_as_spelled(tool)))
    given = {flag: value for flag, value in _given(inquiry, last_answer).items() if value is not None}
    taken = [argument.name for argument in spelled.arguments]
    for flag in given:
        if flag not in taken:
            raise Unaskable(f"{tool.name} does not take {flag}")
    if "--continue" in given and not keeps_responses:
        raise Unaskable("--continue cannot be used: request.store is false, so the API keeps no answers to continue")
    try:
        # Before stdin is read, so that nobody waits for its end to hear of a mistake in the rest.
        question = read_question(spelled, {"query": inquiry.question, **given})
        return replace(question, text=_text(inquiry.question))
    except InvalidArguments as exc:
        raise Unaskable(str(exc)) from exc
    except InputUnusable as exc:
        raise Unaskable(f"stdin {exc}") from exc


def _as_spelled(tool: Tool) -> Any:
    """The arguments of the tool under the names that they have on the command line, so that refusals name those."""
    flags = {name: flag for flag, name in _ARGUMENTS.items()}
    return (argument._replace(name=flags.get(argument.name, argument.name)) for argument in tool.arguments)


def _given(inquiry: Inquiry, last_answer: LastAnswer) -> Mapping[str, object]:
    return {
        "--recency": inquiry.recency,
        "--domains": None if inquiry.domains is None else inquiry.domains.split(","),
        "--style": inquiry.style,
        "--continue": _continued(inquiry.continues, last_answer),
    }


def _continued(wanted: str | None, last_answer: LastAnswer) -> str | None:
    if wanted is None or wanted:
        return wanted
    response_id = last_answer.maybe_recall()
    if response_id is None:
        raise Unaskable("there is no earlier answer to continue; name one: --continue resp_...")
    return response_id


def _text(question: str) -> str:
    """The question, and below it what stdin has for it. Raises `InputUnusable`."""
    if question == FROM_STDIN:
        text = whole_input().strip()
        if not text:
            raise Unaskable("--ask needs a question, and stdin has none")
        return text
    material = maybe_material()
    if not material:
        return question
    return f"{question}\n\n[Material from stdin]\n{material}\n[End of material]"
