"""The server below the desk, on a real port: who can reach it, and what those get who misbehave."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import NamedTuple

import pytest

from openai_responses_mcp.adapters.http.serving import listening_socket
from openai_responses_mcp.desk.opening import desk_on
from openai_responses_mcp.desk.page.access import Entrance, Limits
from openai_responses_mcp.desk.page.application import LoopbackServer, application
from tests.agents.fake_stores import fake_stores
from tests.agents.fakes import FakeClock, within

PATIENT = Limits()
HASTY = Limits(head_seconds=0.5, body_seconds=0.5, largest_body=1000, most_connections=5)


class Served(NamedTuple):
    port: int
    server: LoopbackServer

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await within(asyncio.open_connection("127.0.0.1", self.port))

    async def answer(self, *sent: bytes) -> bytes:
        """All that comes back until the other side closes."""
        reader, writer = await self.connect()
        for part in sent:
            writer.write(part)
            await writer.drain()
        received = await within(_rest(reader))
        writer.close()
        return received

    def head(self, method: str = "GET", *more: str) -> bytes:
        lines = [f"{method} / HTTP/1.1", f"Host: 127.0.0.1:{self.port}", f"Origin: http://127.0.0.1:{self.port}", *more]
        return "\r\n".join([*lines, "", ""]).encode()


async def _rest(reader: asyncio.StreamReader) -> bytes:
    """A connection that is cut off has ended, too."""
    received = b""
    try:
        while part := await reader.read(65536):
            received += part
    except ConnectionResetError:
        pass
    return received


@asynccontextmanager
async def served(limits: Limits) -> AsyncIterator[Served]:
    listening = asyncio.Event()
    with listening_socket("127.0.0.1", 0) as taken:
        port = taken.getsockname()[1]
        app = application(desk_on(fake_stores(FakeClock())), Entrance(), port, limits)
        server = LoopbackServer(app, listening.set, limits)
        task = asyncio.create_task(server.serve(sockets=[taken]))
        await within(listening.wait())
        yield Served(port, server)
        server.should_exit = True
        await within(task)


@pytest.fixture
async def hasty() -> AsyncIterator[Served]:
    async with served(HASTY) as made:
        yield made


async def test_a_request_is_answered_and_names_no_software(hasty: Served) -> None:
    answer = await hasty.answer(hasty.head("GET", "Connection: close"))
    assert answer.startswith(b"HTTP/1.1 403")
    assert b"uvicorn" not in answer.lower()


async def test_a_connection_that_was_answered_and_falls_silent_in_the_next_head_is_cut_off(hasty: Served) -> None:
    reader, writer = await hasty.connect()
    writer.write(hasty.head())
    assert (await within(reader.readline())).startswith(b"HTTP/1.1 403")
    writer.write(b"GET / HT")
    await within(_rest(reader))
    writer.close()


async def test_a_connection_that_stays_silent_is_closed(hasty: Served) -> None:
    assert await hasty.answer() == b""
    assert await hasty.answer(b"GET / HTTP/1.1\r\nHost: ") == b""


async def test_a_body_that_does_not_come_is_not_waited_for(hasty: Served) -> None:
    answer = await hasty.answer(hasty.head("POST", "Content-Length: 10"), b"{")
    assert answer.startswith(b"HTTP/1.1 408")


@pytest.mark.parametrize("length", ["1001", "99999999999999999999"])
async def test_a_body_that_is_announced_as_too_large_is_refused_at_once(hasty: Served, length: str) -> None:
    answer = await hasty.answer(hasty.head("POST", f"Content-Length: {length}"))
    assert answer.startswith(b"HTTP/1.1 413")


async def test_a_body_that_grows_too_large_is_refused(hasty: Served) -> None:
    chunk = b"400\r\n" + b"x" * 1024 + b"\r\n"
    answer = await hasty.answer(hasty.head("POST", "Transfer-Encoding: chunked"), chunk, chunk)
    assert answer.startswith(b"HTTP/1.1 413")


@pytest.mark.parametrize("garbage", [b"\x00\xff\r\n\r\n", b"G" * 40_000])
async def test_garbage_does_not_disturb_other_connections(hasty: Served, garbage: bytes) -> None:
    assert not (await hasty.answer(garbage)).startswith(b"HTTP/1.1 200")
    assert (await hasty.answer(hasty.head("GET", "Connection: close"))).startswith(b"HTTP/1.1 403")


async def test_too_many_connections_are_sent_away_until_others_leave() -> None:
    async with served(Limits(most_connections=5)) as made:
        silent = [await made.connect() for _ in range(8)]
        assert (await made.answer(made.head("GET", "Connection: close"))).startswith(b"HTTP/1.1 503")
        for _, writer in silent:
            writer.close()
            await within(writer.wait_closed())
        # The server learns of it as soon as it looks.
        async with asyncio.timeout(5):
            while not (await made.answer(made.head("GET", "Connection: close"))).startswith(b"HTTP/1.1 403"):
                pass


async def test_it_ends_while_connections_are_open() -> None:
    async with served(PATIENT) as made:
        _, writer = await made.connect()
    writer.close()
