"""The client's end of the wire, over a pair of pipes or of sockets, and the transport at the other end."""

import asyncio
import os
import socket
from collections.abc import Callable

from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.adapters.stdio.transport import StdioTransport
from openai_responses_mcp.domain.ports import Logger
from tests.fakes import WAIT_SECONDS, FakeLogger

MAX_MESSAGE_BYTES = 10_000

Pair = Callable[[], tuple[int, int]]


def socket_pair() -> tuple[int, int]:
    reading, writing = socket.socketpair()
    return reading.detach(), writing.detach()


class StdioClient:
    """Made inside the running event loop. `pair` gives what one end reads from and what the other writes to."""

    def __init__(self, pair: Pair = os.pipe, *, line_mode: bool = True, logger: Logger | None = None) -> None:
        # Never closed here: the threads of the transport may look at their ends for a moment longer.
        self.wire_in, self._to_server = pair()
        self._from_server, self.wire_out = pair()
        os.set_blocking(self._from_server, False)
        self._read = bytearray()
        self._line_mode = line_mode
        self._logger = logger or FakeLogger()

    def transport(self, *, reads_to_end: bool = False) -> StdioTransport:
        framer = StdioFramer(MAX_MESSAGE_BYTES, line_mode=self._line_mode)
        return StdioTransport(self.wire_in, self.wire_out, framer, self._logger, reads_to_end=reads_to_end)

    def write(self, data: bytes) -> None:
        os.write(self._to_server, data)

    def end(self) -> None:
        """Close what the server reads."""
        self._to_server = self._closed(self._to_server)

    def close(self) -> None:
        """Close what the server writes to."""
        self._from_server = self._closed(self._from_server)

    def leave(self) -> None:
        self.end()
        self.close()

    def close_sending_half(self) -> None:
        """Of the socket that the server writes to."""
        with socket.socket(fileno=os.dup(self._from_server)) as sock:
            sock.shutdown(socket.SHUT_WR)

    async def read_lines(self, count: int) -> list[bytes]:
        missing = count - self._read.count(b"\n")
        async with asyncio.timeout(WAIT_SECONDS):
            while missing > 0:
                missing -= (await self._read_more()).count(b"\n")
        *lines, self._read = self._read.split(b"\n", count)
        return list(map(bytes, lines))

    async def read_bytes(self, count: int) -> bytes:
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self._read) < count:
                await self._read_more()
        data, self._read = bytes(self._read[:count]), self._read[count:]
        return data

    def read_what_is_there(self) -> bytes:
        return os.read(self._from_server, 1024 * 1024)

    async def _read_more(self) -> bytes:
        loop, readable = asyncio.get_running_loop(), asyncio.Event()
        loop.add_reader(self._from_server, readable.set)
        try:
            await readable.wait()
        finally:
            loop.remove_reader(self._from_server)
        data = os.read(self._from_server, 1024 * 1024)
        self._read += data
        return data

    def _closed(self, descriptor: int) -> int:
        if descriptor >= 0:
            os.close(descriptor)
        return -1
