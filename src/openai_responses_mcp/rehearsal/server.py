"""The stand-in for the API on loopback: it remembers the conversation, and answers at once, as a stream or in the background.

A question can ask for trouble, to see how a client handles it: `[rehearse: status=429; times=2]` or `[rehearse: delay=5]`.
"""

import asyncio
import json
import re
import secrets
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from aiohttp import web

from openai_responses_mcp.rehearsal.answers import Situation, needs_search, read_question, write_answer
from openai_responses_mcp.rehearsal.wire import (
    STREAM_HEADERS,
    ApiError,
    build_response,
    encode_event,
    encode_json,
    numbered,
    stream_events,
    unfinished,
    usual_error,
)

_SEARCH_TOOLS = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")
_UNDER_WAY = ("queued", "in_progress")
_MOST_KEPT = 1000
_MAX_BODY_BYTES = 32 * 1024 * 1024
_HOST = "127.0.0.1"
_CLOSE_SECONDS = 0.1  # how long an answer under way may still take; zero would mean for ever

_Kept = TypeVar("_Kept")


# Requests


def check_key(authorization: str) -> None:
    scheme, _, key = authorization.partition(" ")
    if scheme.lower() != "bearer" or not key.strip():
        raise ApiError(401, "You didn't provide an API key. Send it as 'Authorization: Bearer YOUR_KEY'.")


def read_json(body: bytes) -> dict[str, Any]:
    try:
        value = json.loads(body)
    except (ValueError, RecursionError) as exc:
        raise ApiError(400, "We could not parse the JSON body of your request.") from exc
    if not isinstance(value, dict):
        raise ApiError(400, "The body of your request must be a JSON object.")
    return value


def read_starting_after(text: str | None) -> int:
    """The number of the last event that the reader has seen; -1 for none."""
    try:
        return -1 if text is None else max(int(text), -1)
    except ValueError as exc:
        message = f"Invalid type for 'starting_after': expected an integer, got '{str(text)[:80]}'."
        raise ApiError(400, message, param="starting_after", code="invalid_type") from exc


