"""Calls that take long: progress notifications while the client waits, or a promise in place of the answer.

Progress rises strictly, with at most four notifications a second and at least one every ten seconds. After a promise the
research continues at the API.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from openai_responses_mcp.domain.cancellation import has_happened_within
from openai_responses_mcp.domain.jsonrpc import JsonObject, is_id
from openai_responses_mcp.domain.models import Answer, Progress, ProgressListener, StartListener
from openai_responses_mcp.domain.ports import LLMGateway, WallClock
from openai_responses_mcp.server.jsonrpc import notification_message

Inquiry = Callable[[StartListener], Coroutine[Any, Any, Answer]]


class UnfinishedAnswers:
    def __init__(self, gateway: LLMGateway, clock: WallClock) -> None:
        self._gateway = gateway
        self._clock = clock
        self._ending: set[asyncio.Task[Answer]] = set()

    async def answer_or_promise(
        self,
        inquire: Inquiry,
        patience_seconds: float,
        make_promise: Callable[[str], JsonObject | None],
        *,
        is_asking: bool = True,
    ) -> Answer | JsonObject:
        """The answer; or, once `patience_seconds` have passed and the response id is known, a promise made from the id.

        If `make_promise` gives None, the answer is waited for. A call that asked the question lets the response go
        before it stops reading (`is_asking`); one that only fetches the response does not.

        Nothing is awaited between letting go and returning. So a cancellation of this call either cancels the response
        too, or comes too late for both.
        """
        given: asyncio.Future[tuple[str, JsonObject]] = asyncio.get_running_loop().create_future()

        def hear(response_id: str) -> None:
            promised = make_promise(response_id)
            if promised is not None:
                given.set_result((response_id, promised))

        async def patient() -> tuple[str, JsonObject]:
            await self._clock.sleep(patience_seconds)
            return await given

        answering = asyncio.create_task(inquire(hear))
        waiting = asyncio.create_task(patient())
        try:
            await asyncio.wait({answering, waiting}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            answering.cancel()
            # The response must be marked as abandoned before this call ends.
            await asyncio.gather(answering, return_exceptions=True)
            raise
        finally:
            waiting.cancel()
        if answering.done():
            return answering.result()
        response_id, promised = waiting.result()
        if is_asking:
            self._gateway.let_go(response_id)
        self._ending.add(answering)
        answering.add_done_callback(self._forget)
        answering.cancel()
        return promised

    def _forget(self, answering: asyncio.Task[Answer]) -> None:
        self._ending.discard(answering)
        if not answering.cancelled():
            answering.exception()  # Retrieved, or asyncio would log a warning.


SHORTEST_GAP_SECONDS = 0.25
LONGEST_GAP_SECONDS = 8.0

ProgressToken = int | str


def progress_token_of(params: JsonObject) -> ProgressToken | None:
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    return token if is_id(token) else None


@asynccontextmanager
async def reporting(
    token: ProgressToken, send: Callable[[JsonObject], None], clock: WallClock, *, begins_at_once: bool = True
) -> AsyncIterator[ProgressListener]:
    """Yields the listener for progress. Nothing is sent after the block.

    A call that will be answered with a task sends no progress at once: it would be the only notification.
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
