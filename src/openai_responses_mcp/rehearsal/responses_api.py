"""What the stand-in answers: routes, the checks the API makes, the conversations it remembers, faults on request."""

import asyncio
import json
import secrets
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Any

from openai_responses_mcp.rehearsal.answers import Situation, build_response
from openai_responses_mcp.rehearsal.api_errors import ApiError, usual_error
from openai_responses_mcp.rehearsal.faults import (
    JSON_HEADERS,
    STREAM_HEADERS,
    first_half,
    json_reply,
    paced,
    spoiled_body,
    spoiled_stream,
)
from openai_responses_mcp.rehearsal.http_wire import Ending, RecordedRequest, Reply
from openai_responses_mcp.rehearsal.markers import Directives, read_markers
from openai_responses_mcp.rehearsal.questions import (
    Question,
    function_call_ids,
    function_outputs,
    needs_search,
    read_question,
)
from openai_responses_mcp.rehearsal.stream_events import encode_event, encode_json, stream_events

UNKNOWN_MODEL = "no-such-model"
MODELS = ("gpt-5.1", "gpt-5", "gpt-5-mini", "gpt-5-nano", "gpt-4.1", "gpt-4.1-mini", "o3", "o4-mini")
KNOWN_FIELDS = (
    "access_programs", "background", "context_management", "conversation", "image", "include", "input",
    "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation",
    "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options",
    "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream",
    "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation",
    "user",
)  # fmt: skip

_MODELS_CREATED = 1_700_000_000
_SEARCH_TOOLS = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")


@dataclass(frozen=True, slots=True)
class _Turn:
    """What is remembered of an answer."""

    question: str
    call_ids: frozenset[str]


class ResponsesApi:
    """Answers requests as the API would; `answer` is the handler for the HTTP server."""

    def __init__(self, *, delay_seconds: float = 0.0, max_remembered: int = 10_000) -> None:
        self._delay_seconds = delay_seconds
        self._max_remembered = max_remembered
        self._turns: OrderedDict[str, _Turn] = OrderedDict()
        self._times_asked: OrderedDict[str, int] = OrderedDict()

    async def answer(self, request: RecordedRequest) -> Reply:
        try:
            reply = await self._route(request)
        except ApiError as exc:
            reply = _error_reply(exc)
        return replace(reply, headers={"x-request-id": f"req_{secrets.token_hex(16)}", **reply.headers})

    async def _route(self, request: RecordedRequest) -> Reply:
        method, path = request.method, request.path.rstrip("/")
        allowed = "POST" if path == "/v1/responses" else "GET"
        if path not in ("/v1/responses", "/v1/models") and not path.startswith("/v1/models/"):
            raise ApiError(404, f"Invalid URL ({method} {request.path})")
        if method != allowed:
            raise ApiError(405, f"Not allowed to {method} on {request.path}.")
        _check_key(request)
        if path == "/v1/responses":
            return await self._create(_read_json(request.body))
        if path == "/v1/models":
            return json_reply({"object": "list", "data": [_model(name) for name in MODELS]})
        return _get_model(path.removeprefix("/v1/models/"))

    async def _create(self, request: dict[str, Any]) -> Reply:
        for check in _CHECKS:
            check(request)
        previous = self._previous_turn(request.get("previous_response_id"))
        question = read_question(request.get("input") or "")
        plain, directives = read_markers(question.text)
        directives = self._still_due(question.text, directives)
        reply = await self._without_answer(directives)
        if reply is None:
            situation = _situation(request, Question(plain, question.hints), directives, previous)
            reply = self._with_answer(request, situation)
        if directives.header is None:
            return reply
        return replace(reply, headers={**reply.headers, directives.header[0]: directives.header[1]})

    def _previous_turn(self, response_id: Any) -> _Turn | None:
        if response_id is None:
            return None
        if response_id in self._turns:
            return self._turns[response_id]
        if response_id.startswith("resp_expired"):
            raise ApiError(400, f"The previous_response_id '{response_id}' has expired.")
        name = "previous_response_id"
        message = f"Previous response with id '{response_id}' not found."
        raise ApiError(400, message, param=name, code="previous_response_not_found")

    def _still_due(self, question: str, directives: Directives) -> Directives:
        if directives.times is None:
            return directives
        asked = self._times_asked.get(question, 0)
        if asked >= directives.times:
            return directives.without_faults()
        self._remember(self._times_asked, question, asked + 1)
        return directives

    async def _without_answer(self, directives: Directives) -> Reply | None:
        delay_seconds = self._delay_seconds + (directives.delay or 0.0)
        if delay_seconds:
            await asyncio.sleep(delay_seconds)
        if directives.drop in _ENDINGS:
            return Reply(ending=_ENDINGS[directives.drop])
        if directives.redirect is not None:
            return Reply(307, {"location": directives.redirect})
        if directives.status is None:
            return None
        reply = _error_reply(usual_error(directives.status, directives.code, directives.message))
        if directives.retry_after is None:
            return reply
        return replace(reply, headers={**reply.headers, "retry-after": directives.retry_after})

    def _with_answer(self, request: dict[str, Any], situation: Situation) -> Reply:
        response = build_response(request, situation)
        if response["store"]:
            calls = frozenset(item["call_id"] for item in response["output"] if item["type"] == "function_call")
            self._remember(self._turns, response["id"], _Turn(situation.question, calls))
        send = _streamed if request.get("stream") else _at_once
        return send(response, situation.directives)

    def _remember(self, memory: OrderedDict[str, Any], key: str, value: Any) -> None:
        memory[key] = value
        memory.move_to_end(key)
        if len(memory) > self._max_remembered:
            memory.popitem(last=False)


