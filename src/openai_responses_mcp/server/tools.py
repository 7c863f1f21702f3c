"""The tools: what clients see of them, and how their arguments become a question."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from openai_responses_mcp.domain.errors import InvalidArguments
from openai_responses_mcp.domain.jsonrpc import JsonObject
from openai_responses_mcp.server.arguments import Argument, Chosen, Flag, Number, Text, Texts

if TYPE_CHECKING:
    from openai_responses_mcp.domain.models import Question

STYLES = ("summary", "bullets", "citations-only")

_THE_QUESTION = "The question, in any language."
_QUERY = Argument("query", "text", Text(), _THE_QUESTION, is_required=True)
_INPUT = Argument("input", "text", Text(), _THE_QUESTION, is_required=True)
_RECENCY_DAYS = Argument("recency_days", "recency_days", Number(0), "How many days old sources may be.")
_MAX_RESULTS = Argument("max_results", "max_results", Number(1, 10), "How many search results are enough.")
_DOMAINS = Argument("domains", "domains", Texts("a list of domain names"), "Domains to prefer, such as example.com.")
_STYLE = Argument("style", "style", Chosen(*STYLES), "How the answer should be written.")
_PREVIOUS = Argument(
    "previous_response_id",
    "previous_response_id",
    Text("the response id of an earlier answer"),
    "The response id of an earlier answer, to continue that conversation.",
)
_LEVELS = Chosen("low", "medium", "high")
_CONTEXT_SIZE = Argument("searchContextSize", "search_context_size", _LEVELS, "How much of the web to read.")
_EFFORT = Argument("reasoningEffort", "reasoning_effort", _LEVELS, "How hard to think.")
_MODEL = Argument("model", "model", Text("a model id"), "The model to ask.")
_CODE = Argument("useCodeInterpreter", "use_code_interpreter", Flag(), "Whether the model may run code.")

_RESPONSE_ID = Argument(
    "response_id",
    "response_id",
    Text("the response id that a call was answered with"),
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
    # Here, because the first replies need no questions, and defining the models takes time.
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
    """Null is absent; what the tool does not know is ignored."""
    values = {}
    for argument in tool.arguments:
        value = arguments.get(argument.name)
        if value is not None:
            values[argument.field] = argument.read(value)
        elif argument.is_required:
            raise InvalidArguments(f"{argument.name} is required")
    return values


def unknown_arguments(tool: Tool, arguments: Mapping[str, Any]) -> list[str]:
    known = {argument.name for argument in tool.arguments}
    return [name for name in arguments if name not in known]
