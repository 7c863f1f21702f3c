"""The tools: what clients see of them, and how their arguments become a question.

What an argument accepts is written once, as a `Kind`: its schema, its description in an error, and its reader.
"""

import re
from collections.abc import Callable, Mapping
from math import inf, isfinite
from typing import TYPE_CHECKING, Any, NamedTuple

from openai_responses_mcp.domain.errors import InvalidArguments
from openai_responses_mcp.domain.jsonrpc import JsonObject
from openai_responses_mcp.domain.texts import Sentence

if TYPE_CHECKING:
    from openai_responses_mcp.domain.models import Question

_DIGITS = re.compile(r"[0-9]+(\.[0-9]+)?")


class Kind(NamedTuple):
    """`read` gives the value of an argument, and raises ValueError if it is invalid."""

    schema: JsonObject
    words: str
    read: Callable[[Any], Any]


def _text(value: Any) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ValueError
    return value


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        raise ValueError
    return tuple(_text(item).strip() for item in value)


def _flag(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError
    return value


def text(words: str = Sentence("a string that is not blank")) -> Kind:
    return Kind({"type": "string"}, words, _text)


def number(lowest: int, highest: int | None = None) -> Kind:
    """Also reads a string of digits."""

    def read(value: Any) -> float:
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError
        within = lowest <= value <= (inf if highest is None else highest)
        if not within or (isinstance(value, float) and not isfinite(value)):
            raise ValueError
        return value

    if highest is None:
        return Kind({"type": "number", "minimum": lowest}, Sentence("a number, {lowest} or more", lowest=lowest), read)
    schema = {"type": "number", "minimum": lowest, "maximum": highest}
    return Kind(schema, Sentence("a number from {lowest} to {highest}", lowest=lowest, highest=highest), read)


def one_of(*names: str) -> Kind:
    def read(value: Any) -> str:
        if not isinstance(value, str) or value not in names:
            raise ValueError
        return value

    return Kind({"type": "string", "enum": list(names)}, Sentence("one of {names}", names=", ".join(names)), read)


class Argument(NamedTuple):
    """One argument of a tool. `field` is the field of the question that it sets."""

    name: str
    field: str
    kind: Kind
    description: str
    is_required: bool = False

    @property
    def schema(self) -> JsonObject:
        return {**self.kind.schema, "description": self.description}

    def read(self, value: Any) -> Any:
        """Raises `InvalidArguments`."""
        try:
            return self.kind.read(value)
        except ValueError:
            raise InvalidArguments(Sentence("{name} must be {kind}", name=self.name, kind=self.kind.words)) from None


STYLES = ("summary", "bullets", "citations-only")

_THE_QUESTION = "The question, in any language."
_QUERY = Argument("query", "text", text(), _THE_QUESTION, is_required=True)
_INPUT = Argument("input", "text", text(), _THE_QUESTION, is_required=True)
_RECENCY_DAYS = Argument("recency_days", "recency_days", number(0), "How many days old sources may be.")
_MAX_RESULTS = Argument("max_results", "max_results", number(1, 10), "How many search results are enough.")
_NAMES = Kind({"type": "array", "items": {"type": "string"}}, Sentence("a list of domain names"), _texts)
_DOMAINS = Argument("domains", "domains", _NAMES, "Domains to prefer, such as example.com.")
_STYLE = Argument("style", "style", one_of(*STYLES), "How the answer should be written.")
_PREVIOUS = Argument(
    "previous_response_id",
    "previous_response_id",
    text(Sentence("the response id of an earlier answer")),
    "The response id of an earlier answer, to continue that conversation.",
)
_LEVELS = one_of("low", "medium", "high")
_CONTEXT_SIZE = Argument("searchContextSize", "search_context_size", _LEVELS, "How much of the web to read.")
_EFFORT = Argument("reasoningEffort", "reasoning_effort", _LEVELS, "How hard to think.")
_MODEL = Argument("model", "model", text("a model id"), "The model to ask.")
_CODE = Argument(
    "useCodeInterpreter",
    "use_code_interpreter",
    Kind({"type": "boolean"}, "true or false", _flag),
    "Whether the model may run code.",
)

_RESPONSE_ID = Argument(
    "response_id",
    "response_id",
    text("the response id that a call was answered with"),
    'The response id that came with "Still working".',
    is_required=True,
)

_ANNOTATIONS = {"readOnlyHint": True, "destructiveHint": False, "idempotentHint": False, "openWorldHint": True}

_STATUS: JsonObject = {
    "type": "string",
    "enum": ["working"],
    "description": "Only while the answer is not there yet: call answer_result with the response_id.",
}
_ANSWER_TEXT: JsonObject = {
    "type": "string",
    "description": "The answer. If the web was searched, it ends with its sources.",
}
_ID_TO_CONTINUE: JsonObject = {
    "type": "string",
    "description": "Pass it as previous_response_id to continue this conversation.",
}
_ANSWER_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {
        "answer": _ANSWER_TEXT,
        "used_search": {"type": "boolean", "description": "Whether the web was searched."},
        "citations": {
            "type": "array",
            "description": "The sources, in the order in which they are cited.",
            "items": {
                "type": "object",
                "properties": {
                    "url": {"type": "string", "description": "A URL, or a source id where there is none."},
                    "title": {"type": "string", "description": "The title of the source, if it is known."},
                    "published_at": {"type": "string", "description": "A day, as YYYY-MM-DD."},
                    "date_kind": {
                        "type": "string",
                        "enum": ["published", "accessed"],
                        "description": "Whether published_at is the source's own date or the day it was read.",
                    },
                },
                "required": ["url"],
            },
        },
        "model": {"type": "string", "description": "The model that answered."},
        "response_id": _ID_TO_CONTINUE,
        "status": _STATUS,
    },
    "required": ["answer", "used_search", "citations"],
}
_IRIS_SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"answer": _ANSWER_TEXT, "response_id": _ID_TO_CONTINUE, "status": _STATUS},
    "required": ["answer"],
}


