"""Calls that are answered before their research is finished: it goes on at the API, and the client gets a promise."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

from openai_responses_mcp.domain.models import Answer, StartListener
from openai_responses_mcp.domain.ports import Clock, LLMGateway
from openai_responses_mcp.server.jsonrpc import JsonObject

Inquiry = Callable[[StartListener], Coroutine[Any, Any, Answer]]


class Promise:
    """What to say instead of an answer, and when.

    `word` makes it from the id of the response; None where there is nothing to be said, and the answer is waited for.
    """

    def __init__(self, patience_seconds: float, word: Callable[[str], JsonObject | None]) -> None:
        self.patience_seconds = patience_seconds
        self.word = word


class UnfinishedAnswers:
    def __init__(self, gateway: LLMGateway, clock: Clock) -> None:
        self._gateway = gateway
        self._clock = clock
        self._ending: set[asyncio.Task[Answer]] = set()

    async def answer_or_promise(
        self, inquire: Inquiry, promise: Promise, *, is_asking: bool = True
    ) -> Answer | JsonObject:
        """The answer; or, when the patience is over and as soon as the id is known, the promise of one.

        Who asks has to let the response go before they stop; who only fetches one does not hold it.

        Nothing is awaited between letting the response go and coming back, so that whoever cancels this call either
        cancels the response too, or comes too late for both.
        """
        given: asyncio.Future[tuple[str, JsonObject]] = asyncio.get_running_loop().create_future()

        def hear(response_id: str) -> None:
            word = promise.word(response_id)
            if word is not None:
                given.set_result((response_id, word))

        answering = asyncio.create_task(inquire(hear))
        waiting = asyncio.create_task(self._after(promise.patience_seconds, given))
        try:
            await asyncio.wait({answering, waiting}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            answering.cancel()
            # Also for what is cancelled at the API: who waits for this call waits for that.
            await asyncio.gather(answering, return_exceptions=True)
            raise
        finally:
            waiting.cancel()
        if answering.done():
            return answering.result()
        response_id, word = waiting.result()
        if is_asking:
            self._gateway.let_go(response_id)
        self._stop_listening(answering)
        return word

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
            answering.exception()  # Looked at, or asyncio would complain that nobody has.