def tools_of(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [tool for tool in request.get("tools") or [] if isinstance(tool, dict)]


def has_search_tool(request: Mapping[str, Any]) -> bool:
    return any(tool.get("type") in _SEARCH_TOOLS for tool in tools_of(request))


def includes_sources(request: Mapping[str, Any]) -> bool:
    return "web_search_call.action.sources" in (request.get("include") or [])


class Wishes(NamedTuple):
    """The trouble that a question asks for."""

    status: int | None = None
    times: int | None = None
    delay: float = 0.0


_MARKER = re.compile(r"\[rehearse:([^\]]*)\]", re.IGNORECASE)
_KEYS: dict[str, tuple[Callable[[str], float], int, int, str]] = {
    "status": (int, 400, 599, "a status from 400 to 599"),
    "times": (int, 0, 1_000_000, "a whole number"),
    "delay": (float, 0, 86_400, "seconds"),
}


def read_wishes(text: str) -> tuple[str, Wishes]:
    """The question without its markers, and their wishes. Raises `ApiError` for an invalid marker."""
    values: dict[str, Any] = {}
    for pair in filter(str.strip, ";".join(_MARKER.findall(text)).split(";")):
        name, _, value = map(str.strip, pair.partition("="))
        problem = f"Unknown rehearsal key: '{name}'. Known keys: {', '.join(_KEYS)}."
        if name in _KEYS:
            parse, least, most, takes = _KEYS[name]
            problem = f"Rehearsal key '{name}' takes {takes}."
            try:
                values[name] = parse(value)
                problem = "" if least <= values[name] <= most else problem
            except ValueError:
                pass
        if problem:
            raise ApiError(400, problem, param="input", code="invalid_rehearsal")
    return _MARKER.sub("", text).strip(), Wishes(**values)


def previous_response_not_found(response_id: str) -> ApiError:
    message = f"Previous response with id '{response_id}' not found."
    return ApiError(400, message, param="previous_response_id", code="previous_response_not_found")


# Responses


class RehearsedRun:
    """One response, its numbered events so far, and what the API shows of it now.

    In the background it is worked on even without a reader. Any number of readers follow it, each from the event it
    wants, and leave when they like.
    """

    def __init__(self, response: dict[str, Any], events: Iterable[dict[str, Any]] = ()) -> None:
        self.response = response
        self._events = list(events)
        self._news = asyncio.Event()
        self._work: asyncio.Task[None] | None = None

    @classmethod
    def start(cls, response: dict[str, Any], events: AsyncIterator[dict[str, Any]]) -> "RehearsedRun":
        """Publish the events as they come."""
        run = cls(unfinished(response, "queued"))
        run._work = asyncio.create_task(run._publish(events))
        return run

    @property
    def is_under_way(self) -> bool:
        return self.response["status"] in _UNDER_WAY

    async def follow(self, starting_after: int = -1) -> AsyncIterator[list[dict[str, Any]]]:
        """The events after this number, in batches as they come, to the end of the run."""
        position = starting_after + 1
        while True:
            if batch := self._events[position:]:
                position += len(batch)
                yield batch
            elif self.is_under_way:
                await self._news.wait()
            else:
                return

    def cancel(self) -> None:
        """No effect once finished."""
        if self.is_under_way:
            self.stop()
            self.response = unfinished(self.response, "cancelled")
            self._wake_readers()

    def stop(self) -> None:
        """Stop working on it."""
        if self._work is not None:
            self._work.cancel()

    async def _publish(self, events: AsyncIterator[dict[str, Any]]) -> None:
        async for event in events:
            self._events.append(event)
            self.response = event.get("response", self.response)
            self._wake_readers()

    def _wake_readers(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


async def _spread(events: list[dict[str, Any]], seconds: float) -> AsyncIterator[dict[str, Any]]:
    """The events over this much time."""
    for event in events:
        yield event
        await asyncio.sleep(seconds / len(events))


# The server


class RehearsalServer:
    """`known` has earlier questions by response id, so that their conversations can continue."""

    def __init__(self, known: Mapping[str, str] | None = None) -> None:
        self._questions = dict(known or {})
        self._runs: dict[str, RehearsedRun] = {}
        self._times_asked = Counter[str]()
        app = web.Application(middlewares=[_as_the_api_refuses], client_max_size=_MAX_BODY_BYTES)
        app.on_response_prepare.append(_name_the_request)
        app.on_cleanup.append(self._stop_runs)
        app.router.add_post("/v1/responses", self._create)
        app.router.add_get("/v1/responses/{id}", self._retrieve, allow_head=False)
        app.router.add_post("/v1/responses/{id}/cancel", self._cancel)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handler_cancellation=True,  # a client that has left needs no answer
            shutdown_timeout=_CLOSE_SECONDS,
        )

    async def start(self) -> str:
        """Listen on a free port; gives the base URL for clients."""
        await self._runner.setup()
        await web.TCPSite(self._runner, _HOST, 0).start()
        port = self._runner.addresses[0][1]
        return f"http://{_HOST}:{port}/v1"

    async def close(self) -> None:
        """Stop listening and drop every connection; safe to call twice."""
        await self._runner.cleanup()

    async def _stop_runs(self, app: web.Application) -> None:
        for run in self._runs.values():
            run.stop()

    async def _create(self, request: web.Request) -> web.StreamResponse:
        asked = read_json(await request.read())
        earlier = asked.get("previous_response_id")
        if earlier is not None and earlier not in self._questions:
            raise previous_response_not_found(earlier)
        text, hints = read_question(asked["input"])
        question, wishes = read_wishes(text)
        if wishes.times is not None:
            self._times_asked[text] += 1
            wishes = wishes if self._times_asked[text] <= wishes.times else Wishes()
        if not asked.get("background"):
            await asyncio.sleep(wishes.delay)
        if wishes.status is not None:
            raise usual_error(wishes.status)
        situation = Situation(
            question=question,
            hints=hints,
            is_searching=has_search_tool(asked) and needs_search(question),
            includes_sources=includes_sources(asked),
            earlier_question=None if earlier is None else self._questions[earlier],
        )
        response = build_response(asked, write_answer(situation), question + hints)
        events = numbered(stream_events(response))
        run = RehearsedRun(response, events)
        if response["background"]:
            run = RehearsedRun.start(response, _spread(events, wishes.delay))
        if response["store"]:
            _remember(self._questions, response["id"], question)
            _remember(self._runs, response["id"], run)
        return await _stream(request, run) if asked.get("stream") else _json(run.response)

    async def _retrieve(self, request: web.Request) -> web.StreamResponse:
        run = self._run_in(request)
        if request.query.get("stream") != "true":
            return _json(run.response)
        if not run.response["background"]:
            raise ApiError(400, "Only a response that was created in the background can be streamed.", param="stream")
        return await _stream(request, run, read_starting_after(request.query.get("starting_after")))

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        run = self._run_in(request)
        if not run.response["background"]:
            raise ApiError(400, "Cannot cancel a synchronous response.")
        run.cancel()
        return _json(run.response)

    def _run_in(self, request: web.Request) -> RehearsedRun:
        response_id = request.match_info["id"]
        if response_id not in self._runs:
            raise ApiError(404, f"Response with id '{response_id}' not found.")
        return self._runs[response_id]


def _remember(kept: dict[str, _Kept], key: str, value: _Kept) -> None:
    """If there are too many, the oldest is forgotten."""
    kept[key] = value
    if len(kept) > _MOST_KEPT:
        del kept[next(iter(kept))]


def _json(value: Any, status: int = 200) -> web.Response:
    return web.Response(status=status, body=encode_json(value), content_type="application/json")


async def _stream(request: web.Request, run: RehearsedRun, starting_after: int = -1) -> web.StreamResponse:
    reply = web.StreamResponse(headers=STREAM_HEADERS)
    await reply.prepare(request)
    async for batch in run.follow(starting_after):
        await reply.write(b"".join(map(encode_event, batch)))
    return reply


@web.middleware
async def _as_the_api_refuses(
    request: web.Request, handler: Callable[[web.Request], Awaitable[web.StreamResponse]]
) -> web.StreamResponse:
    try:
        if request.match_info.http_exception is None:
            check_key(request.headers.get("authorization", ""))
        return await handler(request)
    except ApiError as exc:
        return _json(exc.body(), exc.status)
    except web.HTTPException as exc:
        return _json(ApiError(exc.status, f"{exc.reason} ({request.method} {request.path})").body(), exc.status)


async def _name_the_request(request: web.Request, reply: web.StreamResponse) -> None:
    reply.headers["x-request-id"] = f"req_{secrets.token_hex(16)}"
