"""Which connections are reused: those whose reply was read to its end, and that have been silent since."""

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Awaitable, Callable

import pytest

from openai_responses_mcp.adapters.openai.replies import LONGEST_END_SECONDS
from openai_responses_mcp.domain.models import ModelReply, ModelRequest
from tests.contracts.openai_gateways import forget_proxies, openai_gateway
from tests.fakes import SLOW_SECONDS

EVENT_STREAM = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
END = b"0\r\n\r\n"
# How long after its last event a stream ends over a network.
END_DELAY_SECONDS = 0.01

Ending = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_proxies(monkeypatch)


def response(text: str) -> dict[str, object]:
    return {"output": [{"type": "message", "content": [{"type": "output_text", "text": text}]}]}


def final_event(text: str) -> bytes:
    data = json.dumps({"type": "response.completed", "response": response(text)}).encode()
    event = b"event: response.completed\ndata: " + data + b"\n\n"
    return b"%x\r\n%b\r\n" % (len(event), event)


class Api:
    """Answers each question with its number, and ends each stream with `end`."""

    def __init__(self, end: Ending) -> None:
        self._end = end
        self.connections = 0
        self.questions = 0
        self.asked = asyncio.Event()
        self.closed = asyncio.Event()

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = await reader.readuntil(b"\r\n\r\n")
                length = int(head.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
                await reader.readexactly(length)
                self.questions += 1
                writer.write(EVENT_STREAM + final_event(str(self.questions)))
                self.asked.set()
                await self._end(reader, writer)
        self.closed.set()
        writer.close()


@contextlib.asynccontextmanager
async def serving(api: Api) -> AsyncIterator[str]:
    server = await asyncio.start_server(api.serve, "127.0.0.1")
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"


async def ask(base_url: str, times: int, *, timeout_seconds: float = SLOW_SECONDS) -> list[str]:
    gateway = openai_gateway(base_url, timeout_seconds=timeout_seconds)
    request = ModelRequest("gpt-5", "Be brief.", "Hello")
    try:
        async with asyncio.timeout(SLOW_SECONDS):
            replies: list[ModelReply] = []
            for _ in range(times):
                replies.append(await gateway.respond(request))
                await received()
            return [reply.text for reply in replies]
    finally:
        await gateway.close()


async def received() -> None:
    """Wait until what was sent over loopback has arrived."""
    for _ in range(10):
        await asyncio.sleep(0)


def numbers(count: int) -> list[str]:
    return [str(number) for number in range(1, count + 1)]


async def as_late_as_over_a_network(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await asyncio.sleep(END_DELAY_SECONDS)
    writer.write(END)


async def with_the_done_marker(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"e\r\ndata: [DONE]\n\n\r\n" + END)


async def with_more_events(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(final_event("another") + b"3\r\n{[(\r\n" + END)


@pytest.mark.parametrize("end", [as_late_as_over_a_network, with_the_done_marker, with_more_events])
async def test_a_connection_is_reused_after_its_stream_was_read_to_the_end(end: Ending) -> None:
    api = Api(end)
    async with serving(api) as base_url:
        assert await ask(base_url, 20) == numbers(20)
    assert api.connections == 1


async def never(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def endlessly(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while True:
        writer.write(b"400\r\n" + b":" * 1023 + b"\n\r\n")
        await writer.drain()


async def with_a_cut(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.transport.abort()


async def with_garbage(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await received()
    writer.write(b"no length of a chunk\r\n")


@pytest.mark.parametrize("end", [never, endlessly, with_a_cut, with_garbage])
async def test_a_stream_that_ends_badly_costs_the_connection_but_not_the_answer(end: Ending) -> None:
    api = Api(end)
    async with serving(api) as base_url:
        assert await ask(base_url, 2) == ["1", "2"]
    assert api.connections == 2


async def test_a_timeout_while_the_stream_ends_does_not_lose_the_answer() -> None:
    api = Api(never)
    async with serving(api) as base_url:
        assert await ask(base_url, 1, timeout_seconds=0.9 * LONGEST_END_SECONDS) == ["1"]


async def with_an_unsolicited_reply(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(END)
    await received()
    writer.write(EVENT_STREAM + final_event("unasked") + END)


async def test_an_unsolicited_reply_is_never_taken_for_an_answer() -> None:
    api = Api(with_an_unsolicited_reply)
    async with serving(api) as base_url:
        assert await ask(base_url, 3) == numbers(3)
    assert api.connections == 3


async def test_cancelling_while_the_stream_ends_closes_the_connection() -> None:
    api = Api(never)
    async with serving(api) as base_url, asyncio.timeout(SLOW_SECONDS):
        gateway = openai_gateway(base_url)
        call = asyncio.ensure_future(gateway.respond(ModelRequest("gpt-5", "Be brief.", "Hello")))
        await api.asked.wait()
        await received()
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        await api.closed.wait()
        await gateway.close()
