"""The tools: what clients are told about them, and how their arguments become a question."""

import re
from collections.abc import Callable, Mapping
from math import isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from openai_responses_mcp.domain.errors import InvalidArguments
from openai_responses_mcp.server.jsonrpc import JsonObject

if TYPE_CHECKING:
    from openai_responses_mcp.domain.models import Question

_DIGITS = re.compile(r"[0-9]+(\.[0-9]+)?")


class _Unfit(ValueError):
    """The value is not what the argument takes."""


class Argument(NamedTuple):
    """One argument of a tool: its name on the wire, the field of a question it sets, what it takes."""

    name: str
    field: str
    takes: str
    schema: JsonObject
    read: Callable[[Any], Any]
    is_required: bool = False


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise _Unfit
    return value


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise _Unfit
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise _Unfit
    return tuple(_text(item).strip() for item in value)


def _number(lowest: float, highest: float = float("inf")) -> Callable[[Any], float]:
    def read(value: Any) -> float:
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _Unfit
        if not (lowest <= value <= highest) or (isinstance(value, float) and not isfinite(value)):
            raise _Unfit
        return value

    return read


def _one_of(*names: str) -> Callable[[Any], str]:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise _Unfit
        return value

    return read


def _choice(name: str, field: str, description: str, *names: str) -> Argument:
    schema = {"type": "string", "enum": list(names), "description": description}
    return Argument(name, field, f"one of {', '.join(names)}", schema, _one_of(*names))


def _required_text(name: str, description: str) -> Argument:
    schema = {"type": "string", "description": description}
    return Argument(name, "text", "a string that is not blank", schema, _text, is_required=True)


_QUERY = _required_text("query", "The question, in any language.")
_INPUT = _required_text("input", "The question, in any language.")
_RECENCY_DAYS = Argument(
    "recency_days",
    "recency_days",
    "a number, 0 or more",
    {"type": "number", "minimum": 0, "description": "How many days old sources may be."},
    _number(0),
)
_MAX_RESULTS = Argument(
    "max_results",
    "max_results",
    "a number from 1 to 10",
    {"type": "number", "minimum": 1, "maximum": 10, "description": "How many search results are enough."},
    _number(1, 10),
)
_DOMAINS = Argument(
    "domains",
    "domains",
    "a list of domain names",
    {"type": "array", "items": {"type": "string"}, "description": "Domains to prefer, such as example.com."},
    _texts,
)
_STYLE = _choice("style", "style", "How the answer should be written.", "summary", "bullets", "citations-only")
_PREVIOUS = Argument(
    "previous_response_id",
    "previous_response_id",
    "the response id of an earlier answer",
    {"type": "string", "description": "The response id of an earlier answer, to continue that conversation."},
    _text,
)
_CONTEXT_SIZE = _choice(
    "searchContextSize", "search_context_size", "How much of the web to read.", "low", "medium", "high"
)
_EFFORT = _choice("reasoningEffort", "reasoning_effort", "How hard to think.", "low", "medium", "high")
_MODEL = Argument("model", "model", "a model id", {"type": "string", "description": "The model to ask."}, _text)
_CODE = Argument(
    "useCodeInterpreter",
    "use_code_interpreter",
    "true or false",
    {"type": "boolean", "description": "Whether the model may run code."},
    _flag,
)

_ANNOTATIONS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": False, "openWorldHint": True}

_ANSWER_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "answer": {"type": "string"},
        "used_search": {"type": "boolean"},
        "citations": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "url": {"type": "string", "description": "A URL, or a source id where there is none."},
                    "title": {"type": "string"},
                    "published_at": {"type": "string", "description": "YYYY-MM-DD"},
                },
                "required": ["url"],
            },
        },
        "model": {"type": "string"},
        "response_id": {"type": "string"},
    },
    "required": ["answer", "used_search", "citations", "model"],
}
_IRIS_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"answer": {"type": "string"}, "response_id": {"type": "string"}},
    "required": ["answer"],
}


class Tool(NamedTuple):
    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    output_schema: JsonObject
    profile: str

    def described(self) -> JsonObject:
        """The tool's entry in `tools/list`."""
        return {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": {
                "type": "object",
                "properties": {argument.name: argument.schema for argument in self.arguments},
                "required": [argument.name for argument in self.arguments if argument.is_required],
            },
            "outputSchema": self.output_schema,
            "annotations": _ANNOTATIONS,
        }


_FULL = (_QUERY, _RECENCY_DAYS, _MAX_RESULTS, _DOMAINS, _STYLE, _PREVIOUS)

TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "answer",
            "Answer",
            "Search the web when needed and provide balanced, well-sourced answers."
            " This is the standard general-purpose tool.",
            _FULL,
            _ANSWER_SCHEMA,
            profile="answer",
        ),
        Tool(
            "answer_detailed",
            "Detailed answer",
            "Perform comprehensive analysis with thorough research and detailed explanations."
            " Best for complex questions requiring deep investigation.",
            _FULL,
            _ANSWER_SCHEMA,
            profile="answer_detailed",
        ),
        Tool(
            "answer_quick",
            "Quick answer",
            "Provide fast, concise answers optimized for speed. Best for simple lookups or urgent questions.",
            (_QUERY, _PREVIOUS),
            _ANSWER_SCHEMA,
            profile="answer_quick",
        ),
        Tool(
            "iris",
            "Iris",
            "Ask a model that can search the web, with the arguments of the iris tool.",
            (_INPUT, _CONTEXT_SIZE, _EFFORT, _MODEL, _CODE, _PREVIOUS),
            _IRIS_SCHEMA,
            profile="answer",
        ),
    )
}


def read_question(tool: Tool, arguments: Mapping[str, Any], *, keeps_responses: bool = True) -> "Question":
    """Raises `InvalidArguments`. Null is absent; what the tool does not know is ignored."""
    # Here, because the first replies need no questions, and a twentieth of the way to them would go into the models.
    from openai_responses_mcp.domain.models import Question

    values = {}
    for argument in tool.arguments:
        value = arguments.get(argument.name)
        if value is not None:
            values[argument.field] = _read(argument, value)
        elif argument.is_required:
            raise InvalidArguments(f"{argument.name} is required")
    if "previous_response_id" in values and not keeps_responses:
        raise InvalidArguments(
            "previous_response_id cannot be used: request.store is false, so the API keeps no responses to continue"
        )
    return Question(profile=tool.profile, **values)


def _read(argument: Argument, value: Any) -> Any:
    try:
        return argument.read(value)
    except _Unfit:
        raise InvalidArguments(f"{argument.name} must be {argument.takes}") from None


def unknown_arguments(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    known = {argument.name for argument in tool.arguments}
    return [name for name in arguments if name not in known]
