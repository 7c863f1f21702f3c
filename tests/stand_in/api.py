"""The API that plays faults: the answers that ship, spoiled as the question asks for it.

`answer` is the handler for the HTTP server.
"""

import asyncio
import re
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from openai.types.responses.response_create_params import ResponseCreateParamsBase

from openai_responses_mcp.rehearsal.answers import AskedInput, Situation, needs_search, read_question
from openai_responses_mcp.rehearsal.server import (
    check_key,
    has_search_tool,
    includes_sources,
    previous_response_not_found,
    read_json,
)
from openai_responses_mcp.rehearsal.wire import (
    STREAM_HEADERS,
    ApiError,
    encode_event,
    encode_json,
    numbered,
    stream_events,
    usual_error,
)
from tests.stand_in.background import Background
from tests.stand_in.bodies import spoiled_body
from tests.stand_in.function_calls import call_ids, offered, read_outputs
from tests.stand_in.http_wire import Ending, RecordedRequest, Reply
from tests.stand_in.markers import Directives, read_directives
from tests.stand_in.memory import Memory, TimesAsked
from tests.stand_in.models import UNKNOWN_MODEL, get_model, list_models
from tests.stand_in.odd_answers import item_events, write_odd_answer
from tests.stand_in.pace import first_half, paced
from tests.stand_in.replies import JSON_HEADERS, error_reply, json_reply, with_header
from tests.stand_in.streams import spoiled_stream

KNOWN_FIELDS = frozenset({*ResponseCreateParamsBase.__annotations__, "stream"})


def check_request(request: dict[str, Any]) -> None:
    """Raises `ApiError` for what the API would refuse."""
    for name in request.keys() - KNOWN_FIELDS:
        raise ApiError(400, f"Unknown parameter: '{name}'.", param=name, code="unknown_parameter")
    for name in ("model", "input"):
        if request.get(name) is None:
            message = f"Missing required parameter: '{name}'."
            raise ApiError(400, message, param=name, code="missing_required_parameter")
    if request["model"] == UNKNOWN_MODEL:
        message = f"The requested model '{UNKNOWN_MODEL}' does not exist."
        raise ApiError(400, message, param="model", code="model_not_found")
    if request.get("background") and request.get("store") is False:
        raise ApiError(400, "Background mode requires 'store' to be true.", param="store")
    if has_search_tool(request) and (request.get("reasoning") or {}).get("effort") == "minimal":
        raise ApiError(400, "web_search cannot be used with reasoning.effort 'minimal'.", param="tools")


def _is_searched(request: dict[str, Any], question: str, wish: bool | None) -> bool:
    return has_search_tool(request) and needs_search(question) if wish is None else wish


@dataclass(frozen=True, slots=True)
class _Turn:
    """What is remembered of an answer."""

    question: str
    call_ids: frozenset[str]


