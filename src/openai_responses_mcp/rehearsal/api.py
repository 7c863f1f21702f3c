"""The API without HTTP: it remembers conversations, answers, and runs responses in the background.

A question can ask for trouble, to see how a client handles it: `[rehearse: status=429; times=2]` or `[rehearse: delay=5]`.
"""

import asyncio
import json
import re
from collections import OrderedDict
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from typing import Any, Generic, NamedTuple, TypeVar

from openai_responses_mcp.rehearsal.answers import Situation, needs_search, read_question, write_answer
from openai_responses_mcp.rehearsal.wire import (
    ApiError,
    build_response,
    numbered,
    stream_events,
    unfinished,
    usual_error,
)

_SEARCH_TOOLS = ("web_search", "web_search_2025_08_26", "web_search_preview", "web_search_preview_2025_03_11")
_SOURCES = "web_search_call.action.sources"
_UNDER_WAY = ("queued", "in_progress")


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
    if text is None:
        return -1
    try:
        return max(int(text), -1)
    except ValueError as exc:
        message = f"Invalid type for 'starting_after': expected an integer, got '{text[:80]}'."
        raise ApiError(400, message, param="starting_after", code="invalid_type") from exc


def tools_of(request: Mapping[str, Any]) -> list[dict[str, Any]]:
    return [tool for tool in request.get("tools") or [] if isinstance(tool, dict)]


def search_tools_of(request: Mapping[str, Any]) -> list[str]:
    return [tool["type"] for tool in tools_of(request) if tool.get("type") in _SEARCH_TOOLS]


def includes_sources(request: Mapping[str, Any]) -> bool:
    return _SOURCES in (request.get("include") or [])


# Trouble on request


class Wishes(NamedTuple):
    status: int | None = None
    times: int | None = None
    delay: float = 0.0


_MARKER = re.compile(r"\[rehearse:([^\]]*)\]", re.IGNORECASE)
_KEYS: dict[str, tuple[Callable[[str], float], range, str]] = {
    "status": (int, range(400, 600), "a status from 400 to 599"),
    "times": (int, range(1_000_001), "a whole number"),
    "delay": (float, range(86_401), "seconds"),
}


def read_wishes(text: str) -> tuple[str, Wishes]:
    """The question without its markers, and their wishes. Raises `ApiError` for an invalid marker."""
    values: dict[str, Any] = {}
    for pair in ";".join(_MARKER.findall(text)).split(";"):
        name, _, value = map(str.strip, pair.partition("="))
        if not pair.strip():
            continue
        if name not in _KEYS:
            raise _no_sense(f"Unknown rehearsal key: '{name}'. Known keys: {', '.join(_KEYS)}.")
        parse, bounds, takes = _KEYS[name]
        try:
            values[name] = parse(value)
        except ValueError:
            raise _no_sense(f"Rehearsal key '{name}' takes {takes}.") from None
        if not bounds.start <= values[name] <= bounds.stop - 1:
            raise _no_sense(f"Rehearsal key '{name}' takes {takes}.")
    return _MARKER.sub("", text).strip(), Wishes(**values)


def _no_sense(message: str) -> ApiError:
    return ApiError(400, message, param="input", code="invalid_rehearsal")


# What is remembered

_Kept = TypeVar("_Kept")


class Memory(Generic[_Kept]):
    """Of limited size: the oldest entry is forgotten first."""

    def __init__(self, max_remembered: int = 10_000) -> None:
        self._max_remembered = max_remembered
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    def maybe_recall(self, key: str) -> _Kept | None:
        return self._kept.get(key)

    def all_kept(self) -> Iterable[_Kept]:
        return self._kept.values()

    def remember(self, key: str, value: _Kept) -> None:
        self._kept[key] = value
        self._kept.move_to_end(key)
        if len(self._kept) > self._max_remembered:
            self._kept.popitem(last=False)


class TimesAsked:
    """Counts how often each question was asked, for questions that ask for trouble a number of times."""

    def __init__(self) -> None:
        self._counts = Memory[int]()

    def is_over(self, question: str, times: int | None) -> bool:
        """True if the question was already asked this many times. If not, counts this time."""
        if times is None:
            return False
        asked = self._counts.maybe_recall(question) or 0
        if asked >= times:
            return True
        self._counts.remember(question, asked + 1)
        return False


# Responses that run in the background, even without a reader


class RehearsedRun:
    """One response, its numbered events so far, and what the API shows of it now.

    Any number of readers follow it, each from the event it wants, and leave when they like.
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


class StoredRuns:
    """The runs that can be asked for by id; each method raises ApiError in the words of the API."""

    def __init__(self) -> None:
        self._runs = Memory[RehearsedRun](1000)

    def keep(self, run: RehearsedRun) -> None:
        self._runs.remember(run.response["id"], run)

    def find(self, response_id: str) -> RehearsedRun:
        run = self._runs.maybe_recall(response_id)
        if run is None:
            raise ApiError(404, f"Response with id '{response_id}' not found.")
        return run

    def find_streamed(self, response_id: str) -> RehearsedRun:
        run = self.find(response_id)
        if not run.response["background"]:
            raise ApiError(400, "Only a response that was created in the background can be streamed.", param="stream")
        return run

    def cancel(self, response_id: str) -> RehearsedRun:
        run = self.find(response_id)
        if not run.response["background"]:
            raise ApiError(400, "Cannot cancel a synchronous response.")
        run.cancel()
        return run

    def stop(self) -> None:
        """Stop working on all of them."""
        for run in self._runs.all_kept():
            run.stop()


# Answering


class RehearsedApi:
    """`known` has the questions of earlier responses by their ids."""

    def __init__(self, known: Mapping[str, str]) -> None:
        self.runs = StoredRuns()
        self._questions = Memory[str]()
        self._times_asked = TimesAsked()
        for response_id, question in known.items():
            self._questions.remember(response_id, question)

    async def create(self, request: Mapping[str, Any]) -> RehearsedRun:
        """A finished run, or a background run that has just begun."""
        earlier_question = self._earlier_question(request.get("previous_response_id"))
        asked = read_question(request["input"])
        question, wishes = read_wishes(asked.text)
        if self._times_asked.is_over(asked.text, wishes.times):
            wishes = Wishes()
        if not request.get("background"):
            await asyncio.sleep(wishes.delay)
        if wishes.status is not None:
            raise usual_error(wishes.status)
        situation = Situation(
            question=question,
            hints=asked.hints,
            is_searching=bool(search_tools_of(request)) and needs_search(question),
            includes_sources=includes_sources(request),
            earlier_question=earlier_question,
        )
        response = build_response(request, write_answer(situation), question + asked.hints)
        run = self._run(response, wishes.delay)
        if response["store"]:
            self._questions.remember(response["id"], question)
            self.runs.keep(run)
        return run

    def _run(self, response: dict[str, Any], delay_seconds: float) -> RehearsedRun:
        events = numbered(stream_events(response))
        if not response["background"]:
            return RehearsedRun(response, events)
        return RehearsedRun.start(response, _spread(events, delay_seconds))

    def _earlier_question(self, response_id: str | None) -> str | None:
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


def previous_response_not_found(response_id: str) -> ApiError:
    message = f"Previous response with id '{response_id}' not found."
    return ApiError(400, message, param="previous_response_id", code="previous_response_not_found")
