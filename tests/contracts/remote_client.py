"""A remote server on loopback as the other end of a transport: it writes on its own stream, and reads what is posted."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

from starlette.responses import Response, StreamingResponse

from openai_responses_mcp.domain.ports import Transport
from tests.adapters.remote.stand_in import LONGEST, Asked, Scene, StandIn, remote
from tests.fakes import WAIT_SECONDS


class RemoteEndClient:
    """Made inside the running event loop. `opened` opens a session and its stream."""

    def __init__(self) -> None:
        self._stack = AsyncExitStack()
        self._scene: Scene
        self._outgoing: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._opening = 0
        self._has_ended = False

    async def opened(self) -> "RemoteEndClient":
        self._scene = await self._stack.enter_async_context(remote())
        self._server.answers["GET"] = self._stream
        await self._scene.opened()
        await self._server.came("GET")
        self._opening = len(self._posted())
        return self

    @property
    def _server(self) -> StandIn:
        return self._scene.server

    @property
    def transport(self) -> Transport:
        return self._scene.transport

    def write(self, *messages: bytes) -> None:
        for message in messages:
            self._outgoing.put_nowait(b"data: %b\n\n" % message)

    def write_garbage(self) -> None:
        self.write(b"x" * (LONGEST + 1))

    def end(self) -> None:
        self._outgoing.put_nowait(None)

    def close(self) -> None:
        """A remote server cannot hang up on the transport; the guard closes it."""
        self._scene.transport.close()

    def stop_reading(self) -> None:
        self._server.is_reading.clear()

    def read_again(self) -> None:
        self._server.is_reading.set()

    async def read(self, count: int) -> list[bytes]:
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self._posted()) < self._opening + count:
                self._server.something_came.clear()
                await self._server.something_came.wait()
        return self._posted()[self._opening :][:count]

    async def leave(self) -> None:
        self._server.is_reading.set()
        self._outgoing.put_nowait(None)
        await self._stack.aclose()

    def _posted(self) -> list[bytes]:
        return [one.body for one in self._server.asked if one.method == "POST"]

    async def _stream(self, _: Asked) -> Response:
        if self._has_ended:
            # The transport has read the stream to its end, and looks for more.
            self._scene.transport.stop_listening()
            return Response(status_code=405)

        async def written() -> AsyncIterator[bytes]:
            while (message := await self._outgoing.get()) is not None:
                yield message
            self._has_ended = True

        return StreamingResponse(written(), media_type="text/event-stream")