class FaultyApi:
    def __init__(self) -> None:
        self.background = Background()
        self.delay_seconds = 0.0
        self._turns = Memory[_Turn]()
        self._times_asked = TimesAsked()
        self._routes: tuple[tuple[str, str, Callable[..., Awaitable[Reply]]], ...] = (
            ("POST", "/v1/responses", self._create),
            ("GET", "/v1/responses/([^/]+)", self._retrieve),
            ("POST", "/v1/responses/([^/]+)/cancel", self._cancel),
            ("GET", "/v1/models", self._list_models),
            ("GET", "/v1/models/(.+)", self._get_model),
        )

    async def answer(self, request: RecordedRequest) -> Reply:
        try:
            reply = await self._route(request)
        except ApiError as exc:
            reply = error_reply(exc)
        return with_header(reply, "x-request-id", f"req_{secrets.token_hex(16)}")

    async def _route(self, request: RecordedRequest) -> Reply:
        method, path = request.method, request.path.rstrip("/")
        for allowed, pattern, handler in self._routes:
            found = re.fullmatch(pattern, path)
            if found is None:
                continue
            if method != allowed:
                raise ApiError(405, f"Not allowed to {method} on {request.path}.")
            check_key(request.headers.get("authorization", ""))
            return await handler(request, *found.groups())
        raise ApiError(404, f"Invalid URL ({method} {request.path})")

    async def _list_models(self, request: RecordedRequest) -> Reply:
        return json_reply(list_models())

    async def _get_model(self, request: RecordedRequest, name: str) -> Reply:
        return json_reply(get_model(name))

    async def _retrieve(self, request: RecordedRequest, response_id: str) -> Reply:
        return self.background.retrieve(response_id, dict(parse_qsl(urlsplit(request.target).query)))

    async def _cancel(self, request: RecordedRequest, response_id: str) -> Reply:
        return self.background.cancel(response_id)

    async def _create(self, request: RecordedRequest) -> Reply:
        asked = read_json(request.body)
        check_request(asked)
        previous = self._previous_turn(asked.get("previous_response_id"))
        question = read_question(asked["input"])
        plain, directives = read_directives(question.text)
        if self._times_asked.is_over(question.text, directives.times):
            directives = directives.without_trouble()
        is_in_background = asked.get("background") is True
        if is_in_background and directives.background is False:
            raise ApiError(400, "Unknown parameter: 'background'.", param="background", code="unknown_parameter")
        delay_seconds = 0.0 if is_in_background else directives.delay or 0.0
        await asyncio.sleep(self.delay_seconds + delay_seconds)
        reply = _without_answer(directives)
        if reply is None:
            response = self._respond(asked, AskedInput(plain, question.hints), directives, previous)
            reply = self._reply(response, directives, is_streamed=asked.get("stream") is True)
        return with_header(reply, *directives.header) if directives.header else reply

    def _reply(self, response: dict[str, Any], directives: Directives, *, is_streamed: bool) -> Reply:
        if not response["background"]:
            self.background.keep(response)
            return _streamed(response, directives) if is_streamed else _at_once(response, directives)
        run = self.background.start(response, _events(response), directives)
        if not is_streamed:
            return _at_once(run.response, directives)
        if directives.stream is not None or directives.drop == "mid":
            return _streamed(response, directives)
        return self.background.stream(response["id"])

    def _previous_turn(self, response_id: str | None) -> _Turn | None:
        if response_id is None:
            return None
        turn = self._turns.maybe_recall(response_id)
        if turn is None:
            raise previous_response_not_found(response_id)
        return turn

    def _respond(
        self, request: dict[str, Any], question: AskedInput, directives: Directives, previous: _Turn | None
    ) -> dict[str, Any]:
        outputs = read_outputs(request["input"], previous.call_ids if previous else ())
        # A turn that only hands back what functions gave still answers the question before it.
        is_new = bool(question.text) or previous is None
        situation = Situation(
            question=question.text if previous is None or is_new else previous.question,
            hints=question.hints,
            is_searching=_is_searched(request, question.text, directives.search),
            includes_sources=includes_sources(request),
            earlier_question=previous.question if previous and is_new else None,
        )
        calls = [] if outputs else offered(request, directives.calls)
        answer = write_odd_answer(situation, directives, calls, outputs)
        response = answer.response(request, question.text + question.hints)
        if response["store"]:
            self._turns.remember(response["id"], _Turn(situation.question, call_ids(answer.output)))
        return response


_ENDINGS: dict[str | None, Ending] = {"before": Ending.HANG_UP, "reset": Ending.RESET}


def _without_answer(directives: Directives) -> Reply | None:
    if directives.drop in _ENDINGS:
        return Reply(ending=_ENDINGS[directives.drop])
    if directives.redirect is not None:
        return Reply(307, {"location": directives.redirect})
    if directives.status is None:
        return None
    reply = error_reply(_error(directives.status, directives))
    return reply if directives.retry_after is None else with_header(reply, "retry-after", directives.retry_after)


def _error(status: int, directives: Directives) -> ApiError:
    """The usual one, unless a code or a message is given."""
    error = usual_error(status)
    if directives.code == "insufficient_quota":
        error.message = "You exceeded your current quota, please check your plan and billing details."
        error.type = directives.code
    error.code = directives.code or error.code
    error.message = error.message if directives.message is None else directives.message
    return error


def _at_once(response: dict[str, Any], directives: Directives) -> Reply:
    if directives.drop == "mid":
        return Reply(headers=JSON_HEADERS, body=first_half(encode_json(response)), ending=Ending.CUT)
    if directives.body is not None:
        return spoiled_body(directives.body, response)
    return json_reply(response)


def _events(response: dict[str, Any]) -> list[dict[str, Any]]:
    return numbered(stream_events(response, item_events))


def _streamed(response: dict[str, Any], directives: Directives) -> Reply:
    events = _events(response)
    if directives.drop == "mid":
        body = first_half(b"".join(map(encode_event, events)))
        return Reply(headers=STREAM_HEADERS, body=body, ending=Ending.CUT)
    return Reply(headers=STREAM_HEADERS, body=_stream_body(events, directives))


def _stream_body(events: list[dict[str, Any]], directives: Directives) -> AsyncIterator[bytes]:
    if directives.stream is not None:
        return spoiled_stream(directives.stream, events)
    return paced(events, directives.slow_stream or 0.0)
