"""How the responses of a remote server are read: JSON as a whole, events one by one, resumed where a stream broke.

Every message goes into the inbox unchanged. A response is read until the reply to its request arrives. Other messages in
it are passed on too.
"""

import asyncio
import json
import uuid
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing, asynccontextmanager
from typing import TYPE_CHECKING

from openai_responses_mcp.adapters.event_stream import EventReader
from openai_responses_mcp.adapters.remote.exchange import Exchange, error_body_of, media_type
from openai_responses_mcp.adapters.remote.wire import SESSION, VERSION, RemoteFault, revision_of
from openai_responses_mcp.domain.jsonrpc import BadMessage, JsonObject, Reply, Request, RequestId, read
from openai_responses_mcp.domain.ports import FramingFault

if TYPE_CHECKING:
    import httpx2

MOST_ARRIVED_BYTES = 4 * 1024 * 1024
# Events with another name are no messages.
MESSAGES = (b"message",)
ACCEPT = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

_SECONDS_FOR_PING = 10.0
_LONGEST_RETRY_SECONDS = 60.0
_SHORTEST_RETRY_SECONDS = 0.01
# A dead stream looks like a silent one, so a silent stream is opened again now and then.
_LONGEST_SILENCE_SECONDS = 300.0
_MOST_FAILED_RESUMPTIONS = 5


class RemoteSession:
    """`id` is empty for a server that keeps no session. `asked` are the server's requests that wait for a reply."""

    def __init__(self, session_id: str, revision: str) -> None:
        self.id = session_id
        self.headers = {name: value for name, value in ((SESSION, session_id), (VERSION, revision)) if value}
        self.asked: set[RequestId] = set()
        self.stream: asyncio.Task[None] | None = None


class Flight:
    """A request on its way. `session` is the one that it was sent in, None in the era without sessions."""

    def __init__(self, request: Request) -> None:
        self.request = request
        self.revision = revision_of(request)
        self.session: RemoteSession | None = None
        self.is_sent = asyncio.Event()
        self.task: asyncio.Task[None]


class Forgotten(Exception):
    """The server does not know the session."""


class Inbox:
    """Messages that have arrived but were not received yet. `change` is set whenever one is added or taken."""

    def __init__(self, change: asyncio.Event) -> None:
        self.is_closed = False
        self._change = change
        self._arrived: deque[bytes | FramingFault] = deque()
        self._bytes = 0

    def __bool__(self) -> bool:
        return bool(self._arrived)

    def take(self) -> bytes | FramingFault:
        body = self._arrived.popleft()
        self._bytes -= len(body) if isinstance(body, bytes) else 0
        self._change.set()
        return body

    async def put(self, body: bytes) -> None:
        """Waits while too many bytes are in the inbox, to slow down a server that sends too fast."""
        while self._bytes > MOST_ARRIVED_BYTES:
            self._change.clear()
            await self._change.wait()
        self.put_now(body)

    def put_now(self, body: bytes | FramingFault) -> None:
        if not self.is_closed:
            self._arrived.append(body)
            self._bytes += len(body) if isinstance(body, bytes) else 0
            self._change.set()


