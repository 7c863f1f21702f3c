"""A small asyncio HTTP/1.1 server: one connection object per client, one task per request.

The handler gets a request and gives a reply. A client that goes away cancels the handler at once; what happened is
counted and can be waited for.
"""

import asyncio
import json
import socket
import struct
from collections import deque
from collections.abc import Awaitable, Callable
from typing import cast

from tests.stand_in.http_wire import (
    BadRequest,
    Ending,
    RecordedRequest,
    Reply,
    RequestReader,
    render_chunk,
    render_head,
)

Handler = Callable[[RecordedRequest], Awaitable[Reply]]

WAIT_SECONDS = 30.0  # what is waited for may be a process that still loads the SDK

_BACKLOG = 4096
_MAX_READ_AHEAD_BYTES = 64 * 1024
_CLOSE_WITH_RESET = struct.pack("ii", 1, 0)
_TURNS_TO_ACCEPT = 10


class HttpServer:
    """Serves one handler on loopback and keeps count of requests, connections and clients that went away."""

    def __init__(self, handler: Handler, *, keep_requests: int = 0) -> None:
        self.handler = handler
        self.received = 0
        self.disconnects = 0
        self.aborted = 0
        self._requests: deque[RecordedRequest] = deque(maxlen=keep_requests)
        self._connections: set[_Connection] = set()
        self._waiters: list[asyncio.Future[None]] = []
        self._server: asyncio.Server | None = None

    @property
    def requests(self) -> list[RecordedRequest]:
        """The latest requests, oldest first, as many as `keep_requests` allows."""
        return list(self._requests)

    async def start(self, host: str = "127.0.0.1", port: int = 0) -> str:
        """Start to listen; gives the base URL for clients."""
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: _Connection(self), host, port, backlog=_BACKLOG)
        port = self._server.sockets[0].getsockname()[1]
        return f"http://{host}:{port}/v1"

    async def close(self) -> None:
        """Stop listening and drop every connection; safe to call twice."""
        if self._server is None:
            return
        # asyncio leaves a socket open that it has accepted but not yet given to a connection when the server closes.
        # So accept no more clients, give those accepted the turns of the loop that they need, and close last.
        for listener in self._server.sockets:
            asyncio.get_running_loop().remove_reader(listener.fileno())
        for _ in range(_TURNS_TO_ACCEPT):
            await asyncio.sleep(0)
        self._server.close()
        tasks = [task for connection in list(self._connections) if (task := connection.drop())]
        await asyncio.gather(*tasks, return_exceptions=True)
        await self.wait_until(lambda: not self._connections)
        await self._server.wait_closed()
        self._server = None

    async def wait_until(self, claim: Callable[[], bool], timeout_seconds: float = WAIT_SECONDS) -> None:
        """Return once the claim about this server holds; raises TimeoutError when it does not come true."""
        async with asyncio.timeout(timeout_seconds):
            while not claim():
                waiter = asyncio.get_running_loop().create_future()
                self._waiters.append(waiter)
                await waiter

    async def wait_for_requests(self, count: int = 1) -> None:
        """Return once this many requests have arrived since the start."""
        await self.wait_until(lambda: self.received >= count)

    async def wait_for_disconnect(self, count: int = 1) -> None:
        """Return once this many connections were closed by their clients since the start."""
        await self.wait_until(lambda: self.disconnects >= count)

    async def wait_for_abort(self, count: int = 1) -> None:
        """Return once this many clients went away before their answer was complete."""
        await self.wait_until(lambda: self.aborted >= count)

    def note_opened(self, connection: "_Connection") -> None:
        self._connections.add(connection)
        self._tell_waiters()

    def note_received(self, request: RecordedRequest) -> None:
        self.received += 1
        self._requests.append(request)
        self._tell_waiters()

    def note_closed(self, connection: "_Connection", *, by_client: bool, was_answering: bool) -> None:
        self._connections.discard(connection)
        self.disconnects += by_client
        self.aborted += by_client and was_answering
        self._tell_waiters()

    def _tell_waiters(self) -> None:
        waiters, self._waiters = self._waiters, []
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)


class _Connection(asyncio.Protocol):
    """One client: its requests are answered one after another."""

    def __init__(self, server: HttpServer) -> None:
        self._server = server
        self._reader = RequestReader()
        self._task: asyncio.Task[None] | None = None
        self._is_closed_by_us = False
        self._may_write = asyncio.Event()
        self._may_write.set()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        self._server.note_opened(self)

    def data_received(self, data: bytes) -> None:
        self._reader.receive(data)
        if self._task is None:
            self._begin_next()
        elif self._reader.buffered > _MAX_READ_AHEAD_BYTES:
            self._transport.pause_reading()

    def eof_received(self) -> None:
        # A client that still wanted its answer would have kept its side open.
        if self._task is not None:
            self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        was_answering = self._task is not None
        if self._task is not None:
            self._task.cancel()
        self._server.note_closed(self, by_client=not self._is_closed_by_us, was_answering=was_answering)

    def pause_writing(self) -> None:
        self._may_write.clear()

    def resume_writing(self) -> None:
        self._may_write.set()

    def drop(self) -> asyncio.Task[None] | None:
        """Close without a word; gives the task that is being cancelled by it."""
        self._is_closed_by_us = True
        self._transport.abort()
        return self._task

    def _begin_next(self) -> None:
        try:
            request = self._reader.maybe_next_request()
        except BadRequest as exc:
            self._refuse(exc)
            return
        if request is None:
            return
        self._server.note_received(request)
        self._task = asyncio.get_running_loop().create_task(self._serve(request))

    def _refuse(self, problem: BadRequest) -> None:
        error = {"message": problem.message, "type": "invalid_request_error", "param": None, "code": None}
        reply = Reply(problem.status, {"content-type": "application/json"}, json.dumps({"error": error}).encode())
        self._transport.write(render_head(reply, is_last=True) + cast(bytes, reply.body))
        self._close()

    async def _serve(self, request: RecordedRequest) -> None:
        is_kept = False
        try:
            reply = await self._server.handler(request)
            is_kept = await self._send(request, reply)
        finally:
            self._task = None
            if not is_kept:
                self._close()
        if is_kept:
            self._transport.resume_reading()
            self._begin_next()

    async def _send(self, request: RecordedRequest, reply: Reply) -> bool:
        if reply.ending is Ending.HANG_UP:
            return False
        if reply.ending is Ending.RESET:
            sock = self._transport.get_extra_info("socket")
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _CLOSE_WITH_RESET)
            self.drop()
            return False
        is_last = request.is_last
        await self._send_body(render_head(reply, is_last=is_last), reply)
        return reply.ending is Ending.KEEP and not is_last

    async def _send_body(self, head: bytes, reply: Reply) -> None:
        if isinstance(reply.body, bytes):
            self._transport.write(head + reply.body)
            await self._may_write.wait()
            return
        self._transport.write(head)
        async for data in reply.body:
            self._transport.write(render_chunk(data))
            await self._may_write.wait()
        if reply.ending is Ending.KEEP:
            self._transport.write(b"0\r\n\r\n")

    def _close(self) -> None:
        self._is_closed_by_us = True
        self._transport.close()
