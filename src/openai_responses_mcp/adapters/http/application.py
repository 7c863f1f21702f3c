"""The application: `/mcp` as Streamable HTTP, `/healthz`, and the metadata for clients that look for an issuer.

Each request is checked in one order: host and origin, token, method, headers, size, message. Only then is it handed to
`serve`, which is called with a transport, once for each session and once for each exchange without one.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from openai_responses_mcp import __version__
from openai_responses_mcp.adapters.http.access import METADATA_PATH, AllowedHosts, Callers, Issuer, Unauthorized
from openai_responses_mcp.adapters.http.posts import Headers, Post, Refusal, is_envelope_era, read_post
from openai_responses_mcp.adapters.http.sessions import HttpExchange, HttpSession, Sessions, SessionsFull
from openai_responses_mcp.adapters.http.streams import PING, Outbox, OutMessage, Waited, event, priming_event
from openai_responses_mcp.domain.ports import Logger, Transport

JSON, EVENTS = "application/json", "text/event-stream"
SESSION_HEADER = "mcp-session-id"
PING_SECONDS = 15.0
RETRY_AFTER_SECONDS = 5
_READ_ON = 4
LONGEST_BODY_SECONDS = 30.0

_STREAM_HEADERS = {"cache-control": "no-cache, no-transform", "x-accel-buffering": "no"}
# From this revision on, clients understand an event without a message.
_PRIMED_REVISION = "2025-11-25"
_TOO_MANY_SERVERS = "too many servers are running"
_TOKENS_IN_QUERIES = ("access_token", "token", "authorization", "api_key")

Serve = Callable[[Transport], Awaitable[None]]


async def _always() -> bool:
    return True


class HttpLimits(NamedTuple):
    most_body_bytes: int = 4 * 1024 * 1024
    most_sessions: int = 1000
    most_in_flight: int = 10_000
    body_seconds: float = LONGEST_BODY_SECONDS
    ping_seconds: float = PING_SECONDS


class McpOverHttp:
    """`drain` lets calls in flight finish and takes no new ones. `admit` says whether the client with this key is served."""

    def __init__(
        self,
        serve: Serve,
        hosts: AllowedHosts,
        callers: Callers,
        logger: Logger,
        *,
        issuer: Issuer | None = None,
        limits: HttpLimits = HttpLimits(),  # noqa: B008 - nothing changes it
        admit: Callable[[str], bool] = lambda key: True,
    ) -> None:
        self._serve = serve
        self._hosts = hosts
        self._callers = callers
        self._logger = logger
        self._issuer = issuer
        self._limits = limits
        self._admit = admit
        self._sessions = Sessions(limits.most_sessions)
        self._tasks: set[asyncio.Task[None]] = set()
        self._exchanges: set[HttpExchange] = set()
        self._in_flight = 0
        self._is_draining = False
        self._nothing_in_flight = asyncio.Event()
        self._nothing_in_flight.set()
        self.app: ASGIApp = Starlette(
            routes=[
                Route("/mcp", _Asgi(self._mcp)),
                Route("/healthz", self._health, methods=["GET"]),
                Route(METADATA_PATH, self._metadata, methods=["GET"]),
                Route(f"{METADATA_PATH}/mcp", self._metadata, methods=["GET"]),
            ]
        )

    async def drain(self, seconds: float, on_over: Callable[[], object] = lambda: None) -> None:
        """No new calls from now on; those in flight get this long. Then `on_over` is called, and the rest is closed."""
        self._is_draining = True
        try:
            await asyncio.wait_for(self._nothing_in_flight.wait(), seconds)
        except TimeoutError:
            if seconds:
                self._logger.warning("calls did not end in time", calls=self._in_flight)
        on_over()
        self._sessions.close_all()
        for exchange in self._exchanges:
            exchange.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=1.0)

    # -----------------------------------------------------------------------------------------------------------------
    # Requests

    async def _health(self, request: Request) -> Response:
        return Response(json.dumps({"version": __version__}), media_type=JSON)

    async def _metadata(self, request: Request) -> Response:
        if not self._is_let_in(request):
            return _text(403, "Forbidden: the host or the origin is not allowed")
        if self._issuer is None:
            return _text(404, "Not Found")
        found = {
            "resource": self._hosts.resource,
            "authorization_servers": [self._issuer.url],
            "bearer_methods_supported": ["header"],
        }
        return Response(json.dumps(found), media_type=JSON)

    async def _mcp(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        refusal = await self._handled(request, send)
        if refusal is not None:
            await refusal(scope, receive, send)

    async def _handled(self, request: Request, send: Send) -> Response | None:
        """None once the response has been sent."""
        if not self._is_let_in(request):
            return _text(403, "Forbidden: the host or the origin is not allowed")
        if any(name in request.query_params for name in _TOKENS_IN_QUERIES):
            return _text(400, "Bad Request: a token belongs into the header Authorization")
        try:
            caller = await self._callers.caller(request.headers.getlist("authorization"))
        except Unauthorized as exc:
            return self._unauthorized(exc)
        if request.method == "POST":
            return await self._post(request, caller, send)
        if request.method not in ("GET", "DELETE") or is_envelope_era(_headers(request)):
            allowed = "POST" if is_envelope_era(_headers(request)) else "GET, POST, DELETE"
            return _text(405, "Method Not Allowed", {"allow": allowed})
        session = self._session_of(request, caller)
        if isinstance(session, Response):
            return session
        if request.method == "GET":
            return await self._get(request, session, send)
        self._sessions.drop(session)
        return Response(status_code=200)

    def _is_let_in(self, request: Request) -> bool:
        return self._hosts.is_open_to(request.headers.getlist("host"), request.headers.getlist("origin"))

    async def _is_still(self, request: Request) -> bool:
        """A stream without an end is not kept open longer than its token counts. A call that has begun is finished."""
        try:
            await self._callers.caller(request.headers.getlist("authorization"))
        except Unauthorized:
            return False
        return True

    def _unauthorized(self, error: Unauthorized) -> Response:
        parts = ['error="invalid_token"'] if error.was_given else []
        if self._issuer is not None:
            parts.append(f'resource_metadata="{self._hosts.metadata_url}"')
        challenge = " ".join(["Bearer", ", ".join(parts)]).strip()
        return _text(401, f"Unauthorized: {error}", {"www-authenticate": challenge})

    def _session_of(self, request: Request, caller: str) -> HttpSession | Response:
        session_id = request.headers.get(SESSION_HEADER)
        if not session_id:
            return _refused(Refusal(400, "Bad Request: Mcp-Session-Id is missing"))
        session = self._sessions.find(session_id, caller)
        return session or _refused(Refusal(404, "Session not found"))

    # -----------------------------------------------------------------------------------------------------------------
    # POST

    async def _post(self, request: Request, caller: str, send: Send) -> Response | None:
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != JSON:
            return _text(415, "Unsupported Media Type: the body has to be application/json")
        if not _accepts(request, JSON) or not _accepts(request, EVENTS):
            return _text(406, "Not Acceptable: accept application/json and text/event-stream")
        body = await self._body(request)
        if isinstance(body, Response):
            return body
        post = read_post(_headers(request), body)
        if isinstance(post, Refusal):
            return _refused(post)
        if self._is_draining:
            return _busy("the server is ending")
        if post.is_answered and self._in_flight >= self._limits.most_in_flight:
            return _busy("too many calls are in flight")
        if post.is_envelope:
            return await self._exchange(request, post, caller, send)
        return await self._post_to_session(request, post, caller, send)

    async def _body(self, request: Request) -> bytes | Response:
        """A body that is too large is read on for a while: a client that still writes does not read the refusal."""
        most = self._limits.most_body_bytes
        body, count = bytearray(), 0
        try:
            async with asyncio.timeout(self._limits.body_seconds):
                async for chunk in request.stream():
                    count += len(chunk)
                    if count <= most:
                        body += chunk
                    elif count > most * _READ_ON:
                        break
        except TimeoutError:
            return _text(408, "Request Timeout", {"connection": "close"})
        except ClientDisconnect:
            return Response(status_code=400)
        if count > most:
            return _text(413, f"Content Too Large: at most {most} bytes", {"connection": "close"})
        return bytes(body)

    async def _exchange(self, request: Request, post: Post, caller: str, send: Send) -> Response | None:
        if not post.is_answered:
            # The newer era has no notifications from clients that would change anything.
            return Response(status_code=202)
        exchange = HttpExchange(post.body, post.request_id, caller)
        if not self._admit(exchange.key):
            return _busy(_TOO_MANY_SERVERS)
        self._exchanges.add(exchange)
        self._start(exchange)
        try:
            if not await self._responded(request, exchange.outbox, post, send, {}):
                exchange.close()
        except asyncio.CancelledError:
            exchange.close()
            raise
        finally:
            self._exchanges.discard(exchange)
        return None

    async def _post_to_session(self, request: Request, post: Post, caller: str, send: Send) -> Response | None:
        if post.opens_session and not request.headers.get(SESSION_HEADER):
            return await self._open_session(request, post, caller, send)
        session = self._session_of(request, caller)
        if isinstance(session, Response):
            return session
        if not self._admit(session.key):
            return _busy(_TOO_MANY_SERVERS)
        outbox = session.take(post.body, post.request_id, caller, is_answered=post.is_answered)
        if not post.is_answered:
            return Response(status_code=202)
        await self._responded(request, outbox, post, send, {SESSION_HEADER: session.id}, session)
        return None

    async def _open_session(self, request: Request, post: Post, caller: str, send: Send) -> Response | None:
        try:
            session = self._sessions.open(caller)
        except SessionsFull:
            return _busy("too many sessions are open")
        if not self._admit(session.key):
            self._sessions.drop(session)
            return _busy(_TOO_MANY_SERVERS)
        self._start(session)
        outbox = session.take(post.body, post.request_id, caller, is_answered=True)
        await self._responded(request, outbox, post, send, {SESSION_HEADER: session.id}, session)
        if outbox.error_code is not None:
            self._sessions.drop(session)
        return None

    def _start(self, transport: Transport) -> None:
        task = asyncio.ensure_future(self._serve(transport))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.error("a connection ended unexpectedly", name=type(error).__name__, msg=str(error))

    # -----------------------------------------------------------------------------------------------------------------
    # Responses

    async def _responded(
        self,
        request: Request,
        outbox: Outbox,
        post: Post,
        send: Send,
        headers: dict[str, str],
        session: HttpSession | None = None,
    ) -> bool:
        """False when the client has gone before the reply was sent."""
        self._in_flight += 1
        self._nothing_in_flight.clear()
        try:
            async with _Reader(request.receive, outbox, session) as reading:
                # The newer era says that such a response is JSON, however long it takes. In the older ones a stream that
                # shows signs of life is allowed, and keeps proxies from closing the connection.
                is_json = session is None and not post.wants_progress
                await reading.wait(0, None if is_json else self._limits.ping_seconds)
                if reading.is_gone:
                    return False
                if not outbox.is_single_reply:
                    is_primed = session is not None and _is_primed(request)
                    return await self._streamed(reading, send, headers, is_primed=is_primed)
                first = outbox.next_after(0)
                body = first.body if isinstance(first, OutMessage) else b""
                status = post.status_of(outbox.error_code)
                await Response(body, status, headers, JSON)(request.scope, request.receive, send)
                if session is not None:
                    session.forget(outbox)
                return True
        finally:
            self._in_flight -= 1
            if self._in_flight == 0:
                self._nothing_in_flight.set()

    async def _get(self, request: Request, session: HttpSession, send: Send) -> Response | None:
        if not _accepts(request, EVENTS):
            return _text(406, "Not Acceptable: accept text/event-stream")
        if self._is_draining:
            return _busy("the server is ending")
        found = session.find(request.headers.get("last-event-id", ""))
        outbox, after = found or (session.server_stream, session.server_stream.last_sent)
        # A client that comes back takes over: its old connection may be lost without a sign.
        if found is None and outbox.is_read:
            return _refused(Refusal(409, "Conflict: this stream is open already"))
        headers = {SESSION_HEADER: session.id}
        async with _Reader(request.receive, outbox, session) as reading:
            let_in = partial(self._is_still, request)
            if not await self._streamed(reading, send, headers, after, is_primed=False, is_still_let_in=let_in):
                await send({"type": "http.response.body", "body": b"", "more_body": False})
        session.make_room()
        return None

    async def _streamed(
        self,
        reading: "_Reader",
        send: Send,
        headers: dict[str, str],
        after: int = 0,
        *,
        is_primed: bool,
        is_still_let_in: Callable[[], Awaitable[bool]] = _always,
    ) -> bool:
        outbox = reading.outbox
        await send(_start_of_stream(headers))
        if is_primed:
            await send(_piece(priming_event(f"{outbox.name}-{after}")))
        while True:
            found = outbox.next_after(after)
            if isinstance(found, OutMessage):
                event_id = f"{outbox.name}-{found.number}" if outbox.name else None
                await send(_piece(event(found.body, event_id)))
                if reading.is_gone:
                    return False
                after = found.number
                reading.sent(after)
            elif found is Waited.THE_END:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                return True
            elif not await reading.wait(after, self._limits.ping_seconds):
                if reading.is_gone or not await is_still_let_in():
                    return False
                await send(_piece(PING))


class _Reader:
    """A response that reads an outbox, for as long as its client is there."""

    def __init__(self, receive: Receive, outbox: Outbox, session: HttpSession | None) -> None:
        self.outbox = outbox
        self._session = session
        self._receive = receive

    async def __aenter__(self) -> "_Reader":
        self.outbox.reader = self
        self.outbox.wake()
        self._gone = asyncio.ensure_future(_disconnected(self._receive))
        return self

    async def __aexit__(self, *_: object) -> None:
        if self.outbox.reader is self:
            self.outbox.reader = None
        self._gone.cancel()
        if self._session is not None:
            self._session.note_read()

    @property
    def is_gone(self) -> bool:
        """The client has gone, or has come back on another connection."""
        return self._gone.done() or self.outbox.reader is not self

    def sent(self, number: int) -> None:
        self.outbox.sent(number)
        if self._session is not None:
            self._session.note_read()

    async def wait(self, after: int, seconds: float | None) -> bool:
        """Whether there is a message or the end; False when the time is over or the client has gone.

        Without a time there is no end to it but these.
        """
        while self.outbox.next_after(after) is Waited.NOTHING_YET:
            changed = self.outbox.next_change()
            ends: set[asyncio.Future[None]] = {changed, self._gone}
            done, _ = await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
            changed.cancel()
            if changed not in done or self.is_gone:
                return False
        return True


async def _disconnected(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


class _Asgi:
    """Starlette takes a class instance for an application, and a function for a view."""

    def __init__(self, app: Callable[[Scope, Receive, Send], Awaitable[None]]) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await self._app(scope, receive, send)


def _headers(request: Request) -> Headers:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in request.scope["headers"]]


def _accepts(request: Request, media_type: str) -> bool:
    wanted = {part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")}
    return bool(wanted & {media_type, "*/*", f"{media_type.partition('/')[0]}/*"})


def _is_primed(request: Request) -> bool:
    return request.headers.get("mcp-protocol-version", "") >= _PRIMED_REVISION


def _start_of_stream(headers: dict[str, str]) -> Message:
    named = {"content-type": EVENTS, **_STREAM_HEADERS, **headers}
    raw = [(name.encode(), value.encode()) for name, value in named.items()]
    return {"type": "http.response.start", "status": 200, "headers": raw}


def _piece(data: bytes) -> Message:
    return {"type": "http.response.body", "body": data, "more_body": True}


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(f"{text}\n", status, headers, "text/plain")


def _refused(refusal: Refusal) -> Response:
    return Response(refusal.body, refusal.status, None, JSON)


def _busy(reason: str) -> Response:
    return _text(503, f"Service Unavailable: {reason}", {"retry-after": str(RETRY_AFTER_SECONDS)})
