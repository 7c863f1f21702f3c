"""Reads one reply of the API as it arrives: its JSON events, up to the event that ends the answer.

Asked for a stream, most APIs send events, and some a single JSON object. The first byte shows which it is; if it does
not, the content type decides. A single object is treated as the event that would have ended a stream.
"""

import asyncio
import contextlib
import json
from collections.abc import Callable, Iterator
from contextlib import aclosing
from typing import Any

import httpx2

from openai_responses_mcp.adapters.event_stream import EventReader
from openai_responses_mcp.adapters.openai.errors import VENDOR_ERRORS, stream_error
from openai_responses_mcp.adapters.openai.wire import JsonObject
from openai_responses_mcp.domain.errors import GatewayBroken
from openai_responses_mcp.domain.texts import Sentence

LONGEST_REPLY_BYTES = 32 * 1024 * 1024
# The longest event, or reply that is a single object. No model writes as much.
LONGEST_OBJECT_BYTES = 2 * 1024 * 1024
# In one event or reply. They take long to decode, unlike the text in them.
MOST_BRACKETS = 50_000
COMPLETED = "response.completed"

_FIRST_BYTES_OF_EVENTS = b"edir:"  # of event, data, id, retry and of comments


class BodyTooLong(ValueError):
    """The API sends more than any answer can be."""

    def __init__(self, limit: int, what: str) -> None:
        super().__init__(f"more than {limit // (1024 * 1024)} MiB in {what}")


class ReplyReader:
    """Raises ValueError or RecursionError if the reply cannot be read."""

    def __init__(self, content_type: str) -> None:
        self._is_declared = content_type.lower().startswith("text/event-stream")
        self._is_stream: bool | None = None
        self._events = EventReader(LONGEST_OBJECT_BYTES)
        self._pieces: list[bytes] = []
        self._count = 0
        self._since_last_event = 0
        self._has_events = False
        self.has_ended = False

    def receive(self, data: bytes) -> Iterator[dict[str, Any]]:
        self._count += len(data)
        self._since_last_event += len(data)
        if self._count > LONGEST_REPLY_BYTES:
            raise BodyTooLong(LONGEST_REPLY_BYTES, "a reply")
        if self._is_stream is None:
            data = data.lstrip()
            if not data:
                return
            is_event = data[0] in _FIRST_BYTES_OF_EVENTS
            self._is_stream = is_event or (self._is_declared and not data.startswith(b"{"))
        if not self._is_stream:
            self._pieces.append(data)
            self._refuse_long_object()
            return
        for event in self._events.feed(data):
            self._has_events = True
            self._since_last_event = 0
            if event is None:
                raise BodyTooLong(LONGEST_OBJECT_BYTES, "one event")
            if event.startswith(b"[DONE]"):
                self.has_ended = True
                return
            value = _parsed(event)
            if not isinstance(value, dict):
                raise ValueError("a stream event is no object")
            yield value
        self._refuse_long_object()

    def end(self) -> Iterator[dict[str, Any]]:
        """The single object, which is complete only at the end of the body."""
        if self._pieces or not (self._is_stream or self._is_declared):
            yield {"type": COMPLETED, "response": _parsed(b"".join(self._pieces))}
        elif not (self._has_events or self._is_declared):
            raise ValueError("neither JSON nor a stream of events")

    def _refuse_long_object(self) -> None:
        if self._since_last_event > LONGEST_OBJECT_BYTES:
            raise BodyTooLong(LONGEST_OBJECT_BYTES, "one event" if self._is_stream else "one object")


def _parsed(content: bytes) -> object:
    if content.count(b"[") + content.count(b"{") > MOST_BRACKETS:
        raise ValueError(f"more than {MOST_BRACKETS} lists and objects in one reply")
    return json.loads(content.decode("utf-8"))


# Usually nothing follows the last event. If it takes longer than this, a new connection is cheaper.
LONGEST_END_SECONDS = 0.5
LONGEST_END_BYTES = 64 * 1024

_FINAL_EVENTS = (COMPLETED, "response.incomplete", "response.failed", "response.cancelled")

EventListener = Callable[[JsonObject], None]


class StreamEnded(Exception):
    """The API stopped sending before the event that ends the answer."""


def stream_cut() -> GatewayBroken:
    what = Sentence("The stream ended before the answer was complete.")
    return GatewayBroken(Sentence("{what} Ask again.", what=what), what_happened=what)


class ReplyStream:
    def __init__(self, reply: httpx2.Response) -> None:
        self._reply = reply
        self._chunks = reply.aiter_bytes()
        self._reader = ReplyReader(reply.headers.get("content-type", ""))

    async def final_response(self, on_event: EventListener | None = None) -> object:
        """The response object in the event that ends the answer. The listener gets every event up to it.

        Raises `StreamEnded`, or `GatewayBroken` for an event that is an error.
        """
        async for chunk in self._chunks:
            for event in self._reader.receive(chunk):
                if on_event is not None:
                    on_event(event)
                if event.get("type") == "error" or event.get("error"):
                    raise stream_error(event)
                if event.get("type") in _FINAL_EVENTS:
                    return event.get("response")
            if self._reader.has_ended:
                break
        for event in self._reader.end():
            return event["response"]
        raise StreamEnded

    async def read_to_end(self) -> None:
        """Then the connection can be reused. Any failure here costs the connection, not the answer."""
        count = 0
        with contextlib.suppress(TimeoutError, *VENDOR_ERRORS):
            async with asyncio.timeout(LONGEST_END_SECONDS):
                async for chunk in self._chunks:
                    count += len(chunk)
                    if count > LONGEST_END_BYTES:
                        return

    async def beginning(self) -> bytes:
        """The beginning of the body. The rest is not read."""
        beginning = b""
        async for chunk in self._chunks:
            beginning += chunk
            if len(beginning) > LONGEST_END_BYTES:
                break
        return beginning

    async def close(self) -> None:
        async with aclosing(self._reply), aclosing(self._chunks):
            pass
