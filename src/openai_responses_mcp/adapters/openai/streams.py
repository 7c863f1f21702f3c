"""One reply of the API while it comes in: its events, to the one that ends the answer, and what follows that."""

import asyncio
import contextlib
from collections.abc import Callable
from contextlib import aclosing

import httpx2

from openai_responses_mcp.adapters.openai.errors import VENDOR_ERRORS, stream_error
from openai_responses_mcp.adapters.openai.replies import COMPLETED, ReplyReader
from openai_responses_mcp.adapters.openai.wire import JsonObject
from openai_responses_mcp.domain.errors import GatewayBroken

# Usually nothing follows the last event. If it takes longer than this, a new connection is the cheaper way.
LONGEST_END_SECONDS = 0.5
LONGEST_END_BYTES = 64 * 1024

_FINAL_EVENTS = (COMPLETED, "response.incomplete", "response.failed", "response.cancelled")

EventListener = Callable[[JsonObject], None]


class StreamEnded(Exception):
    """The API stopped sending before the event that ends the answer."""


def stream_cut() -> GatewayBroken:
    what = "The stream ended before the answer was complete."
    return GatewayBroken(f"{what} Ask again.", what=what)


class ReplyStream:
    def __init__(self, reply: httpx2.Response, *, skips_words: bool = False) -> None:
        self._reply = reply
        self._chunks = reply.aiter_bytes()
        self._reader = ReplyReader(reply.headers.get("content-type", ""), skips_words=skips_words)

    async def final_response(self, on_event: EventListener | None = None) -> object:
        """The response object of the event that ends the answer. The listener hears every event up to it.

        Raises `StreamEnded`, or `GatewayBroken` for an event that is an error.
        """
        async for chunk in self._chunks:
            for event in self._reader.receive(chunk):
                if on_event is not None:
                    on_event(event)
                if _ends_answer(event):
                    return event.get("response")
            if self._reader.has_ended:
                break
        for event in self._reader.end():
            return event["response"]
        raise StreamEnded

    async def read_to_end(self) -> None:
        """So that the connection can be used again. Whatever goes wrong now costs the connection, not the answer."""
        count = 0
        with contextlib.suppress(TimeoutError, *VENDOR_ERRORS):
            async with asyncio.timeout(LONGEST_END_SECONDS):
                async for chunk in self._chunks:
                    count += len(chunk)
                    if count > LONGEST_END_BYTES:
                        return

    async def beginning(self) -> bytes:
        """The part of a body that is looked at. The rest is not read."""
        beginning = b""
        async for chunk in self._chunks:
            beginning += chunk
            if len(beginning) > LONGEST_END_BYTES:
                break
        return beginning

    async def close(self) -> None:
        async with aclosing(self._reply), aclosing(self._chunks):
            pass


def _ends_answer(event: JsonObject) -> bool:
    """Raises `GatewayBroken` for an event that ends the stream without one."""
    kind = event.get("type")
    if kind == "error" or event.get("error"):
        raise stream_error(event)
    return kind in _FINAL_EVENTS
