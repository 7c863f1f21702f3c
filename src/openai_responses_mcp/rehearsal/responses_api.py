"""The API apart from HTTP: it checks a request, remembers the conversation and answers, or raises ApiError."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from typing import Any

from openai_responses_mcp.rehearsal.answers import Situation, write_answer
from openai_responses_mcp.rehearsal.api_errors import ApiError, usual_error
from openai_responses_mcp.rehearsal.markers import read_wishes
from openai_responses_mcp.rehearsal.memory import MAX_REMEMBERED, Memory, TimesAsked
from openai_responses_mcp.rehearsal.questions import needs_search, read_question
from openai_responses_mcp.rehearsal.request_checks import check_request, may_search
from openai_responses_mcp.rehearsal.response_objects import build_response
from openai_responses_mcp.rehearsal.runs import Run, StoredRuns
from openai_responses_mcp.rehearsal.stream_events import numbered, stream_events

_SOURCES = "web_search_call.action.sources"


class ResponsesApi:
    def __init__(self, *, max_remembered: int = MAX_REMEMBERED) -> None:
        self.runs = StoredRuns()
        self._questions = Memory[str](max_remembered)
        self._times_asked = TimesAsked(max_remembered)

    async def create(self, request: Mapping[str, Any]) -> Run:
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

    def _run(self, request: Mapping[str, Any], response: dict[str, Any], delay_seconds: float) -> Run:
        if response["background"]:
            events = numbered(stream_events(response))
            run = Run.start(response, _spread(events, delay_seconds))
            self.runs.keep(run)
            return run
        if response["store"]:
            self.runs.keep(Run(response))
        return Run(response, numbered(stream_events(response)) if request.get("stream") else ())

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
