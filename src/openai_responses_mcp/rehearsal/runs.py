"""Responses that run in the background, whether or not anybody reads them.

A run publishes numbered events. Any number of readers follow it, each from the event it wants, and leave when they
like. Its state is what the latest event said of the response, until it is cancelled.
"""

import asyncio
from collections.abc import AsyncIterator, Iterable
from typing import Any

from openai_responses_mcp.rehearsal.api_errors import ApiError
from openai_responses_mcp.rehearsal.memory import Memory
from openai_responses_mcp.rehearsal.response_objects import unfinished

MAX_STORED = 1000

_UNDER_WAY = ("queued", "in_progress")


class Run:
    """One response, its events so far, and what the API shows of it now."""

    def __init__(self, response: dict[str, Any], events: Iterable[dict[str, Any]] = ()) -> None:
        self.response = response
        self._events = list(events)
        self._news = asyncio.Event()
        self._work: asyncio.Task[None] | None = None

    @classmethod
    def start(cls, response: dict[str, Any], events: AsyncIterator[dict[str, Any]]) -> "Run":
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
        self._runs = Memory[Run](max_stored)

    def keep(self, run: Run) -> None:
        self._runs.remember(run.response["id"], run)

    def find(self, response_id: str) -> Run:
        run = self._runs.maybe_recall(response_id)
        if run is None:
            raise ApiError(404, f"Response with id '{response_id}' not found.")
        return run

    def find_streamed(self, response_id: str) -> Run:
        run = self.find(response_id)
        if not run.response["background"]:
            raise ApiError(400, "Only a response that was created in the background can be streamed.", param="stream")
        return run

    def cancel(self, response_id: str) -> Run:
        run = self.find(response_id)
        if not run.response["background"]:
            raise ApiError(400, "Cannot cancel a synchronous response.")
        run.cancel()
        return run

    def stop(self) -> None:
        """Stop working on all of them."""
        for run in self._runs.all_kept():
            run.stop()
