"""The client's end of a session over HTTP, and the transport at the other end, without a network in between."""

import asyncio
import json
from typing import Any

from starlette.types import Message

from openai_responses_mcp.adapters.http.access import AllowedHosts, Callers
from openai_responses_mcp.adapters.http.application import McpOverHttp
from openai_responses_mcp.adapters.http.sessions import HttpSession
from openai_responses_mcp.domain.ports import Transport
from tests.fakes import WAIT_SECONDS, FakeLogger

PORT = 8080
INITIALIZE = {"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": {}}


class Exchanged:
    """One request of the client: what it sends, and what it has read. It reads while `is_reading` is set."""

    def __init__(self, body: bytes, is_reading: asyncio.Event, something_came: asyncio.Event) -> None:
        self.status = 0
        self.headers: dict[str, str] = {}
        self.data = b""
        self._body = body
        self._is_reading = is_reading
        self._something_came = something_came
        self._has_sent_body = False
        self._has_left = asyncio.Event()

    def leave(self) -> None:
        self._has_left.set()

    async def receive(self) -> Message:
        if not self._has_sent_body:
            self._has_sent_body = True
            return {"type": "http.request", "body": self._body, "more_body": False}
        await self._has_left.wait()
        return {"type": "http.disconnect"}

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
            self.headers = {name.decode(): value.decode() for name, value in message["headers"]}
        else:
            await self._is_reading.wait()
            self.data += message["body"]
        self._something_came.set()

    @property
    def messages(self) -> list[bytes]:
        if self.headers.get("content-type") != "text/event-stream":
            return [self.data] if self.data else []
        return [line[6:] for line in self.data.split(b"\n") if line.startswith(b"data: ")]


class HttpSessionClient:
    """Made inside the running event loop. `opened` opens a session and its stream."""

    def __init__(self) -> None:
        self._transports: asyncio.Queue[Transport] = asyncio.Queue()
        self._ended = asyncio.Event()
        self._mcp = McpOverHttp(
            self._serve, AllowedHosts(f"http://127.0.0.1:{PORT}", None), Callers({}, None), FakeLogger()
        )
        self._exchanges: list[Exchanged] = []
        self._tasks: list[asyncio.Task[None]] = []
        self._is_reading = asyncio.Event()
        self._is_reading.set()
        self._something_came = asyncio.Event()
        self._headers: dict[str, str] = {}
        self.session: HttpSession

    async def _serve(self, transport: Transport) -> None:
        self._transports.put_nowait(transport)
        await self._ended.wait()

    async def opened(self) -> "HttpSessionClient":
        first = self._request("POST", json.dumps(INITIALIZE).encode())
        async with asyncio.timeout(WAIT_SECONDS):
            transport = await self._transports.get()
            assert isinstance(transport, HttpSession)
            self.session = transport
            received = await transport.receive()
            assert received is not None
            received.channel.reply(b'{"jsonrpc":"2.0","id":"first","result":{}}')
            await asyncio.wait(self._tasks)
        assert (first.status, first.headers["mcp-session-id"]) == (200, transport.id)
        self._exchanges.clear()
        self._headers = {"mcp-session-id": transport.id}
        stream = self._request("GET")
        async with asyncio.timeout(WAIT_SECONDS):
            while not stream.status:
                await self._news()
        return self

    def write(self, *messages: bytes) -> None:
        for message in messages:
            self._request("POST", message)

    def close(self) -> None:
        """The session is over; its readers leave."""
        self._request("DELETE")
        for exchange in self._exchanges:
            exchange.leave()

    def stop_reading(self) -> None:
        self._is_reading.clear()

    def read_again(self) -> None:
        self._is_reading.set()

    async def read(self, count: int) -> list[bytes]:
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self._read) < count:
                await self._news()
        return self._read[:count]

    async def leave(self) -> None:
        self._ended.set()
        self._is_reading.set()
        for task in self._tasks:
            task.cancel()
        await asyncio.wait(self._tasks, timeout=WAIT_SECONDS)

    async def _news(self) -> None:
        self._something_came.clear()
        await self._something_came.wait()

    @property
    def _read(self) -> list[bytes]:
        return [message for exchange in self._exchanges for message in exchange.messages]

    def _request(self, method: str, body: bytes = b"") -> Exchanged:
        exchange = Exchanged(body, self._is_reading, self._something_came)
        headers = {
            "host": f"127.0.0.1:{PORT}",
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
            **self._headers,
        }
        scope: dict[str, Any] = {
            "type": "http",
            "method": method,
            "path": "/mcp",
            "query_string": b"",
            "headers": [(name.encode(), value.encode()) for name, value in headers.items()],
        }
        self._exchanges.append(exchange)
        self._tasks.append(asyncio.ensure_future(self._mcp.app(scope, exchange.receive, exchange.send)))
        return exchange