class Tool(NamedTuple):
    name: str
    title: str
    description: str
    arguments: tuple[Argument, ...]
    output_schema: JsonObject
    profile: str = "answer"

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


RESULT_TOOL = "answer_result"

_SEARCH_ARGUMENTS = (_QUERY, _RECENCY_DAYS, _MAX_RESULTS, _DOMAINS, _STYLE, _PREVIOUS)

TOOLS = {
    tool.name: tool
    for tool in (
        Tool(
            "answer",
            "Answer",
            "Search the web when needed and provide balanced, well-sourced answers."
            " This is the standard general-purpose tool.",
            _SEARCH_ARGUMENTS,
            _ANSWER_SCHEMA,
            profile="answer",
        ),
        Tool(
            "answer_detailed",
            "Detailed answer",
            "Perform comprehensive analysis with thorough research and detailed explanations."
            " Best for complex questions requiring deep investigation.",
            _SEARCH_ARGUMENTS,
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
        Tool(
            RESULT_TOOL,
            "Answer of a research that is under way",
            'Get the answer of a question that was answered with "Still working". Waits for it for a while;'
            " call it again if the answer is still not there.",
            (_RESPONSE_ID,),
            _ANSWER_SCHEMA,
        ),
    )
}


def read_question(tool: Tool, arguments: Mapping[str, Any], *, keeps_responses: bool = True) -> "Question":
    """Raises `InvalidArguments`."""
    # Imported late: the first replies do not need the models, which take time to define.
    from openai_responses_mcp.domain.models import Question

    values = _values(tool, arguments)
    if "previous_response_id" in values and not keeps_responses:
        raise InvalidArguments(
            "previous_response_id cannot be used: request.store is false, so the API keeps no responses to continue"
        )
    return Question(profile=tool.profile, **values)


def read_response_id(tool: Tool, arguments: Mapping[str, Any]) -> str:
    """Raises `InvalidArguments`."""
    response_id: str = _values(tool, arguments)[_RESPONSE_ID.field]
    return response_id.strip()


def _values(tool: Tool, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Null counts as absent. Unknown arguments are ignored."""
    values = {}
    for argument in tool.arguments:
        value = arguments.get(argument.name)
        if value is not None:
            values[argument.field] = argument.read(value)
        elif argument.is_required:
            raise InvalidArguments(Sentence("{name} is required", name=argument.name))
    return values


def unknown_arguments(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    known = {argument.name for argument in tool.arguments}
    return [name for name in arguments if name not in known]
