"""The API apart from HTTP: it checks a request, remembers the conversation and answers, or raises ApiError."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

from openai_responses_mcp.rehearsal.answers import Situation, needs_search, read_question, write_answer
from openai_responses_mcp.rehearsal.markers import read_wishes
from openai_responses_mcp.rehearsal.runs import MAX_REMEMBERED, Memory, RehearsedRun, StoredRuns, TimesAsked
from openai_responses_mcp.rehearsal.wire import ApiError, build_response, numbered, stream_events, usual_error

UNKNOWN_MODEL = "no-such-model"
KNOWN_FIELDS = (
    "access_programs", "background", "context_management", "conversation", "image", "include", "input",
    "instructions", "max_output_tokens", "max_tool_calls", "metadata", "model", "moderation",
    "parallel_tool_calls", "previous_response_id", "prompt", "prompt_cache_key", "prompt_cache_options",
    "prompt_cache_retention", "reasoning", "safety_identifier", "service_tier", "store", "stream",
    "stream_options", "temperature", "text", "tool_choice", "tools", "top_logprobs", "top_p", "truncation",
    "user",
)  # fmt: skip

_SEARCH_TOOLS = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")


def check_key(authorization: str) -> None:
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise ApiError(401, "You didn't provide an API key. Send it as 'Authorization: Bearer YOUR_KEY'.")


def read_json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body, parse_constant=_refuse_constant)
    except (ValueError, RecursionError) as exc:
        raise ApiError(400, "We could not parse the JSON body of your request.") from exc
    if not isinstance(value, dict):
        raise ApiError(400, "The body of your request must be a JSON object.")
    return value


def check_request(request: Mapping[str, Any]) -> None:
    for check in _CHECKS:
        check(request)


def read_starting_after(text: str | None) -> int:
    """The number of the event that a reader has seen last; without one it has seen none."""
    if text is None:
        return -1
    try:
        return max(int(text), -1)
    except ValueError as exc:
        message = f"Invalid type for 'starting_after': expected an integer, got '{text[:80]}'."
        raise ApiError(400, message, param="starting_after", code="invalid_type") from exc


def tools_of(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [tool for tool in request.get("tools") or [] if isinstance(tool, dict)]


def may_search(request: Mapping[str, Any]) -> bool:
    return any(tool.get("type") in _SEARCH_TOOLS for tool in tools_of(request))


def _refuse_constant(name: str) -> None:
    raise ValueError(name)


def _check_fields(request: Mapping[str, Any]) -> None:
    for name in request:
        if name not in KNOWN_FIELDS:
            raise ApiError(400, f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")


# The types that the rest of this package relies on; null counts as absent.
_TYPES: dict[str, tuple[type, ...]] = {
    "background": (bool,),
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


def _check_types(request: Mapping[str, Any]) -> None:
    for name, types in _TYPES.items():
        if request.get(name) is not None and not isinstance(request[name], types):
            expected = " or ".join(kind.__name__ for kind in types)
            message = f"Invalid type for '{name}': expected {expected}, got {type(request[name]).__name__}."
            raise ApiError(400, message, param=name, code="invalid_type")


def _check_presence(request: Mapping[str, Any]) -> None:
    for name in ("model", "input"):
        if request.get(name) is None:
            message = f"Missing required parameter: '{name}'."
            raise ApiError(400, message, param=name, code="missing_required_parameter")


def _check_model(request: Mapping[str, Any]) -> None:
    if request["model"] == UNKNOWN_MODEL:
        message = f"The requested model '{UNKNOWN_MODEL}' does not exist."
        raise ApiError(400, message, param="model", code="model_not_found")


def _check_background(request: Mapping[str, Any]) -> None:
    if request.get("background") and request.get("store") is False:
        raise ApiError(400, "Background mode requires 'store' to be true.", param="store")


def _check_effort(request: Mapping[str, Any]) -> None:
    if (request.get("reasoning") or {}).get("effort") != "minimal":
        return
    refused = [tool["type"] for tool in tools_of(request) if tool.get("type") in _SEARCH_TOOLS]
    if refused:
        message = f"The following tools cannot be used with reasoning.effort 'minimal': {', '.join(refused)}."
        raise ApiError(400, message, param="tools")


_CHECKS: tuple[Callable[[Mapping[str, Any]], None], ...] = (
    _check_fields,
    _check_types,
    _check_presence,
    _check_model,
    _check_background,
    _check_effort,
)


_SOURCES = "web_search_call.action.sources"


class RehearsedApi:
    def __init__(self, *, max_remembered: int = MAX_REMEMBERED) -> None:
        self.runs = StoredRuns()
        self._questions = Memory[str](max_remembered)
        self._times_asked = TimesAsked(max_remembered)

    async def create(self, request: Mapping[str, Any]) -> RehearsedRun:
        """A finished run, or one that has just begun when it is to be done in the background."""
        check_request(request)
        earlier_question = self._earlier_question(request)
        question = read_question(request["input"])
        plain, wishes = read_wishes(question.text)
        if self._times_asked.is_over(question.text, wishes.times):
            wishes = wishes.without_trouble()
        if not request.get("background"):
            await asyncio.sleep(wishes.delay or 0.0)
        if wishes.status is not None:
            raise usual_error(wishes.status)
        situation = Situation(
            question=plain,
            hints=question.hints,
            is_searching=is_searched(request, plain, wishes.search),
            includes_sources=includes_sources(request),
            earlier_question=earlier_question,
            text=wishes.text,
            citations=wishes.citations,
        )
        response = build_response(request, write_answer(situation, wishes.outcome), plain + question.hints)
        if response["store"]:
            self.remember(response["id"], plain)
        return self._run(request, response, wishes.delay or 0.0)

    def remember(self, response_id: str, question: str) -> None:
        self._questions.remember(response_id, question)

    def _run(self, request: Mapping[str, Any], response: dict[str, Any], delay_seconds: float) -> RehearsedRun:
        if response["background"]:
            events = numbered(stream_events(response))
            run = RehearsedRun.start(response, _spread(events, delay_seconds))
            self.runs.keep(run)
            return run
        if response["store"]:
            self.runs.keep(RehearsedRun(response))
        return RehearsedRun(response, numbered(stream_events(response)) if request.get("stream") else ())

    def _earlier_question(self, request: Mapping[str, Any]) -> str | None:
        response_id = request.get("previous_response_id")
        if response_id is None:
            return None
        question = self._questions.maybe_recall(response_id)
        if question is None:
            raise previous_response_not_found(response_id)
        return question


async def _spread(events: list[dict[str, Any]], seconds: float) -> AsyncIterator[dict[str, Any]]:
    """The events over this much time."""
    for event in events:
        yield event
        await asyncio.sleep(seconds / len(events))


def is_searched(request: Mapping[str, Any], question: str, wish: bool | None) -> bool:
    return may_search(request) and needs_search(question) if wish is None else wish


def includes_sources(request: Mapping[str, Any]) -> bool:
    return _SOURCES in (request.get("include") or [])


def previous_response_not_found(response_id: str) -> ApiError:
    message = f"Previous response with id '{response_id}' not found."
    return ApiError(400, message, param="previous_response_id", code="previous_response_not_found")
