"""Responses that are no longer waited for: they are cancelled at the API too, so that nothing more is billed.

The cancelled call does not wait for that. A response whose id is not known yet is cancelled as soon as it is.
"""

import asyncio
from contextlib import suppress
from itertools import islice
from typing import Any

from openai_responses_mcp.adapters.openai.api import ResponsesApi
from openai_responses_mcp.adapters.openai.background import BackgroundRun
from openai_responses_mcp.adapters.openai.retrying import growing_waits
from openai_responses_mcp.domain.errors import (
    PASSING_TROUBLE,
    GatewayError,
    GatewayOverloaded,
    GatewayRefused,
    GatewayUnreachable,
)
from openai_responses_mcp.domain.ports import WallClock

LONGEST_SECONDS = 60.0
MOST_TRIES = 6


class AbandonedRuns:
    def __init__(self, api: ResponsesApi, clock: WallClock) -> None:
        self._api = api
        self._clock = clock
        self._tasks: set[asyncio.Task[bool]] = set()

    def add(self, run: BackgroundRun, reading: "asyncio.Future[object]", *, cancels: bool) -> None:
        """Stop reading, and cancel the response if asked to. Its listeners hear nothing more."""
        run.silence()
        task = asyncio.ensure_future(self._abandon(run, reading, cancels=cancels))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self, seconds: float) -> bool | None:
        """Wait at most that long, and say whether all of them are cancelled. None if there were none."""
        if not self._tasks:
            return None
        done, pending = await asyncio.wait(self._tasks, timeout=seconds)
        return not pending and all(task.result() for task in done)

    async def _abandon(self, run: BackgroundRun, reading: "asyncio.Future[object]", *, cancels: bool) -> bool:
        with suppress(TimeoutError, GatewayError):
            async with asyncio.timeout(LONGEST_SECONDS):
                if cancels:
                    await _until_known(run, reading)
                await _stopped(reading)
                if not cancels or run.has_answer:
                    return True
                if run.response_id is None:
                    # What does not run in the background ends with its connection.
                    return run.is_known.is_set() or _has_not_begun(reading)
                await self._cancel(run.response_id)
                return True
        return False

    async def _cancel(self, response_id: str) -> None:
        waits = islice(growing_waits(), MOST_TRIES - 1)
        while True:
            try:
                return await self._api.cancel(response_id)
            except PASSING_TROUBLE:
                wait = next(waits, None)
                if wait is None:
                    raise
            await self._clock.sleep(wait)


def _has_not_begun(reading: "asyncio.Future[object]") -> bool:
    """Whether the API said no, or was not there: then nothing goes on."""
    refusals = (GatewayRefused, GatewayOverloaded, GatewayUnreachable)
    return not reading.cancelled() and isinstance(reading.exception(), refusals)


async def _until_known(run: BackgroundRun, reading: "asyncio.Future[object]") -> None:
    knowing = asyncio.ensure_future(run.is_known.wait())
    either: set[asyncio.Future[Any]] = {knowing, reading}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        knowing.cancel()


async def _stopped(reading: "asyncio.Future[object]") -> None:
    reading.cancel()
    await asyncio.wait({reading})
    if not reading.cancelled():
        reading.exception()  # Looked at, so that asyncio does not complain.
