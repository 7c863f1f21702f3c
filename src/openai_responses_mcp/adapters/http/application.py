"""The web application: `/mcp` as Streamable HTTP, `/healthz`, and metadata that names the issuer of tokens to clients.

Each request is checked in this order: host and origin, token, method, headers, size, message. Only then does it reach
`serve`, which gets a transport: one per session, or one per exchange where there is no session.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any, NamedTuple

from starlette.applications import Starlette
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from openai_responses_mcp import __version__
from openai_responses_mcp.adapters.http.access import (
    MCP_PATH,
    METADATA_PATH,
    AllowedHosts,
    Callers,
    Issuer,
    IssuerUnavailable,
    Unauthorized,
)
from openai_responses_mcp.adapters.http.posts import Headers, Post, Refusal, is_envelope_era, read_post
from openai_responses_mcp.adapters.http.sessions import HttpExchange, HttpSession, Sessions, SessionsFull
from openai_responses_mcp.adapters.http.streams import END_OF_STREAM, EVENTS, Outbox, OutboxReader
from openai_responses_mcp.domain.ports import Logger, Transport

JSON = "application/json"
SESSION_HEADER = "mcp-session-id"
RETRY_AFTER_SECONDS = 5
# A body is read up to this many times the limit before the connection is closed.
_READ_ON = 4

# From this revision on, a stream may begin with an event that has no message.
_PRIMED_REVISION = "2025-11-25"
_FORBIDDEN = "Forbidden: the host or the origin is not allowed (see http.public_url)"
_TOO_MANY_SERVERS = "too many servers are running"
_TOKENS_IN_QUERIES = ("access_token", "token", "authorization", "api_key")

Serve = Callable[[Transport], Awaitable[None]]


def _nothing() -> None: ...


class HttpLimits(NamedTuple):
    most_body_bytes: int = 4 * 1024 * 1024
    most_sessions: int = 1000
    most_in_flight: int = 10_000
    body_seconds: float = 30.0
    ping_seconds: float = 15.0


class McpOverHttp:
    """The ASGI application behind `/mcp`.

    `admit` decides whether the client with this key may be served. `on_reply` follows each reply to that client.
    """

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
        on_reply: Callable[[str], object] = lambda key: None,
    ) -> None:
        self._serve = serve
        self._hosts = hosts
        self._callers = callers
        self._logger = logger
        self._issuer = issuer
        self._limits = limits
        self._admit = admit
        self._on_reply = on_reply
        self._sessions = Sessions(limits.most_sessions)
        self._serving: dict[asyncio.Task[None], HttpSession | HttpExchange] = {}
        self._in_flight = 0
        self._is_draining = False
        self._nothing_in_flight = asyncio.Event()
        self._nothing_in_flight.set()
        self.app: ASGIApp = Starlette(
            routes=[
                # Starlette takes an instance for an ASGI application, and a function for a view.
                Route(MCP_PATH, self),
                Route(f"{MCP_PATH}/", self),
                Route("/healthz", self._health, methods=["GET"]),
                Route(METADATA_PATH, self._metadata, methods=["GET"]),
                Route(f"{METADATA_PATH}{MCP_PATH}", self._metadata, methods=["GET"]),
            ]
        )

    async def drain(
        self, seconds: float, hurry: "asyncio.Future[int]", on_over: Callable[[], object] = _nothing
    ) -> None:
        """Refuse new calls. Give those in flight `seconds` to end, or less if `hurry` is done before.

        Then call `on_over` and close every connection.
        """
        self._is_draining = True
        all_ended = asyncio.ensure_future(self._nothing_in_flight.wait())
        ends: set[asyncio.Future[Any]] = {all_ended, hurry}
        await asyncio.wait(ends, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        all_ended.cancel()
        if self._in_flight and seconds:
            self._logger.warning("calls did not end in time", calls=self._in_flight)
        on_over()
        for transport in self._serving.values():
            transport.close()
        if self._serving:
            await asyncio.wait(self._serving, timeout=1.0)

    # -----------------------------------------------------------------------------------------------------------------
    # Requests

    async def _health(self, request: Request) -> Response:
        return Response(json.dumps({"version": __version__}), media_type=JSON)

    async def _metadata(self, request: Request) -> Response:
        if not self._is_let_in(request):
            return _text(403, _FORBIDDEN)
        if self._issuer is None:
            return _text(404, "Not Found")
        found = {
            "resource": self._hosts.resource,
            "authorization_servers": [self._issuer.url],
            "bearer_methods_supported": ["header"],
        }
        return Response(json.dumps(found), media_type=JSON)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        refusal = await self._handled(Request(scope, receive), send)
        if refusal is not None:
            await refusal(scope, receive, send)

    async def _handled(self, request: Request, send: Send) -> Response | None:
        """None once the response has been sent."""
        if not self._is_let_in(request):
            return _text(403, _FORBIDDEN)
        if any(name.lower() in _TOKENS_IN_QUERIES for name in request.query_params):
            return _text(400, "Bad Request: a token belongs into the header Authorization")
        try:
            caller = await self._callers.caller(request.headers.getlist("authorization"))
        except IssuerUnavailable as exc:
            return _busy(str(exc))
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

    async def _is_still_let_in(self, request: Request) -> bool:
        """True while the token is valid. Without it an endless stream is closed; a call that has begun is finished."""
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
        # A message that gets no reply is always taken: it answers a question of a call in flight, or cancels one.
        if post.is_answered and self._is_draining:
            return _busy("the server is ending")
        if post.is_answered and self._in_flight >= self._limits.most_in_flight:
            return _busy("too many calls are in flight")
        if post.is_envelope:
            return await self._exchange(request, post, caller, send)
        return await self._post_to_session(request, post, caller, send)

    async def _body(self, request: Request) -> bytes | Response:
        """Reads some of a body that is too large, because a client that is still writing does not read the refusal."""
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
            # In the newer era, no notification from a client has an effect.
            return Response(status_code=202)
        exchange = HttpExchange(post.body, post.request_id, caller, _headers(request))
        if not self._admit(exchange.key):
            return _busy(_TOO_MANY_SERVERS)
        self._start(exchange)
        try:
            if not await self._responded(request, exchange, exchange.outbox, post, send):
                exchange.close()
        except asyncio.CancelledError:
            exchange.close()
            raise
        return None

    async def _post_to_session(self, request: Request, post: Post, caller: str, send: Send) -> Response | None:
        if post.opens_session and not request.headers.get(SESSION_HEADER):
            return await self._open_session(request, post, caller, send)
        session = self._session_of(request, caller)
        if isinstance(session, Response):
            return session
        if session.is_full:
            return _busy("too much waits in the session")
        if not self._admit(session.key):
            return _busy(_TOO_MANY_SERVERS)
        outbox = session.take(post.body, post.request_id, caller, is_answered=post.is_answered)
        if not post.is_answered:
            return Response(status_code=202)
        await self._responded(request, session, outbox, post, send)
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
        await self._responded(request, session, outbox, post, send)
        if outbox.error_code is not None:
            self._sessions.drop(session)
        return None

    def _start(self, transport: HttpSession | HttpExchange) -> None:
        task: asyncio.Task[None] = asyncio.ensure_future(self._serve(transport))
        self._serving[task] = transport
        task.add_done_callback(self._ended)

    def _ended(self, task: "asyncio.Task[None]") -> None:
        transport = self._serving.pop(task)
        transport.fail()
        if isinstance(transport, HttpSession):
            self._sessions.drop(transport)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._logger.error("a connection ended unexpectedly", name=type(error).__name__, msg=str(error))

    # -----------------------------------------------------------------------------------------------------------------
    # Responses

    async def _responded(
        self,
        request: Request,
        transport: HttpSession | HttpExchange,
        outbox: Outbox,
        post: Post,
        send: Send,
    ) -> bool:
        """False if the client disconnected before the reply was sent."""
        session = transport if isinstance(transport, HttpSession) else None
        headers = {} if session is None else {SESSION_HEADER: session.id}
        self._in_flight += 1
        self._nothing_in_flight.clear()
        try:
            async with OutboxReader(request.receive, outbox, session.note_change if session else _nothing) as reading:
                # In the newer era, a response without progress must be JSON, however long it takes. In the older ones
                # it may become a stream, whose pings keep proxies from closing the connection.
                is_json = session is None and not post.wants_progress
                await reading.wait(0, None if is_json else self._limits.ping_seconds)
                if reading.is_gone:
                    return False
                reply = outbox.single_reply
                if reply is None:
                    revision = request.headers.get("mcp-protocol-version", "")
                    is_primed = session is not None and revision >= _PRIMED_REVISION
                    return await reading.stream(send, headers, self._limits.ping_seconds, is_primed=is_primed)
                status = post.status_of(outbox.error_code)
                await Response(reply, status, headers, JSON)(request.scope, request.receive, send)
                if session is not None:
                    session.forget(outbox)
                return True
        finally:
            # After a disconnect, a call goes on in the older eras. In the newer one, cancelling it takes a moment.
            outbox.when_ended(partial(self._note_end_of_call, transport.key))

    def _note_end_of_call(self, key: str) -> None:
        self._on_reply(key)
        self._in_flight -= 1
        if self._in_flight == 0:
            self._nothing_in_flight.set()

    async def _get(self, request: Request, session: HttpSession, send: Send) -> Response | None:
        if not _accepts(request, EVENTS):
            return _text(406, "Not Acceptable: accept text/event-stream")
        found = session.find(request.headers.get("last-event-id", ""))
        if self._is_draining and found is None:
            return _busy("the server is ending")
        outbox, after = found or (session.server_stream, session.server_stream.last_sent)
        # A client that resumes a stream takes it over: its old connection may be dead without notice.
        if found is None and outbox.reader:
            return _refused(Refusal(409, "Conflict: this stream is open already"))
        headers = {SESSION_HEADER: session.id}
        async with OutboxReader(request.receive, outbox, session.note_change) as reading:
            let_in = partial(self._is_still_let_in, request)
            if not await reading.stream(send, headers, self._limits.ping_seconds, after, is_still_let_in=let_in):
                await send(END_OF_STREAM)
        return None


def _headers(request: Request) -> Headers:
    return [(name.decode("latin-1").lower(), value.decode("latin-1")) for name, value in request.scope["headers"]]


def _accepts(request: Request, media_type: str) -> bool:
    wanted = {part.partition(";")[0].strip().lower() for part in request.headers.get("accept", "").split(",")}
    return bool(wanted & {media_type, "*/*", f"{media_type.partition('/')[0]}/*"})


def _text(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(f"{text}\n", status, headers, "text/plain")


def _refused(refusal: Refusal) -> Response:
    return Response(refusal.body, refusal.status, None, JSON)


def _busy(reason: str) -> Response:
    return _text(503, f"Service Unavailable: {reason}", {"retry-after": str(RETRY_AFTER_SECONDS)})
