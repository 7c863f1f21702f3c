"""Joins all HTTP exchanges of one caller into one client, for a server that runs one process per caller.

Two exchanges may use the same request id or progress token. So both are replaced by a number on the way in, and put back
on the way out. If the client closes an exchange, its request is cancelled.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable

from openai_responses_mcp.adapters.http.posts import HEADER_MISMATCH, error_body
from openai_responses_mcp.adapters.http.sessions import MOST_UNREAD_BYTES, HttpExchange, HttpSession
from openai_responses_mcp.adapters.http.streams import Outbox
from openai_responses_mcp.adapters.remote.wire import EnvelopeHeaders
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.jsonrpc import JsonObject, Request, read
from openai_responses_mcp.domain.ports import Channel, Received, Transport

ServeClient = Callable[[Transport, str, str], Awaitable[None]]
"""Serves one client until it disconnects. Arguments: its transport, its unique key, and the caller."""

_SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class ClientsOfCallers:
    """A session is one client; all exchanges of a caller together are one client."""

    def __init__(self, serve_client: ServeClient) -> None:
        self._serve_client = serve_client
        self._joined: dict[str, JoinedExchanges] = {}
        self._tasks: set[asyncio.Future[None]] = set()

    async def serve(self, transport: Transport) -> None:
        if isinstance(transport, HttpSession):
            await self._serve_client(transport, transport.key, transport.caller)
        elif isinstance(transport, HttpExchange):
            await self._of_caller(transport).serve(transport)

    async def close(self, seconds: float) -> None:
        """Close all joined clients, and wait for them up to `seconds`."""
        for joined in self._joined.values():
            joined.close()
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=seconds)

    def _of_caller(self, exchange: HttpExchange) -> "JoinedExchanges":
        if exchange.key not in self._joined:
            joined = self._joined[exchange.key] = JoinedExchanges()
            task = asyncio.ensure_future(self._serve_client(joined, exchange.key, exchange.caller))
            self._tasks.add(task)
            task.add_done_callback(lambda task: self._ended(task, exchange.key))
        return self._joined[exchange.key]

    def _ended(self, task: "asyncio.Future[None]", key: str) -> None:
        """The next exchange of the caller starts again."""
        self._tasks.discard(task)
        self._joined.pop(key).fail()


class JoinedExchanges(Transport):
    def __init__(self) -> None:
        self._incoming: asyncio.Queue[Received | None] = asyncio.Queue()
        self.open: dict[int, _JoinedChannel] = {}
        self._last_number = 0
        self._is_closed = False
        # What clients were shown decides which arguments their headers repeat.
        self.headers = EnvelopeHeaders()

    async def serve(self, exchange: HttpExchange) -> None:
        """Returns when the exchange is answered or its client has disconnected."""
        received = await exchange.receive()
        number = self._take(exchange, received) if received is not None else 0
        try:
            await exchange.receive()
        except TransportClosed:
            if number in self.open:
                cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
                self._incoming.put_nowait(Received(_ENCODER.encode(cancelled).encode(), Outbox()))

    def _take(self, exchange: HttpExchange, received: Received) -> int:
        message = read(received.body) if isinstance(received.body, bytes) else None
        if not isinstance(message, Request):
            self._incoming.put_nowait(received)
            return 0
        if (differing := self.headers.differing(message, exchange.headers)) is not None:
            reason = f"the header {differing} differs from the body"
            received.channel.reply(error_body(message.id, HEADER_MISMATCH, reason), HEADER_MISMATCH)
            return 0
        self._last_number = number = self._last_number + 1
        params, meta = message.params, _object(message.params.get("_meta"))
        token = meta.get("progressToken")
        if token is not None:
            params = {**params, "_meta": {**meta, "progressToken": number}}
        channel = self.open[number] = _JoinedChannel(self, number, exchange, message, token)
        with_params = {"params": params} if "params" in message.content else {}
        body = _ENCODER.encode({**message.content, "id": number, **with_params}).encode()
        self._incoming.put_nowait(Received(body, channel, received.caller))
        return number

    async def receive(self) -> Received | None:
        if self._is_closed:
            raise TransportClosed("the server is ending")
        received = await self._incoming.get()
        if received is None:
            raise TransportClosed("the server is ending")
        return received

    def send(self, body: bytes) -> None:
        """Send to the exchange that the message names. A message that belongs to no open request is dropped."""
        params = _object(json.loads(body).get("params"))
        meta = _object(params.get("_meta"))
        number = meta.get(_SUBSCRIPTION_KEY, params.get("requestId"))
        if isinstance(number, int) and number in self.open:
            self.open[number].send(body)

    async def flush(self) -> None:
        """Wait while any exchange of the caller has too much unread output."""
        while not self._is_closed:
            slow = [one.exchange for one in self.open.values() if one.exchange.outbox.unread_bytes > MOST_UNREAD_BYTES]
            if not slow:
                return
            await slow[0].outbox.change()

    def close(self) -> None:
        self._is_closed = True
        self._incoming.put_nowait(None)

    def fail(self) -> None:
        """The server has stopped, so nothing more is answered."""
        for channel in self.open.values():
            channel.exchange.fail()


class _JoinedChannel(Channel):
    """Replies to one exchange, with the ids that its client used."""

    def __init__(
        self, joined: JoinedExchanges, number: int, exchange: HttpExchange, request: Request, token: object
    ) -> None:
        self.exchange = exchange
        self._joined = joined
        self._number = number
        self._request = request
        self._token = token

    def send(self, body: bytes) -> None:
        content = json.loads(body)
        params = _object(content.get("params"))
        meta = _object(params.get("_meta"))
        if params.get("progressToken") == self._number:
            params = {**params, "progressToken": self._token}
        if params.get("requestId") == self._number:
            params = {**params, "requestId": self._request.id}
        if meta.get(_SUBSCRIPTION_KEY) == self._number:
            params = {**params, "_meta": {**meta, _SUBSCRIPTION_KEY: self._request.id}}
        self.exchange.outbox.send(_ENCODER.encode({**content, "params": params} if params else content).encode())

    def reply(self, body: bytes, error_code: int | None = None) -> None:
        content = json.loads(body)
        self._joined.open.pop(self._number, None)
        if self._request.method == "tools/list":
            self._joined.headers.note_tools(content.get("result"))
        self.exchange.outbox.reply(_ENCODER.encode({**content, "id": self._request.id}).encode(), error_code)

    def withdraw(self) -> None:
        self._joined.open.pop(self._number, None)
        self.exchange.outbox.withdraw()


def _object(value: object) -> JsonObject:
    return value if isinstance(value, dict) else {}