class Replies:
    """`on_reply` is called with each reply before it can be received."""

    def __init__(
        self,
        exchange: Exchange,
        inbox: Inbox,
        longest_bytes: int,
        retry_seconds: float,
        json_seconds: float,
        on_reply: Callable[[Flight, Reply, "httpx2.Response"], None],
    ) -> None:
        self._exchange = exchange
        self._inbox = inbox
        self._longest = longest_bytes
        self._retry_seconds = retry_seconds
        self._json_seconds = json_seconds
        self._on_reply = on_reply

    async def converse(self, flight: Flight, headers: Mapping[str, str], on_sent: Callable[[], object]) -> None:
        """Send a request and read until its reply. Raises `RemoteFault` if none will come, or `Forgotten`."""
        reader = EventReader(self._longest, MESSAGES)
        host = self._exchange.address.host
        fault = RemoteFault(
            f"{host} ended its reply without an answer; it is not known whether the request was carried out"
        )
        try:
            async with self._exchange.opened("POST", {**ACCEPT, **headers}, flight.request.wire, on_sent) as response:
                if await self._read_reply(flight, response, reader):
                    return
        except RemoteFault as broken:
            if broken.status or not reader.last_id:
                raise
            fault = broken
        if flight.session is None or not flight.session.id or not reader.last_id:
            raise fault
        await self._resume(flight, flight.session, reader, fault)

    async def _read_reply(self, flight: Flight, response: "httpx2.Response", reader: EventReader) -> bool:
        """True if the reply has come. Raises `RemoteFault` if it never will, or `Forgotten`."""
        host, status = self._exchange.address.host, response.status_code
        if status == 404 and flight.session is not None and flight.session.id:
            raise Forgotten
        if not response.is_success:
            body = await error_body_of(response)
            if (
                status == 400
                and flight.session is not None
                and not await self._knows_session(flight, flight.session, body)
            ):
                raise Forgotten
            said = _error_for(flight.request.id, body) if status not in (401, 403) else None
            if said is None:
                raise self._exchange.refusal(response)
            await self._inbox.put(said)
            return True
        if status == 202:
            raise RemoteFault(f"{host} accepted the request but sends no answer (202)", status)
        kind = media_type(response)
        if kind == "text/event-stream":
            return await self.read_events(flight, response, reader)
        if kind != "application/json":
            raise self._exchange.wrong_type(response)
        if not await self._take(await self.whole(response), flight, response):
            raise RemoteFault(f"{host} answered with something that is not the reply to the request", status)
        return True

    async def _knows_session(self, flight: Flight, session: RemoteSession, refusal: bytes) -> bool:
        """Many servers answer 400 for a forgotten session. If the answer does not name the request, a ping decides."""
        message = read(refusal)
        if not session.id or (isinstance(message, Reply) and message.id == flight.request.id):
            return True
        ping = encoded({"jsonrpc": "2.0", "id": str(uuid.uuid4()), "method": "ping"})
        try:
            async with asyncio.timeout(_SECONDS_FOR_PING):
                async with self._exchange.opened("POST", {**ACCEPT, **session.headers}, ping) as response:
                    return response.status_code not in (400, 404)
        except (TimeoutError, RemoteFault):
            return True

    async def whole(self, response: "httpx2.Response") -> bytes:
        body, host = bytearray(), self._exchange.address.host
        try:
            async with asyncio.timeout(self._json_seconds), aclosing(response.aiter_bytes()) as chunks:
                async for chunk in chunks:
                    body += chunk
                    if len(body) > self._longest:
                        raise RemoteFault(f"The reply of {host} is larger than {self._longest} bytes", 200)
        except TimeoutError:
            raise RemoteFault(f"The reply of {host} did not end within {self._json_seconds:.0f} seconds", 200) from None
        return bytes(body)

    async def read_events(
        self,
        flight: Flight | None,
        response: "httpx2.Response",
        reader: EventReader,
        session: RemoteSession | None = None,
    ) -> bool:
        """True if the reply came before the end. On the server's own stream `flight` is None."""
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                for data in reader.feed(chunk):
                    if data is not None:
                        if await self._take(data, flight, response, session):
                            return True
                        continue
                    reason = f"{self._exchange.address.host} sent an event of more than {self._longest} bytes"
                    if flight is not None:
                        raise RemoteFault(reason, 200)
                    self._inbox.put_now(FramingFault(reason))
        return False

    async def _take(
        self, body: bytes, flight: Flight | None, response: "httpx2.Response", session: RemoteSession | None = None
    ) -> bool:
        """Pass a message on; true if it is the reply to the request. A JSON response must be that reply."""
        message = read(body)
        session = session or (None if flight is None else flight.session)
        if isinstance(message, Request) and session is not None:
            session.asked.add(message.id)
        is_reply = isinstance(message, Reply) or (isinstance(message, BadMessage) and message.is_reply)
        is_answer = flight is not None and is_reply and message.id == flight.request.id  # type: ignore[union-attr]
        if flight is not None and is_answer and isinstance(message, Reply):
            self._on_reply(flight, message, response)
        if flight is None or is_answer or media_type(response) != "application/json":
            await self._inbox.put(body)
        return is_answer

    async def _resume(self, flight: Flight, session: RemoteSession, reader: EventReader, fault: RemoteFault) -> None:
        """Get the rest of a response that broke. The server does nothing twice: it sends the messages that were missed."""
        failures = 0
        while True:
            reader = await self.pause(reader, failures)
            try:
                async with self.stream(session, reader) as response:
                    if response.status_code == 404:
                        raise Forgotten
                    is_stream = response.status_code == 200 and media_type(response) == "text/event-stream"
                    if is_stream and await self.read_events(flight, response, reader):
                        return
                    if not is_stream and response.status_code < 500 and response.status_code != 429:
                        raise fault
                    failures = 0 if is_stream else failures + 1
            except RemoteFault as broken:
                if broken.status or broken is fault:
                    raise
                failures += 1
            if failures > _MOST_FAILED_RESUMPTIONS:
                raise fault

    @asynccontextmanager
    async def stream(self, session: RemoteSession, reader: EventReader) -> AsyncIterator["httpx2.Response"]:
        resumed = {"last-event-id": reader.last_id} if reader.last_id.isascii() and reader.last_id else {}
        headers = {"accept": "text/event-stream", **session.headers, **resumed}
        async with self._exchange.opened("GET", headers, silent_seconds=_LONGEST_SILENCE_SECONDS) as response:
            yield response

    async def pause(self, reader: EventReader, failures: int) -> EventReader:
        """Wait, then make a reader that continues where the last response ended."""
        wait = self._retry_seconds if reader.retry_seconds is None else reader.retry_seconds
        await asyncio.sleep(max(_SHORTEST_RETRY_SECONDS, min(wait * 2 ** min(failures, 10), _LONGEST_RETRY_SECONDS)))
        following = EventReader(self._longest, MESSAGES)
        following.last_id, following.retry_seconds = reader.last_id, reader.retry_seconds
        return following

    async def opening_reply(self, flight: Flight, response: "httpx2.Response") -> Reply | None:
        if media_type(response) == "application/json":
            message = read(await self.whole(response))
            return message if isinstance(message, Reply) else None
        reader = EventReader(self._longest, MESSAGES)
        async with aclosing(response.aiter_bytes()) as chunks:
            async for chunk in chunks:
                for data in reader.feed(chunk):
                    message = read(data or b"")
                    if isinstance(message, Reply) and message.id == flight.request.id:
                        return message
        return None


def _error_for(request_id: RequestId, body: bytes) -> bytes | None:
    """The JSON-RPC error in a body, as the reply to this request. Some servers refuse before they have read the id."""
    message = read(body)
    if isinstance(message, Reply):
        return body if message.id == request_id else None
    try:
        error = json.loads(body).get("error")
    except (ValueError, AttributeError, RecursionError):
        return None
    is_error = isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str)
    return encoded({"jsonrpc": "2.0", "id": request_id, "error": error}) if is_error else None


def encoded(content: JsonObject) -> bytes:
    return json.dumps(content, separators=(",", ":")).encode()
