"""Calls that are answered before their research is finished: it goes on at the API, and the client gets a promise."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from openai_responses_mcp.domain.jsonrpc import JsonObject
from openai_responses_mcp.domain.models import Answer, StartListener
from openai_responses_mcp.domain.ports import LLMGateway, WallClock

Inquiry = Callable[[StartListener], Coroutine[Any, Any, Answer]]


class Promise:
    """What a call is answered with instead of its answer, and after how long.

    `make` makes it from the id of the response. Where it makes None, the answer is waited for.
    """

    def __init__(self, patience_seconds: float, make: Callable[[str], JsonObject | None]) -> None:
        self.patience_seconds = patience_seconds
        self.make = make


class UnfinishedAnswers:
    def __init__(self, gateway: LLMGateway, clock: WallClock) -> None:
        self._gateway = gateway
        self._clock = clock
        self._ending: set[asyncio.Task[Answer]] = set()

    async def answer_or_promise(
        self, inquire: Inquiry, promise: Promise, *, is_asking: bool = True
    ) -> Answer | JsonObject:
        """The answer; or, when the patience is over and as soon as the id is known, the promise of one.

        A call that asks lets the response go before it stops to read; one that only fetches has nothing to let go.

        Nothing is awaited between letting the response go and coming back. So a cancellation of this call either
        cancels the response too, or comes too late for both.
        """
        given: asyncio.Future[tuple[str, JsonObject]] = asyncio.get_running_loop().create_future()

        def hear(response_id: str) -> None:
            promised = promise.make(response_id)
            if promised is not None:
                given.set_result((response_id, promised))

        answering = asyncio.create_task(inquire(hear))
        waiting = asyncio.create_task(self._after(promise.patience_seconds, given))
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

    async def _after(self, seconds: float, given: asyncio.Future[tuple[str, JsonObject]]) -> tuple[str, JsonObject]:
        await self._clock.sleep(seconds)
        return await given

    def _stop_listening(self, answering: asyncio.Task[Answer]) -> None:
        self._ending.add(answering)
        answering.add_done_callback(self._forget)
        answering.cancel()

    def _forget(self, answering: asyncio.Task[Answer]) -> None:
        self._ending.discard(answering)
        if not answering.cancelled():
            answering.exception()  # Looked at, or asyncio would complain.
