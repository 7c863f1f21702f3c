"""Calls that take long: progress while the client waits, or a promise before the research is finished.

Notifications of progress rise strictly, at most four a second, at least one every ten seconds. After a promise the
research goes on at the API.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from openai_responses_mcp.domain.cancellation import has_happened_within
from openai_responses_mcp.domain.jsonrpc import JsonObject
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
        """The answer; or, when the patience is over and as soon as the id is known, what the id makes in its place.

        Where it makes None, the answer is waited for. A call that asks lets the response go before it stops to read; one that only fetches has nothing to let go.

        Nothing is awaited between letting the response go and coming back. So a cancellation of this call either
        cancels the response too, or comes too late for both.
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
            # So that the response is known to be abandoned when this call has ended.
            await asyncio.gather(answering, return_exceptions=True)
            raise
        finally:
            waiting.cancel()
        if answering.done():
            return answering.result()
        response_id, promised = waiting.result()
        if is_asking:
            self._gateway.let_go(response_id)
        self._stop_listening(answering)
        return promised

    def _stop_listening(self, answering: asyncio.Task[Answer]) -> None:
        self._ending.add(answering)
        answering.add_done_callback(self._forget)
        answering.cancel()

    def _forget(self, answering: asyncio.Task[Answer]) -> None:
        self._ending.discard(answering)
        if not answering.cancelled():
            answering.exception()  # Looked at, or asyncio would complain.


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
    """Yields the listener for news; once the block is left, nothing more is sent.

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
