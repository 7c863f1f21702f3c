"""What the server may rely on from a `Transport`."""

import asyncio
import os
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Protocol, TypeVar

import pytest

from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.ports import FramingFault, Received, Transport
from tests.contracts.http_client import HttpSessionClient
from tests.contracts.remote_client import RemoteEndClient
from tests.contracts.stdio_client import Pair, StdioClient, socket_pair
from tests.fakes import WAIT_SECONDS, FakeTransport

T = TypeVar("T")

A_WHILE_SECONDS = 0.1
A_LOT = b'"%b"' % (b"x" * 1_000_000)


class Client(Protocol):
    """The other end."""

    @property
    def transport(self) -> Transport: ...

    def write(self, *messages: bytes) -> None: ...

    def write_garbage(self) -> None:
        """What is no message."""
        ...

    def end(self) -> None: ...

    def close(self) -> None: ...

    def stop_reading(self) -> None:
        """Nothing is read from here on."""
        ...

    def read_again(self) -> None: ...

    async def read(self, count: int) -> list[bytes]: ...


class FakeClient(Client):
    def __init__(self) -> None:
        self._fake = FakeTransport()

    @property
    def transport(self) -> Transport:
        return self._fake

    def write(self, *messages: bytes) -> None:
        self._fake.enqueue(*messages)

    def end(self) -> None:
        self._fake.end()

    def close(self) -> None:
        self._fake.close()

    def stop_reading(self) -> None:
        self._fake.stop_reading()

    def read_again(self) -> None:
        self._fake.read_again()

    def write_garbage(self) -> None:
        self._fake.enqueue(FramingFault("no message"))

    async def read(self, count: int) -> list[bytes]:
        await self._fake.wait_for_sent(count)
        return self._fake.sent[:count]


class RealClient(Client):
    """Reads only when asked to, so there is nothing to do to stop it."""

    def __init__(self, pair: Pair) -> None:
        self._client = StdioClient(pair)
        self._transport = self._client.transport()

    @property
    def transport(self) -> Transport:
        return self._transport

    def write(self, *messages: bytes) -> None:
        self._client.write(b"".join(message + b"\n" for message in messages))

    def write_garbage(self) -> None:
        self._client.write(b"Content-Length: none\r\n\r\n")

    def stop_reading(self) -> None:
        pass

    def read_again(self) -> None:
        pass

    async def read(self, count: int) -> list[bytes]:
        return await self._client.read_lines(count)

    def end(self) -> None:
        self._client.end()

    def close(self) -> None:
        self._client.close()

    def leave(self) -> None:
        self._client.leave()


class HttpClient(HttpSessionClient, Client):
    """A session. It is closed, but its input never ends, and what is no message is refused before."""

    @property
    def transport(self) -> Transport:
        return self.session

    def write_garbage(self) -> None:
        raise AssertionError

    def end(self) -> None:
        raise AssertionError


class RemoteClient(RemoteEndClient, Client):
    """A remote server, seen through the transport that speaks to it. What is no message is an event that is too large."""


FRAMED = [
    pytest.param(FakeClient, id="fake"),
    pytest.param(lambda: RealClient(os.pipe), id="stdio-pipes"),
    pytest.param(lambda: RealClient(socket_pair), id="stdio-sockets"),
]


REMOTE = pytest.param(RemoteClient, id="remote")


async def opened(make: Callable[[], Client]) -> AsyncIterator[Client]:
    client = make()
    if isinstance(client, HttpClient | RemoteClient):
        await client.opened()
    yield client
    if isinstance(client, RealClient):
        client.leave()
    elif isinstance(client, HttpClient | RemoteClient):
        await client.leave()


@pytest.fixture(params=[*FRAMED, pytest.param(HttpClient, id="http"), REMOTE])
async def client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async for client in opened(request.param):
        yield client


@pytest.fixture(params=[*FRAMED, REMOTE])
async def framed_client(request: pytest.FixtureRequest) -> AsyncIterator[Client]:
    async for client in opened(request.param):
        yield client


async def soon(work: Awaitable[T]) -> T:
    return await asyncio.wait_for(work, WAIT_SECONDS)


async def received(client: Client) -> Received:
    """The next message; there has to be one."""
    message = await soon(client.transport.receive())
    assert message is not None
    return message