_ENDINGS: dict[str | None, Ending] = {"before": Ending.HANG_UP, "reset": Ending.RESET}


def _at_once(response: dict[str, Any], directives: Directives) -> Reply:
    if directives.drop == "mid":
        return Reply(headers=JSON_HEADERS, body=first_half(encode_json(response)), ending=Ending.CUT)
    if directives.body is not None:
        return spoiled_body(directives.body, response)
    return json_reply(response)


def _streamed(response: dict[str, Any], directives: Directives) -> Reply:
    events = stream_events(response)
    if directives.drop == "mid":
        body = first_half(b"".join(map(encode_event, events)))
        return Reply(headers=STREAM_HEADERS, body=body, ending=Ending.CUT)
    return Reply(headers=STREAM_HEADERS, body=_stream_body(events, directives))


def _stream_body(events: list[dict[str, Any]], directives: Directives) -> AsyncIterator[bytes]:
    if directives.stream is not None:
        return spoiled_stream(directives.stream, events)
    return paced(events, directives.slow_stream or 0.0)


def _situation(
    request: dict[str, Any], question: Question, directives: Directives, previous: _Turn | None
) -> Situation:
    outputs = _checked_outputs(request.get("input"), previous)
    functions = {tool.get("name") for tool in _tools(request) if tool.get("type") == "function"}
    calls = () if outputs else tuple(call for call in directives.calls if call.name in functions)
    has_search = any(tool.get("type") in _SEARCH_TOOLS for tool in _tools(request))
    is_searching = has_search and needs_search(question.text) if directives.search is None else directives.search
    # A turn that only hands back what functions gave still answers the question before it.
    asked = question.text if question.text or previous is None else previous.question
    return Situation(
        question=asked,
        hints=question.hints,
        directives=directives,
        is_searching=is_searching,
        calls=calls,
        earlier_question=previous.question if previous is not None and question.text else None,
        tool_outputs=tuple(outputs.values()),
    )


def _checked_outputs(given: Any, previous: _Turn | None) -> dict[str, str]:
    outputs = function_outputs(given)
    called = function_call_ids(given) | (previous.call_ids if previous is not None else frozenset())
    for call_id in outputs:
        if call_id not in called:
            raise ApiError(400, f"No tool call found for function call output with call_id {call_id}.", param="input")
    return outputs


def _check_key(request: RecordedRequest) -> None:
    scheme, _, key = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise ApiError(401, "You didn't provide an API key. Send it as 'Authorization: Bearer YOUR_KEY'.")


def _read_json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise ApiError(400, "We could not parse the JSON body of your request.") from exc
    if not isinstance(value, dict):
        raise ApiError(400, "The body of your request must be a JSON object.")
    return value


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _check_fields(request: dict[str, Any]) -> None:
    for name in request:
        if name not in KNOWN_FIELDS:
            raise ApiError(400, f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")


# The types that the rest of this package relies on; null counts as absent.
_TYPES: dict[str, tuple[type, ...]] = {
    "include": (list,),
    "input": (str, list),
    "instructions": (str,),
    "metadata": (dict,),
    "model": (str,),
    "previous_response_id": (str,),
    "reasoning": (dict,),
    "store": (bool,),
    "stream": (bool,),
    "text": (dict,),
    "tools": (list,),
}


def _check_types(request: dict[str, Any]) -> None:
    for name, types in _TYPES.items():
        if request.get(name) is not None and not isinstance(request[name], types):
            expected = " or ".join(kind.__name__ for kind in types)
            message = f"Invalid type for '{name}': expected {expected}, got {type(request[name]).__name__}."
            raise ApiError(400, message, param=name, code="invalid_type")


def _check_presence(request: dict[str, Any]) -> None:
    for name in ("model", "input"):
        if request.get(name) is None:
            message = f"Missing required parameter: '{name}'."
            raise ApiError(400, message, param=name, code="missing_required_parameter")


def _check_model(request: dict[str, Any]) -> None:
    if request["model"] == UNKNOWN_MODEL:
        message = f"The requested model '{UNKNOWN_MODEL}' does not exist."
        raise ApiError(400, message, param="model", code="model_not_found")


def _check_effort(request: dict[str, Any]) -> None:
    if (request.get("reasoning") or {}).get("effort") != "minimal":
        return
    refused = [tool["type"] for tool in _tools(request) if tool.get("type") in _SEARCH_TOOLS]
    if refused:
        message = f"The following tools cannot be used with reasoning.effort 'minimal': {', '.join(refused)}."
        raise ApiError(400, message, param="tools")


_CHECKS: tuple[Callable[[dict[str, Any]], None], ...] = (
    _check_fields,
    _check_types,
    _check_presence,
    _check_model,
    _check_effort,
)


def _tools(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [tool for tool in request.get("tools") or [] if isinstance(tool, dict)]


def _get_model(name: str) -> Reply:
    if name == UNKNOWN_MODEL:
        raise ApiError(404, f"The model '{name}' does not exist", param="model", code="model_not_found")
    return json_reply(_model(name))


def _model(name: str) -> dict[str, Any]:
    return {"id": name, "object": "model", "created": _MODELS_CREATED, "owned_by": "rehearsal"}


def _error_reply(error: ApiError) -> Reply:
    return Reply(error.status, JSON_HEADERS, encode_json(error.body()))
