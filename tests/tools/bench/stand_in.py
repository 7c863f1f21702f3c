"""The API that every server is measured against: one process on loopback, the same answer for everybody.

Unlike the rehearsal it reads nothing of a request but whether a stream is asked for, `[rehearse: delay=0.5]` and
`[rehearse: size=100000]`, and its answers are made once, so that a server is charged neither for what it asks nor for what
the stand-in thinks about it. Started as a module it writes its base URL as one line and ends with its stdin.
"""

import asyncio
import os
import re
import sys
from functools import cache
from typing import cast

from tests.tools.bench import answers

QUESTION = "What is new in Python?"
SIGN = answers.SIGN.encode()

_BACKLOG = 4096
_LENGTH = re.compile(rb"content-length: *([0-9]+)", re.IGNORECASE)
_STREAM = re.compile(rb'"stream": ?true')
_DELAY = re.compile(rb"delay=([0-9.]+)")
_SIZE = re.compile(rb"size=([0-9]+)")


def question(*, delay_seconds: float = 0.0, size_bytes: int = 0) -> str:
    marks = [f"delay={delay_seconds}"] * bool(delay_seconds) + [f"size={size_bytes}"] * bool(size_bytes)
    return f"{QUESTION} [rehearse: {'; '.join(marks)}]" if marks else QUESTION


@cache
def reply_bytes(size_bytes: int, *, is_streamed: bool) -> bytes:
    """A stream goes out in one write, to measure the server and not the pace of a model."""
    if is_streamed:
        body = answers.streamed(size_bytes)
        head = b"content-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked"
        return b"HTTP/1.1 200 OK\r\n%b\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (head, len(body), body)
    body = answers.whole(size_bytes)
    return b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n%b" % (len(body), body)


class Connection(asyncio.Protocol):
    """One request at a time, as all clients here send them."""

    def __init__(self) -> None:
        self._read = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._read += data
        head, gap, body = self._read.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if gap and len(body) >= int(length[1] if length else 0):
            self._read = b""
            self._reply(body)

    def _reply(self, body: bytes) -> None:
        delay, size = _DELAY.search(body), _SIZE.search(body)
        reply = reply_bytes(int(size[1]) if size else 0, is_streamed=bool(_STREAM.search(body)))
        if delay:
            asyncio.get_running_loop().call_later(float(delay[1]), self._transport.write, reply)
        else:
            self._transport.write(reply)


async def main() -> None:
    server = await asyncio.get_running_loop().create_server(Connection, "127.0.0.1", backlog=_BACKLOG)
    sys.stdout.write(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1\n")
    sys.stdout.flush()
    await asyncio.to_thread(os.read, 0, 1)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
