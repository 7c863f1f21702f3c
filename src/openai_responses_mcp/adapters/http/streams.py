"""The messages of one response, and how they are sent as events.

An `Outbox` is written by the server and read by the response. In the older eras a client that lost its connection comes
back with the id of the last event that it saw; so sent messages are kept for a while, within bounds.
"""

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from starlette.types import Message, Receive, Send

from openai_responses_mcp.adapters.http.posts import REQUEST_CANCELLED, error_body
from openai_responses_mcp.domain.jsonrpc import INTERNAL_ERROR, RequestId
from openai_responses_mcp.domain.ports import Channel

# Kept for each response, for a client that comes back.
MOST_KEPT_MESSAGES = 256
MOST_KEPT_BYTES = 1024 * 1024
EVENTS = "text/event-stream"
END_OF_STREAM: Message = {"type": "http.response.body", "body": b"", "more_body": False}

_PING = b": ping\n\n"
_STREAM_HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}


class OutMessage(NamedTuple):
    number: int
    body: bytes


class Outbox(Channel):
    """Numbered messages, the last of which may be the reply to a request. Event ids begin with `name`."""

    def __init__(self, request_id: RequestId | None = None, name: str = "", *, keeps_sent: bool = False) -> None:
        self.name = name
        self.error_code: int | None = None
        self.has_ended = False
        self.last_sent = 0
        self.reader: object | None = None
        self._request_id = request_id
        self._keeps_sent = keeps_sent
        self._messages: deque[OutMessage] = deque()
        self._last_number = 0
        self._has_reply = False
        self._on_end: Callable[[], object] = lambda: None
        self._waiting: set[asyncio.Future[None]] = set()

    def send(self, body: bytes) -> None:
        if self.has_ended:
            return
        self._last_number += 1
        self._messages.append(OutMessage(self._last_number, body))
        self._trim()
        self.wake()

    def reply(self, body: bytes, error_code: int | None = None) -> None:
        if self.has_ended:
            return
        self.error_code, self._has_reply = error_code, True
        self.send(body)
        self.end()

    def withdraw(self) -> None:
        # A POST has to be answered. A client that closed it does not read this.
        self._reply_with_error(REQUEST_CANCELLED, "Request cancelled")

    def fail(self) -> None:
        """The server has stopped without a reply."""
        self._reply_with_error(INTERNAL_ERROR, "The server stopped before it replied")

    def _reply_with_error(self, code: int, reason: str) -> None:
        self.reply(error_body(self._request_id, code, reason), code)

    def end(self) -> None:
        if not self.has_ended:
            self.has_ended = True
            self.wake()
            self._on_end()

    def when_ended(self, call: Callable[[], object]) -> None:
        """Call this once, at once if it has ended already."""
        if self.has_ended:
            call()
        else:
            self._on_end = call

    @property
    def kept_bytes(self) -> int:
        return sum(len(message.body) for message in self._messages)

    @property
    def unread_bytes(self) -> int:
        """Bytes that a connected reader has not taken yet."""
        return sum(len(one.body) for one in self._messages if one.number > self.last_sent) if self.reader else 0

    @property
    def single_reply(self) -> bytes | None:
        """The reply, if there is nothing but the reply."""
        return self._messages[0].body if self._has_reply and self._last_number == 1 else None

    def sent(self, number: int) -> None:
        """The message was written to the client."""
        self.last_sent = max(self.last_sent, number)
        self._trim()
        self.wake()

    def next_after(self, number: int) -> OutMessage | None:
        return next((message for message in self._messages if message.number > number), None)

    def change(self) -> "asyncio.Future[None]":
        """Done when something is put, sent or ended. Cancel it when it is no longer awaited."""
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(changed)
        changed.add_done_callback(self._waiting.discard)
        return changed

    def wake(self) -> None:
        """Complete every pending `change`."""
        for waiting in list(self._waiting):
            if not waiting.done():
                waiting.set_result(None)

    def _trim(self) -> None:
        """Drop sent messages; beyond the bounds also those that no reader waits for, but never an unsent reply."""
        while self._messages:
            oldest = self._messages[0]
            was_sent = oldest.number <= self.last_sent
            is_reply = self._has_reply and oldest.number == self._last_number
            is_over = len(self._messages) > MOST_KEPT_MESSAGES or self.kept_bytes > MOST_KEPT_BYTES
            may_drop = was_sent or not (self.reader or is_reply)
            if not may_drop or not (is_over or (was_sent and not self._keeps_sent)):
                return
            self._messages.popleft()


class OutboxReader:
    """Writes an outbox into a response while its client is connected. `on_read` follows each message and the end."""

    def __init__(self, receive: Receive, outbox: Outbox, on_read: Callable[[], object]) -> None:
        self.outbox = outbox
        self._receive = receive
        self._on_read = on_read

    async def __aenter__(self) -> "OutboxReader":
        self.outbox.reader = self
        self.outbox.wake()
        self._gone = asyncio.ensure_future(_disconnected(self._receive))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.outbox.reader is self:
            self.outbox.reader = None
        self._gone.cancel()
        self._on_read()

    @property
    def is_gone(self) -> bool:
        """The client has disconnected, or resumed on another connection."""
        return self._gone.done() or self.outbox.reader is not self

    async def wait(self, after: int, seconds: float | None) -> bool:
        """True if there is a message or the end. False after `seconds`, or if the client has gone."""
        while self.outbox.next_after(after) is None and not self.outbox.has_ended:
            changed = self.outbox.change()
            ends: set[asyncio.Future[None]] = {changed, self._gone}
            done, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            if changed not in done or self.is_gone:
                return False
        return True

    async def stream(
        self,
        send: Send,
        headers: Mapping[str, str],
        ping_seconds: float,
        after: int = 0,
        *,
        is_primed: bool = False,
        is_still_let_in: Callable[[], Awaitable[bool]] | None = None,
    ) -> bool:
        """Send events until the end. False if the client has gone, or is no longer let in."""
        outbox, now = self.outbox, asyncio.get_running_loop().time
        next_check = now() + ping_seconds
        named = {"content-type": EVENTS, **_STREAM_HEADERS, **headers}
        raw = [(name.encode(), value.encode()) for name, value in named.items()]
        await send({"type": "http.response.start", "status": 200, "headers": raw})
        if is_primed:
            await send(_piece(priming_event(f"{outbox.name}-{after}")))
        while True:
            if is_still_let_in is not None and now() >= next_check:
                if not await is_still_let_in():
                    return False
                next_check = now() + ping_seconds
            found = outbox.next_after(after)
            if found is not None:
                event_id = f"{outbox.name}-{found.number}" if outbox.name else None
                await send(_piece(event(found.body, event_id)))
                if self.is_gone:
                    return False
                after = found.number
                outbox.sent(after)
                self._on_read()
            elif outbox.has_ended:
                await send(END_OF_STREAM)
                return True
            elif not await self.wait(after, ping_seconds):
                if self.is_gone:
                    return False
                await send(_piece(_PING))


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def _piece(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}


def event(body: bytes, event_id: str | None = None) -> bytes:
    """One server-sent event. A message is one line of JSON."""
    head = b"" if event_id is None else b"id: %b\n" % event_id.encode()
    return b"%bevent: message\ndata: %b\n\n" % (head, body)


def priming_event(event_id: str) -> bytes:
    """With it, a client can resume even if it loses its connection before the first message."""
    return b"id: %b\ndata:\n\n" % event_id.encode()