async def body(client: Client) -> bytes | FramingFault:
    return (await received(client)).body


async def test_messages_come_whole_and_in_order(client: Client) -> None:
    messages = [b'{"id":%d}' % number for number in range(100)]
    client.write(*messages)
    assert [await body(client) for _ in messages] == messages


async def test_a_message_that_comes_later_is_waited_for(client: Client) -> None:
    receiving = asyncio.ensure_future(body(client))
    await asyncio.sleep(0)
    client.write(b"{}")
    assert await soon(receiving) == b"{}"


async def test_garbage_between_messages_is_a_fault_in_their_order(framed_client: Client) -> None:
    client = framed_client
    client.write(b"[1]")
    client.write_garbage()
    client.write(b"[2]")
    arrived = [await body(client) for _ in range(3)]
    assert [type(message) for message in arrived] == [bytes, FramingFault, bytes]


async def test_the_end_of_input_comes_after_the_last_message(framed_client: Client) -> None:
    client = framed_client
    client.write(b"{}")
    client.end()
    assert await body(client) == b"{}"
    assert await soon(client.transport.receive()) is None


async def test_receiving_can_be_cancelled_and_loses_nothing(client: Client) -> None:
    receiving = asyncio.ensure_future(client.transport.receive())
    await asyncio.sleep(0)
    receiving.cancel()
    await asyncio.wait({receiving}, timeout=WAIT_SECONDS)
    client.write(b"{}")
    assert await body(client) == b"{}"


async def test_messages_arrive_whole_and_in_order(client: Client) -> None:
    messages = [b'{"id":%d}' % number for number in range(100)]
    for message in messages:
        client.transport.send(message)
    assert await client.read(len(messages)) == messages


async def test_progress_and_the_reply_go_to_the_client_that_asked(client: Client) -> None:
    client.write(b'{"id":1}')
    channel = (await received(client)).channel
    channel.send(b'{"progress":1}')
    channel.reply(b'{"id":1,"error":{}}', -32601)
    assert await client.read(2) == [b'{"progress":1}', b'{"id":1,"error":{}}']


async def test_a_withdrawn_request_gets_no_reply(framed_client: Client) -> None:
    """Over HTTP it gets an error instead, because every request is answered there."""
    client = framed_client
    client.write(b'{"id":1}', b'{"id":2}')
    first, second = [await received(client) for _ in range(2)]
    first.channel.withdraw()
    second.channel.reply(b'{"id":2,"result":{}}')
    assert await client.read(1) == [b'{"id":2,"result":{}}']


async def test_sending_goes_on_after_the_end_of_input(framed_client: Client) -> None:
    client = framed_client
    client.end()
    assert await soon(client.transport.receive()) is None
    client.transport.send(b"{}")
    await soon(client.transport.flush())
    assert await client.read(1) == [b"{}"]


async def test_a_client_that_does_not_read_is_not_heard_until_it_does(client: Client) -> None:
    client.stop_reading()
    for _ in range(10):
        client.transport.send(A_LOT)
    client.write(b"{}")
    receiving = asyncio.ensure_future(body(client))
    flushing = asyncio.ensure_future(client.transport.flush())
    done, _ = await asyncio.wait({receiving, flushing}, timeout=A_WHILE_SECONDS)
    assert not done
    client.read_again()
    assert await client.read(10) == [A_LOT] * 10
    assert await soon(receiving) == b"{}"
    await soon(flushing)


@pytest.mark.parametrize("wait", [lambda transport: transport.receive(), lambda transport: transport.flush()])
async def test_a_client_that_leaves_is_noticed_while_waiting_for_it(
    client: Client, wait: Callable[[Transport], Awaitable[object]]
) -> None:
    client.stop_reading()
    client.transport.send(A_LOT)
    waiting = asyncio.ensure_future(wait(client.transport))
    await asyncio.sleep(0)
    client.close()
    with pytest.raises(TransportClosed):
        await soon(waiting)


async def test_a_closed_transport_takes_messages_and_drops_them(client: Client) -> None:
    client.close()
    with pytest.raises(TransportClosed):
        await soon(client.transport.receive())
    client.transport.send(b"{}")
    with pytest.raises(TransportClosed):
        await soon(client.transport.flush())
