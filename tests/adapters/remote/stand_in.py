"""A scripted remote MCP server on loopback, and a transport connected to it."""

import asyncio
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from openai_responses_mcp.adapters.http.serving import HttpServer, Tls, listening_socket
from openai_responses_mcp.adapters.remote import oauth
from openai_responses_mcp.adapters.remote.credentials import Credentials
from openai_responses_mcp.adapters.remote.exchange import Advice, Exchange
from openai_responses_mcp.adapters.remote.server import RemoteServer
from openai_responses_mcp.adapters.remote.wire import RemoteAddress, remote_address
from tests.fakes import WAIT_SECONDS

Message = dict[str, Any]
Answering = Callable[["Asked"], Awaitable[Response]]

LONGEST = 100_000
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
INITIALIZE: Message = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}},
}
INITIALIZED: Message = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def encoded(message: Message) -> bytes:
    return json.dumps(message).encode()


def request(request_id: int | str, method: str = "tools/call", **params: Any) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params}


def result(request_id: int | str, **content: Any) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "result": content}


class Asked:
    """One HTTP request that arrived, with its body."""

    def __init__(self, method: str, headers: Mapping[str, str], body: bytes) -> None:
        self.method = method
        self.headers = headers
        self.body = body

    @property
    def message(self) -> Message:
        message: Message = json.loads(self.body)
        return message

    @property
    def kind(self) -> str:
        """The method of the message, or the HTTP method if there is no body."""
        return str(self.message.get("method", "reply")) if self.body else self.method


def as_json(message: Message | bytes, status: int = 200, **headers: str) -> Response:
    body = message if isinstance(message, bytes) else encoded(message)
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return Response(body, status, named, "application/json")


def events(*parts: bytes | asyncio.Event) -> Response:
    """A stream that waits at each `asyncio.Event`."""

    async def written() -> AsyncIterator[bytes]:
        for part in parts:
            if isinstance(part, asyncio.Event):
                await part.wait()
            else:
                yield part

    return StreamingResponse(written(), media_type="text/event-stream")


def event(message: Message, event_id: str = "") -> bytes:
    named = f"id: {event_id}\n" if event_id else ""
    return f"{named}data: {json.dumps(message)}\n\n".encode()


class StandIn:
    """Answers as `answers` says for the kind of request; sessions, notifications and `GET` as a plain server does."""

    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answers: dict[str, Answering] = {}
        self.sessions = 0
        self.is_reading = asyncio.Event()
        self.is_reading.set()
        self.something_came = asyncio.Event()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        incoming = Request(scope, receive)
        await self.is_reading.wait()
        asked = Asked(incoming.method, incoming.headers, await incoming.body())
        self.asked.append(asked)
        self.something_came.set()
        answer = self.answers.get(asked.kind, self._answer)
        await (await answer(asked))(scope, receive, send)

    async def _answer(self, asked: Asked) -> Response:
        if asked.kind == "initialize":
            self.sessions += 1
            shown = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
            return as_json(result(asked.message["id"], **shown), mcp_session_id=f"session-{self.sessions}")
        if asked.method != "POST":
            return Response(status_code=405 if asked.method == "GET" else 200)
        if "id" not in asked.message or "method" not in asked.message:
            return Response(status_code=202)
        return as_json(result(asked.message["id"], of=asked.kind))

    def kinds(self) -> list[str]:
        return [one.kind for one in self.asked]

    def first(self, kind: str) -> Asked:
        return next(one for one in self.asked if one.kind == kind)

    async def came(self, kind: str, count: int = 1) -> list[Asked]:
        """Wait until `count` requests of this kind have arrived."""
        async with asyncio.timeout(WAIT_SECONDS):
            while self.kinds().count(kind) < count:
                self.something_came.clear()
                await self.something_came.wait()
        return [one for one in self.asked if one.kind == kind]


class Scene:
    def __init__(
        self, stand_in: StandIn, address: RemoteAddress, transport: RemoteServer, shown_lines: list[str]
    ) -> None:
        self.server, self.address, self.transport, self.shown_lines = stand_in, address, transport, shown_lines

    def send(self, *messages: Message) -> None:
        for message in messages:
            self.transport.send(encoded(message))

    async def raw(self) -> bytes:
        received = await asyncio.wait_for(self.transport.receive(), WAIT_SECONDS)
        assert received is not None
        assert isinstance(received.body, bytes), received.body
        return received.body

    async def next(self) -> Message:
        message: Message = json.loads(await self.raw())
        return message

    async def error(self) -> str:
        """The text of the next message, which is an error."""
        text: str = (await self.next())["error"]["message"]
        return text

    async def opened(self) -> "Scene":
        """Open a session of the older era, as a client does."""
        self.send(INITIALIZE)
        assert (await self.next())["id"] == 0
        self.send(INITIALIZED)
        await self.server.came("notifications/initialized")
        if self.server.sessions:
            await self.server.came("GET")
        return self


@asynccontextmanager
async def serving(stand_in: StandIn, tls: Tls | None = None) -> AsyncIterator[str]:
    """Yields the URL."""
    listening, server = listening_socket("127.0.0.1", 0), HttpServer(stand_in, tls=tls)
    running = asyncio.ensure_future(server.serve(sockets=[listening]))
    try:
        yield f"http{'s' if tls else ''}://127.0.0.1:{listening.getsockname()[1]}/mcp"
    finally:
        server.should_exit = True
        await asyncio.wait_for(running, WAIT_SECONDS)


@asynccontextmanager
async def remote(
    credentials: Credentials | None = None,
    variables: tuple[str, ...] = (),
    fixed: Mapping[str, str] | None = None,
    url: str | None = None,
    tls: Callable[[], ssl.SSLContext] = httpx2.create_ssl_context,
) -> AsyncIterator[Scene]:
    stand_in = StandIn()
    async with serving(stand_in) as served:
        address = remote_address(url or served)
        shown_lines: list[str] = []
        given = credentials or Credentials(address, None, oauth.renew, fixed)
        exchange = Exchange(address, given, Advice("guard login --url X", variables), tls)
        transport = RemoteServer(exchange, shown_lines.append, LONGEST, retry_seconds=0.02, json_seconds=0.5)
        try:
            yield Scene(stand_in, address, transport, shown_lines)
        finally:
            await asyncio.wait_for(transport.end(), WAIT_SECONDS)
