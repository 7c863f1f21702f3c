"""A remote MCP server as a transport: Streamable HTTP in both eras, with message bodies unchanged.

Each request is one POST. Its response carries the reply, and messages that the server sends before it. Notifications
and replies wait until the requests before them are sent, so that the server gets everything in the client's order.

In the older eras there is a session, which the client does not see. A server that has forgotten it (404) gets the
client's `initialize` again, and everything in flight is answered with an error: no request is sent twice. From 2026-07-28
on there is no session, and closing a response cancels its request.
"""

import asyncio
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from openai_responses_mcp.adapters.event_stream import EventReader
from openai_responses_mcp.adapters.remote.exchange import Exchange, media_type
from openai_responses_mcp.adapters.remote.replies import (
    ACCEPT,
    MESSAGES,
    Flight,
    Forgotten,
    Inbox,
    RemoteSession,
    Replies,
    encoded,
)
from openai_responses_mcp.adapters.remote.wire import SESSION, EnvelopeHeaders, RemoteFault, revision_of
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.jsonrpc import BadMessage, JsonObject, Notification, Reply, Request, RequestId, read
from openai_responses_mcp.domain.ports import Channel, Received, Transport

if TYPE_CHECKING:
    import httpx2

CONNECTION_CLOSED = -32000
MOST_UNSENT_BYTES = 4 * 1024 * 1024

