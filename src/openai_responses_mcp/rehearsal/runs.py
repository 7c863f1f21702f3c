"""Responses that run in the background, whether or not they are read, and a memory of limited size.

A run publishes numbered events. Any number of readers follow it, each from the event it wants, and leave when they
like. Its state is what the latest event said of the response, until it is cancelled.
"""

import asyncio
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable
from typing import Any, Generic, TypeVar

from openai_responses_mcp.rehearsal.wire import ApiError, unfinished

MAX_REMEMBERED = 10_000

_Kept = TypeVar("_Kept")


class Memory(Generic[_Kept]):
    def __init__(self, max_remembered: int = MAX_REMEMBERED) -> None:
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

    def __init__(self, max_remembered: int = MAX_REMEMBERED) -> None:
        self._counts = Memory[int](max_remembered)

    def is_over(self, question: str, times: int | None) -> bool:
        """Whether the question has been asked this many times before; counts this time unless it has."""
        if times is None:
            return False
        asked = self._counts.maybe_recall(question) or 0
        if asked >= times:
            return True
        self._counts.remember(question, asked + 1)
        return False


MAX_STORED = 1000

_UNDER_WAY = ("queued", "in_progress")


class RehearsedRun:
    """One response, its events so far, and what the API shows of it now."""

    def __init__(self, response: dict[str, Any], events: Iterable[dict[str, Any]] = ()) -> None:
        self.response = response
        self._events = list(events)
        self._news = asyncio.Event()
        self._work: asyncio.Task[None] | None = None

    @classmethod
    def start(cls, response: dict[str, Any], events: AsyncIterator[dict[str, Any]]) -> "RehearsedRun":
        """Begin to publish the events, at the pace at which they come."""
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
        """End it where it is; a run that is over stays what it is."""
        if self.is_under_way:
            self.stop()
            self.response = unfinished(self.response, "cancelled")
            self._tell_readers()

    def stop(self) -> None:
        """Stop working on it."""
        if self._work is not None:
            self._work.cancel()

    async def _publish(self, events: AsyncIterator[dict[str, Any]]) -> None:
        async for event in events:
            self._events.append(event)
            self.response = event.get("response", self.response)
            self._tell_readers()

    def _tell_readers(self) -> None:
        self._news.set()
        self._news = asyncio.Event()


class StoredRuns:
    """The runs that can be asked for by id; each method raises ApiError in the words of the API."""

    def __init__(self, max_stored: int = MAX_STORED) -> None:
        self._runs = Memory[RehearsedRun](max_stored)

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
