"""A client over HTTP, as the server sees it: a session of the older eras, or a single exchange of the newer one.

Both are a `Transport`. A session takes many messages, each with its own channel, and has a stream for messages that belong to
no request. An exchange takes one message, and is closed when its client closes the response.
"""

import asyncio
import re
import secrets
import time
from collections import deque
from collections.abc import Callable

from openai_responses_mcp.adapters.http.posts import Headers
from openai_responses_mcp.adapters.http.streams import MOST_KEPT_BYTES, Outbox
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.jsonrpc import RequestId
from openai_responses_mcp.domain.ports import Received, Transport

# While a client leaves this much unread, nothing more is taken from it. While the server leaves this much unread, the
# client has to wait.
MOST_UNREAD_BYTES = 4 * 1024 * 1024
# Of responses that are over, for clients that come back.
MOST_KEPT_RESPONSES = 100
_CLOSED = "the client has closed its end"
# Python refuses to read a number with thousands of digits.
_EVENT_NUMBER = re.compile("[0-9]{1,18}")


class HttpExchange(Transport):
    """One message and its reply. All exchanges of a caller have the same key."""

    def __init__(self, body: bytes, request_id: RequestId | None, caller: str, headers: Headers = ()) -> None:
        self.caller = caller
        self.headers = headers
        self.key = f"caller {caller}"
        self.outbox = Outbox(request_id)
        self._received: Received | None = Received(body, self.outbox, caller)
        self._is_closed = False

    async def receive(self) -> Received | None:
        if self._received is not None:
            received, self._received = self._received, None
            return received
        while not self.outbox.has_ended and not self._is_closed:
            await self.outbox.change()
        self._require_open()
        return None

    def send(self, body: bytes) -> None:
        self.outbox.send(body)

    async def flush(self) -> None:
        while self.outbox.unread_bytes and not self._is_closed:
            await self.outbox.change()
        self._require_open()

    def close(self) -> None:
        """The client has gone, or the server is ending. Calls in flight are dropped."""
        self._is_closed = True
        self.outbox.wake()

    def fail(self) -> None:
        """The server has stopped, so nothing more is answered."""
        self.outbox.fail()

    def _require_open(self) -> None:
        if self._is_closed:
            raise TransportClosed(_CLOSED)


class HttpSession(Transport):
    """A session belongs to the caller who opened it, and has a key of its own."""

    def __init__(self, caller: str) -> None:
        self.id = secrets.token_urlsafe(24)
        self.key = f"session {self.id}"
        self.caller = caller
        self.server_stream = Outbox(name="0", keeps_sent=True)
        self.used_at = time.monotonic()
        self._outboxes: dict[str, Outbox] = {"0": self.server_stream}
        self._last_name = 0
        self._incoming: deque[Received] = deque()
        self._waiting_bytes = 0
        self._is_closed = False
        self._something_changed = asyncio.Event()

    def take(self, body: bytes, request_id: RequestId | None, caller: str, *, is_answered: bool) -> Outbox:
        """Take a message. Its reply goes into the returned outbox, which event ids name."""
        self._make_room()
        self._last_name += 1
        outbox = Outbox(request_id, str(self._last_name), keeps_sent=True)
        if is_answered:
            self._outboxes[outbox.name] = outbox
        self._incoming.append(Received(body, outbox, caller))
        self._waiting_bytes += len(body)
        self.used_at = time.monotonic()
        self.note_change()
        return outbox

    def forget(self, outbox: Outbox) -> None:
        """The reply was sent in one piece: there is nothing to come back for."""
        self._outboxes.pop(outbox.name, None)

    def _make_room(self) -> None:
        """Drop the oldest responses that are over, as far as there are too many of them."""
        ended = [one for one in self._outboxes.values() if one.has_ended and not one.reader]
        count, size = len(ended), sum(one.kept_bytes for one in ended)
        for one in ended:
            if count <= MOST_KEPT_RESPONSES and size <= MOST_KEPT_BYTES:
                break
            count, size = count - 1, size - one.kept_bytes
            del self._outboxes[one.name]

    def find(self, event_id: str) -> tuple[Outbox, int] | None:
        """The outbox that an event came from, and the number of the event."""
        name, _, number = event_id.partition("-")
        outbox = self._outboxes.get(name)
        return (outbox, int(number)) if outbox is not None and _EVENT_NUMBER.fullmatch(number) else None

    @property
    def is_full(self) -> bool:
        """The server is slow to take what the client has sent."""
        return self._waiting_bytes > MOST_UNREAD_BYTES

    @property
    def is_idle(self) -> bool:
        boxes = self._outboxes.values()
        return not any(one.reader or (one is not self.server_stream and not one.has_ended) for one in boxes)

    def close(self) -> None:
        """The session is over. Calls in flight are dropped."""
        self._is_closed = True
        self.server_stream.end()
        while self._incoming:
            self._incoming.popleft().channel.withdraw()
        self.note_change()

    def fail(self) -> None:
        """The server has stopped, so nothing more is answered."""
        self.server_stream.end()
        for outbox in self._outboxes.values():
            outbox.fail()

    async def receive(self) -> Received | None:
        while True:
            self._require_open()
            if self._incoming and self._unread_bytes <= MOST_UNREAD_BYTES:
                received = self._incoming.popleft()
                self._waiting_bytes -= len(received.body) if isinstance(received.body, bytes) else 0
                return received
            await self._change()

    def send(self, body: bytes) -> None:
        if not self._is_closed:
            self.server_stream.send(body)

    async def flush(self) -> None:
        while self._unread_bytes and not self._is_closed:
            await self._change()
        self._require_open()

    @property
    def _unread_bytes(self) -> int:
        return sum(outbox.unread_bytes for outbox in self._outboxes.values())

    def _require_open(self) -> None:
        if self._is_closed:
            raise TransportClosed(_CLOSED)

    def note_change(self) -> None:
        """A message has arrived, or a response has read one or closed."""
        self._something_changed.set()

    async def _change(self) -> None:
        self._something_changed.clear()
        await self._something_changed.wait()


class SessionsFull(Exception):
    """No session can be opened now."""


class Sessions:
    """Open sessions. When there are too many, the longest idle one is closed, if it was idle long enough."""

    def __init__(
        self, most: int, least_idle_seconds: float = 600.0, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._most = most
        self._least_idle_seconds = least_idle_seconds
        self._monotonic = monotonic
        self._open: dict[str, HttpSession] = {}

    def open(self, caller: str) -> HttpSession:
        """Raises `SessionsFull`."""
        if len(self._open) >= self._most:
            self._make_room()
        session = HttpSession(caller)
        self._open[session.id] = session
        return session

    def find(self, session_id: str, caller: str) -> HttpSession | None:
        session = self._open.get(session_id)
        return session if session is not None and session.caller == caller else None

    def drop(self, session: HttpSession) -> None:
        self._open.pop(session.id, None)
        session.close()

    def _make_room(self) -> None:
        oldest = min((one for one in self._open.values() if one.is_idle), key=lambda one: one.used_at, default=None)
        if oldest is None or self._monotonic() - oldest.used_at < self._least_idle_seconds:
            raise SessionsFull
        self.drop(oldest)
