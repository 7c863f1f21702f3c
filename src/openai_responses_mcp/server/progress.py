"""Progress notifications of one call: strictly rising, at most four a second, at least one every ten seconds."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from openai_responses_mcp.domain.jsonrpc import JsonObject
from openai_responses_mcp.domain.models import Progress, ProgressListener
from openai_responses_mcp.domain.ports import WallClock
from openai_responses_mcp.domain.waiting import has_happened_within
from openai_responses_mcp.server.jsonrpc import notification_message

SHORTEST_GAP_SECONDS = 0.25
LONGEST_GAP_SECONDS = 8.0

ProgressToken = int | str


def progress_token_of(params: JsonObject) -> ProgressToken | None:
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if isinstance(token, str | int) and not isinstance(token, bool) else None


@asynccontextmanager
async def reporting(
    token: ProgressToken, send: Callable[[JsonObject], None], clock: WallClock, *, begins_at_once: bool = True
) -> AsyncIterator[ProgressListener]:
    """Yields the listener to tell the news to; once the block is left, nothing more is sent.

    A call that is about to be answered with a task does not begin at once: such a call has no progress.
    """
    reporter = _Reporter(token, send, clock)
    task = asyncio.create_task(reporter.run(begins_at_once=begins_at_once))
    try:
        yield reporter.hear
    finally:
        task.cancel()


class _Reporter:
    def __init__(self, token: ProgressToken, send: Callable[[JsonObject], None], clock: WallClock) -> None:
        self._token = token
        self._send = send
        self._clock = clock
        self._started = clock.monotonic()
        self._count = 0
        self._message = "asking the model"
        self._news = asyncio.Event()

    def hear(self, progress: Progress) -> None:
        self._message = progress.message
        self._news.set()

    async def run(self, *, begins_at_once: bool) -> None:
        if begins_at_once:
            self._report(self._message)
        while True:
            await self._clock.sleep(SHORTEST_GAP_SECONDS)
            if await has_happened_within(self._news, LONGEST_GAP_SECONDS, self._clock):
                self._news.clear()
                self._report(self._message)
            else:
                waited = round(self._clock.monotonic() - self._started)
                self._report(f"{self._message} ({waited} s)")

    def _report(self, message: str) -> None:
        self._count += 1
        params = {"progressToken": self._token, "progress": self._count, "message": message}
        self._send(notification_message("notifications/progress", params))
