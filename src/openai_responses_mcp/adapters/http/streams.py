"""What goes out over HTTP: the messages of one response, kept until they are sent and, where that is wanted, beyond.

An `Outbox` is written by a channel and read by the response. In the older eras a reader that lost its connection comes
back with the id of the last event that it saw; so sent messages are kept for a while, within bounds.
"""

import asyncio
from collections import deque
from enum import Enum
from typing import NamedTuple

from openai_responses_mcp.adapters.http.posts import REQUEST_CANCELLED, error_body
from openai_responses_mcp.domain.jsonrpc import RequestId
from openai_responses_mcp.domain.ports import Channel

# Of what a reader that has gone may come back for, for each response.
MOST_KEPT_MESSAGES = 256
MOST_KEPT_BYTES = 1024 * 1024
PING = b": ping\n\n"


class OutMessage(NamedTuple):
    number: int
    body: bytes


class Waited(Enum):
    """What a reader finds instead of a message."""

    NOTHING_YET = 1
    THE_END = 2


class Outbox:
    """Numbered messages, the last of which may be a reply. `name` is what event ids begin with."""

    def __init__(self, name: str = "", *, keeps_sent: bool = False) -> None:
        self.name = name
        self.error_code: int | None = None
        self.has_reply = False
        self.reader: object | None = None
        self._keeps_sent = keeps_sent
        self._messages: deque[OutMessage] = deque()
        self._last_number = 0
        self._sent = 0
        self._has_ended = False
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def is_read(self) -> bool:
        return self.reader is not None

    def put(self, body: bytes) -> None:
        if self._has_ended:
            return
        self._last_number += 1
        self._messages.append(OutMessage(self._last_number, body))
        self._trim()
        self.wake()

    def put_reply(self, body: bytes, error_code: int | None = None) -> None:
        if self._has_ended:
            return
        self.error_code, self.has_reply = error_code, True
        self.put(body)
        self.end()

    def end(self) -> None:
        self._has_ended = True
        self.wake()

    @property
    def has_ended(self) -> bool:
        return self._has_ended

    @property
    def last_sent(self) -> int:
        return self._sent

    @property
    def kept_bytes(self) -> int:
        return sum(len(message.body) for message in self._messages)

    @property
    def unread_bytes(self) -> int:
        """Of what a reader that is there has still to take."""
        return sum(len(one.body) for one in self._messages if one.number > self._sent) if self.is_read else 0

    @property
    def is_single_reply(self) -> bool:
        """Whether the reply is all that there is."""
        return self.has_reply and self._last_number == 1

    def sent(self, number: int) -> None:
        """A reader has passed this message on."""
        self._sent = max(self._sent, number)
        self._trim()
        self.wake()

    def next_after(self, number: int) -> OutMessage | Waited:
        found = next((message for message in self._messages if message.number > number), None)
        if found is not None:
            return found
        return Waited.THE_END if self._has_ended else Waited.NOTHING_YET

    async def change(self) -> None:
        """Until something is put, sent or ended."""
        await self.next_change()

    def next_change(self) -> "asyncio.Future[None]":
        """Done with the next change. Cancel it when it is no longer awaited."""
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.add(changed)
        changed.add_done_callback(self._waiting.discard)
        return changed

    def _trim(self) -> None:
        while self._messages and self._is_over_bounds() and self._may_drop(self._messages[0]):
            self._messages.popleft()

    def _is_over_bounds(self) -> bool:
        if not self._keeps_sent and self._messages[0].number <= self._sent:
            return True
        return len(self._messages) > MOST_KEPT_MESSAGES or self.kept_bytes > MOST_KEPT_BYTES

    def _may_drop(self, message: OutMessage) -> bool:
        # The reply is kept: a client that comes back is waiting for it.
        is_reply = self.has_reply and message.number == self._last_number
        return message.number <= self._sent or not (self.is_read or is_reply)

    def wake(self) -> None:
        """Let those who wait for a change look again."""
        for waiting in list(self._waiting):
            if not waiting.done():
                waiting.set_result(None)


class HttpChannel(Channel):
    """The way back of one POST."""

    def __init__(self, outbox: Outbox, request_id: RequestId | None) -> None:
        self._outbox = outbox
        self._request_id = request_id

    def send(self, body: bytes) -> None:
        self._outbox.put(body)

    def reply(self, body: bytes, error_code: int | None = None) -> None:
        self._outbox.put_reply(body, error_code)

    def withdraw(self) -> None:
        # A POST has to be answered. Where the client itself closed it, this is not read.
        self.reply(error_body(self._request_id, REQUEST_CANCELLED, "Request cancelled"), REQUEST_CANCELLED)


def event(body: bytes, event_id: str | None = None) -> bytes:
    """One server-sent event. A message is one line of JSON."""
    head = b"" if event_id is None else b"id: %b\n" % event_id.encode()
    return b"%bevent: message\ndata: %b\n\n" % (head, body)


def priming_event(event_id: str) -> bytes:
    """Lets a client come back that loses its connection before the first message."""
    return b"id: %b\ndata:\n\n" % event_id.encode()