_FEW_UNSENT_BYTES = 64 * 1024
_CANCELLED, _INITIALIZED = "notifications/cancelled", "notifications/initialized"
_LIST_CHANGED = {"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}
_SECONDS_TO_DELIVER = 10.0
_SECONDS_TO_OPEN = 60.0
_SECONDS_TO_LEAVE = 0.7
_LONGEST_SESSION_ID = 1024


class RemoteServer(Transport, Channel):
    """Create it in the running event loop. `tell` shows a line to the user. `retry_seconds` is the first retry's wait.

    A JSON reply must be complete within `json_seconds` of its first byte.
    """

    def __init__(
        self,
        exchange: Exchange,
        tell: Callable[[str], object],
        longest_bytes: int,
        retry_seconds: float = 1.0,
        json_seconds: float = 300.0,
    ) -> None:
        self._exchange = exchange
        self._tell = tell
        self._longest = longest_bytes
        self._outgoing: deque[bytes] = deque()
        self._unsent_bytes = 0
        self._is_closed = False
        self._something_changed = asyncio.Event()
        self._inbox = Inbox(self._something_changed)
        self._replies = Replies(exchange, self._inbox, longest_bytes, retry_seconds, json_seconds, self._note_reply)
        self._flights: dict[RequestId, Flight] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._envelope = EnvelopeHeaders()
        self._revision = ""
        self._session: RemoteSession | None = None
        # The client's `initialize`, to open a new session if the server forgets this one.
        self._initialize: JsonObject | None = None
        self._initialized: bytes | None = None
        self._is_lost = False
        self._opening = asyncio.Lock()
        self._start(self._send_all()).add_done_callback(self._stopped_sending)

    # -----------------------------------------------------------------------------------------------------------------
    # The transport

    async def receive(self) -> Received | None:
        while True:
            self._require_open()
            if self._unsent_bytes <= MOST_UNSENT_BYTES:
                if self._inbox:
                    return Received(self._inbox.take(), self)
                if self._inbox.is_closed:
                    return None
            await self._wait_for_change()

    def send(self, body: bytes) -> None:
        if not self._is_closed:
            self._outgoing.append(body)
            self._unsent_bytes += len(body)
            self._something_changed.set()

    def reply(self, body: bytes, error_code: int | None = None) -> None:
        self.send(body)

    def withdraw(self) -> None:
        pass

    async def flush(self) -> None:
        """Returns before the last few messages are written: opening a connection takes time, and more may follow."""
        while self._unsent_bytes > _FEW_UNSENT_BYTES and not self._is_closed:
            await self._wait_for_change()
        self._require_open()

    def stop_listening(self) -> None:
        """Messages that have arrived can still be received; then the input ends."""
        self._inbox.is_closed = True
        self._something_changed.set()

    def close(self) -> None:
        self._is_closed = True
        for task in self._tasks:
            task.cancel()
        self._something_changed.set()

    async def end(self) -> None:
        """Send the queued messages, end the session and close all connections, in at most two seconds."""
        try:
            async with asyncio.timeout(_SECONDS_TO_LEAVE):
                while self._unsent_bytes:
                    await self._wait_for_change()
        except TimeoutError:
            self._tell(f"{self._exchange.address.host} did not accept the last messages in time")
        self.stop_listening()
        tasks = [task for task in self._tasks if not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=_SECONDS_TO_LEAVE / 3)
        session, self._session = self._session, None
        if session is not None:
            await self._delete(session)
        await self._exchange.close()

    def _require_open(self) -> None:
        if self._is_closed:
            raise TransportClosed("the connection to the server is closed")

    async def _wait_for_change(self) -> None:
        self._something_changed.clear()
        await self._something_changed.wait()

    def _start(self, work: Any) -> "asyncio.Task[None]":
        task: asyncio.Task[None] = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # -----------------------------------------------------------------------------------------------------------------
    # To the server

    async def _send_all(self) -> None:
        while True:
            while not self._outgoing:
                await self._wait_for_change()
            body = self._outgoing.popleft()
            message = read(body)
            if isinstance(message, Request):
                await self._start_request(message)
            else:
                await self._send_note(message, body)
                self._note_sent(len(body))

    def _stopped_sending(self, task: "asyncio.Task[None]") -> None:
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._tell(f"nothing more can be sent to {self._exchange.address.host} ({type(failure).__name__})")
            self.close()

    async def _start_request(self, request: Request) -> None:
        flight = self._flights[request.id] = Flight(request)
        flight.task = self._start(self._run_request(flight))
        flight.task.add_done_callback(lambda task: self._request_ended(flight, task))
        if request.method == "initialize":
            # All later messages need the session.
            await asyncio.wait({flight.task}, timeout=_SECONDS_TO_OPEN)

    def _request_ended(self, flight: Flight, task: "asyncio.Task[None]") -> None:
        self._note_flight_sent(flight)
        if self._flights.get(flight.request.id) is flight:
            del self._flights[flight.request.id]
        if not task.cancelled() and (failure := task.exception()) is not None:
            self._fail(flight, f"The guard could not read the reply ({type(failure).__name__})")

    def _note_flight_sent(self, flight: Flight) -> None:
        if not flight.is_sent.is_set():
            flight.is_sent.set()
            self._note_sent(len(flight.request.wire))

    def _note_sent(self, size: int) -> None:
        self._unsent_bytes -= size
        self._something_changed.set()

    async def _send_note(self, message: Notification | Reply | BadMessage, body: bytes) -> None:
        """Send a message that gets no reply. Failures are shown to the user, since the client expects no reply."""
        if isinstance(message, Reply):
            session = self._session
            if session is None or message.id not in session.asked:
                return  # The reply belongs to no open request of the server.
            session.asked.discard(message.id)
        flight = self._cancelled_by(message)
        if flight is not None and flight.revision:
            flight.task.cancel()
            return
        revision = revision_of(message) if isinstance(message, Notification) else ""
        if not revision and self._session is None and isinstance(message, Notification):
            if message.method == _CANCELLED:
                return
            revision = self._revision
        headers = self._envelope.of(message, revision) if revision and isinstance(message, Notification) else {}
        try:
            async with asyncio.timeout(_SECONDS_TO_DELIVER):
                for other in list(self._flights.values()):
                    await other.is_sent.wait()
                session = self._session
                is_delivered = await self._deliver(body, headers, session)
        except TimeoutError:
            self._tell(f"{self._exchange.address.host} did not accept a notification in time")
        except RemoteFault as fault:
            self._tell(f"a notification was not delivered: {fault}")
        else:
            if not is_delivered and session is not None:
                await self._replace_session(session)
            elif isinstance(message, Notification) and message.method == _INITIALIZED and session is not None:
                self._initialized = body
                self._open_server_stream(session)
        if flight is not None:
            flight.task.cancel()

    def _cancelled_by(self, message: Notification | Reply | BadMessage) -> Flight | None:
        if not isinstance(message, Notification) or message.method != _CANCELLED:
            return None
        cancelled = message.params.get("requestId")
        return self._flights.get(cancelled) if isinstance(cancelled, str | int) else None

    async def _deliver(self, body: bytes, envelope: Mapping[str, str], session: RemoteSession | None) -> bool:
        """False if the server has forgotten the session. Raises `RemoteFault`."""
        headers = {**ACCEPT, **(envelope or ({} if session is None else session.headers))}
        async with self._exchange.opened("POST", headers, body) as response:
            if response.status_code == 404 and not envelope and session is not None and session.id:
                return False
            if not response.is_success:
                raise self._exchange.refusal(response)
        return True

    # -----------------------------------------------------------------------------------------------------------------
    # A request and its reply

    async def _run_request(self, flight: Flight) -> None:
        try:
            if flight.revision:
                self._revision = flight.revision
            elif flight.request.method != "initialize":
                async with self._opening:
                    if self._is_lost:
                        await self._open_session()
                flight.session = self._session
            if flight.revision:
                headers = self._envelope.of(flight.request, flight.revision)
            else:
                headers = {} if flight.session is None else flight.session.headers
            await self._replies.converse(flight, headers, lambda: self._note_flight_sent(flight))
        except Forgotten:
            if flight.session is not None:
                await self._replace_session(flight.session, but=flight)
            self._fail(flight, self._session_lost_text())
        except RemoteFault as fault:
            self._fail(flight, str(fault))

    def _note_reply(self, flight: Flight, reply: Reply, response: "httpx2.Response") -> None:
        if flight.request.method == "tools/list":
            self._envelope.note_tools(reply.result)
        elif flight.request.method == "initialize" and reply.error is None and not flight.revision:
            if self._session is not None and self._session.id:
                self._start(self._delete(self._session))
            self._initialize = flight.request.content
            self._session, self._is_lost = _session_in(reply, response), False

    def _fail(self, flight: Flight, reason: str) -> None:
        if self._flights.get(flight.request.id) is flight or flight.task.done():
            error = {"code": CONNECTION_CLOSED, "message": reason}
            self._inbox.put_now(encoded({"jsonrpc": "2.0", "id": flight.request.id, "error": error}))

    # -----------------------------------------------------------------------------------------------------------------
    # Streams of the older eras

    def _open_server_stream(self, session: RemoteSession) -> None:
        if session.id and session.stream is None:
            session.stream = self._start(self._read_server_stream(session))

    async def _read_server_stream(self, session: RemoteSession) -> None:
        """Read the server's own stream, and open it again whenever it breaks."""
        reader, failures = EventReader(self._longest, MESSAGES), 0
        while not self._is_closed:
            is_forgotten = False
            try:
                async with self._replies.stream(session, reader) as response:
                    if response.status_code == 404:
                        is_forgotten = True
                    elif response.status_code == 200 and media_type(response) == "text/event-stream":
                        failures = 0
                        await self._replies.read_events(None, response, reader, session)
                    elif response.status_code < 500 and response.status_code != 429:
                        return  # Most servers have no such stream, and say so with 405.
                    else:
                        failures += 1
            except RemoteFault:
                failures += 1
            if is_forgotten:
                self._start(self._replace_session(session))
                return
            reader = await self._replies.pause(reader, failures)

    # -----------------------------------------------------------------------------------------------------------------
    # A session that is lost

    def _session_lost_text(self) -> str:
        host = self._exchange.address.host
        return f"{host} has forgotten the session, so a new one was opened; this request was not repeated: call again"

    async def _replace_session(self, session: RemoteSession, but: Flight | None = None) -> None:
        """Open a new session. Every request in flight in the old one is answered with an error."""
        async with self._opening:
            if self._session is not session:
                return
            self._session, self._is_lost = None, True
            if session.stream is not None and session.stream is not asyncio.current_task():
                session.stream.cancel()
            for flight in list(self._flights.values()):
                if flight.session is session and flight is not but:
                    self._fail(flight, self._session_lost_text())
                    del self._flights[flight.request.id]
                    flight.task.cancel()
            for asked in session.asked:
                params = {"requestId": asked, "reason": "the server has forgotten the session"}
                self._inbox.put_now(encoded({"jsonrpc": "2.0", "method": _CANCELLED, "params": params}))
            try:
                await self._open_session()
            except RemoteFault as fault:
                self._tell(f"no new session could be opened: {fault}")

    async def _open_session(self) -> None:
        """Send the client's `initialize` again, with our own id; the client gets no reply. Raises `RemoteFault`."""
        request = encoded({**(self._initialize or {}), "id": str(uuid.uuid4())})
        flight = Flight(read(request))  # type: ignore[arg-type]
        host = self._exchange.address.host
        try:
            async with asyncio.timeout(_SECONDS_TO_OPEN), self._exchange.opened("POST", ACCEPT, request) as response:
                if not response.is_success:
                    raise self._exchange.refusal(response)
                reply = await self._replies.opening_reply(flight, response)
                if reply is None or reply.error is not None:
                    raise RemoteFault(f"{host} refuses to open a new session; restart the client")
                session = _session_in(reply, response)
        except TimeoutError:
            raise RemoteFault(f"{host} did not open a new session in time; call again later") from None
        if self._initialized is not None:
            if not await self._deliver(self._initialized, {}, session):
                raise RemoteFault(f"{host} has forgotten the new session at once; restart the client")
            self._open_server_stream(session)
        self._session, self._is_lost = session, False
        # The tools may have changed without a notification.
        self._inbox.put_now(encoded(_LIST_CHANGED))

    async def _delete(self, session: RemoteSession) -> None:
        """Delete the session at the server. If this fails, it expires there."""
        if not session.id:
            return
        try:
            async with asyncio.timeout(_SECONDS_TO_LEAVE), self._exchange.opened("DELETE", session.headers):
                pass
        except (TimeoutError, RemoteFault):
            return


def _session_in(reply: Reply, response: "httpx2.Response") -> RemoteSession:
    session_id = response.headers.get(SESSION, "")
    is_fit = session_id.isascii() and session_id.isprintable() and len(session_id) <= _LONGEST_SESSION_ID
    revision = reply.result.get("protocolVersion") if isinstance(reply.result, dict) else None
    is_plain = isinstance(revision, str) and revision.isascii() and revision.isprintable() and len(revision) < 64
    return RemoteSession(session_id if is_fit else "", revision if isinstance(revision, str) and is_plain else "")
