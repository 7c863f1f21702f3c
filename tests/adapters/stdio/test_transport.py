"""Behaviour of stdio alone; that of every transport is in `tests/contracts/test_transport.py`."""

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.adapters.stdio.transport import StdioTransport
from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.ports import Received
from tests.contracts.stdio_client import Pair, StdioClient, socket_pair
from tests.fakes import SLOW_SECONDS, WAIT_SECONDS, FakeLogger

Connect = Callable[..., StdioClient]

MEGABYTE = 1_000_000

both_kinds_of_wire = pytest.mark.parametrize("pair", [os.pipe, socket_pair], ids=["pipes", "sockets"])


@pytest.fixture
async def connect() -> AsyncIterator[Connect]:
    clients: list[StdioClient] = []

    def connect(pair: Pair = os.pipe, **options: Any) -> StdioClient:
        clients.append(StdioClient(pair, **options))
        return clients[-1]

    yield connect
    for client in clients:
        client.leave()


async def receive(transport: StdioTransport) -> object:
    return body_of(await asyncio.wait_for(transport.receive(), WAIT_SECONDS))


def body_of(received: Received | None) -> object:
    return None if received is None else received.body


@both_kinds_of_wire
async def test_a_client_that_disconnects_is_noticed_while_idle(connect: Connect, pair: Pair) -> None:
    client = connect(pair)
    transport = client.transport()
    receiving = asyncio.ensure_future(transport.receive())
    await asyncio.sleep(0)
    client.close()
    with pytest.raises(TransportClosed):
        await asyncio.wait_for(receiving, WAIT_SECONDS)


async def test_a_client_that_closes_half_of_its_socket_still_gets_replies(connect: Connect) -> None:
    client = connect(socket_pair)
    transport = client.transport()
    client.close_sending_half()
    client.write(b"{}\n")
    assert await receive(transport) == b"{}"
    transport.send(b"[]")
    assert await client.read_lines(1) == [b"[]"]


async def send_forever(transport: StdioTransport) -> None:
    while True:
        transport.send(b"x" * MEGABYTE)
        await asyncio.wait_for(transport.flush(), WAIT_SECONDS)


async def test_a_peer_that_stopped_reading_can_still_be_read_to_its_end(connect: Connect) -> None:
    client = connect()
    transport = client.transport(reads_to_end=True)
    receiving = asyncio.ensure_future(transport.receive())
    await asyncio.sleep(0)
    client.close()
    with pytest.raises(TransportClosed):
        await send_forever(transport)
    client.write(b"{}\n")
    client.end()
    assert body_of(await asyncio.wait_for(receiving, WAIT_SECONDS)) == b"{}"
    assert await receive(transport) is None


@both_kinds_of_wire
async def test_sixty_replies_of_a_megabyte_wait_for_a_client_that_does_not_read(connect: Connect, pair: Pair) -> None:
    client = connect(pair)
    transport = client.transport()
    bodies = [b"%02d" % number + b"x" * MEGABYTE for number in range(60)]
    for body in bodies:
        transport.send(body)
    client.write(b"{}\n")
    receiving = asyncio.ensure_future(transport.receive())
    done, _ = await asyncio.wait({receiving}, timeout=0.1)
    assert not done
    assert [await client.read_lines(1) for _ in bodies] == [[body] for body in bodies]
    assert body_of(await asyncio.wait_for(receiving, WAIT_SECONDS)) == b"{}"


async def test_a_short_reply_to_a_disconnected_client_raises(connect: Connect) -> None:
    client = connect()
    transport = client.transport()
    client.close()
    transport.send(b"{}")
    with pytest.raises(TransportClosed):
        await asyncio.wait_for(transport.flush(), WAIT_SECONDS)


@both_kinds_of_wire
async def test_non_blocking_descriptors_are_waited_for(connect: Connect, pair: Pair) -> None:
    client = connect(pair)
    os.set_blocking(client.wire_in, False)
    os.set_blocking(client.wire_out, False)
    transport = client.transport()
    receiving = asyncio.ensure_future(transport.receive())
    await asyncio.sleep(0)
    client.write(b"{}\n")
    assert body_of(await asyncio.wait_for(receiving, WAIT_SECONDS)) == b"{}"
    transport.send(b"x" * MEGABYTE)
    transport.send(b"y")
    assert await client.read_lines(2) == [b"x" * MEGABYTE, b"y"]
    client.end()
    assert await receive(transport) is None


async def test_replies_are_framed_as_the_client_writes(connect: Connect) -> None:
    client = connect(line_mode=False)
    transport = client.transport()
    client.write(b"Content-Length: 2\r\n\r\n{}")
    assert await receive(transport) == b"{}"
    transport.send(b"[1]")
    assert await client.read_bytes(24) == b"Content-Length: 3\r\n\r\n[1]"
    client.write(b"{}\n")
    assert await receive(transport) == b"{}"
    transport.send(b"[2]")
    assert await client.read_lines(1) == [b"[2]"]


async def test_after_the_end_of_input_receive_always_returns_none(connect: Connect) -> None:
    client = connect()
    transport = client.transport()
    client.write(b'{"half":')
    client.end()
    assert await receive(transport) == b'{"half":'
    assert [await receive(transport) for _ in range(3)] == [None, None, None]


async def test_files_and_the_null_device_can_be_wires(tmp_path: Path) -> None:
    (tmp_path / "in").write_bytes(b'{"id":1}\n{"id":2}')
    wire_in = os.open(tmp_path / "in", os.O_RDONLY)
    wire_out = os.open(tmp_path / "out", os.O_WRONLY | os.O_CREAT)
    transport = StdioTransport(wire_in, wire_out, StdioFramer(100, line_mode=True), FakeLogger())
    assert [await receive(transport) for _ in range(3)] == [b'{"id":1}', b'{"id":2}', None]
    transport.send(b"{}")
    await asyncio.wait_for(transport.flush(), WAIT_SECONDS)
    assert (tmp_path / "out").read_bytes() == b"{}\n"
    null = os.open(os.devnull, os.O_RDWR)
    nowhere = StdioTransport(null, null, StdioFramer(100), FakeLogger())
    nowhere.send(b"{}")
    await asyncio.wait_for(nowhere.flush(), WAIT_SECONDS)
    assert await receive(nowhere) is None


async def test_an_unreadable_input_counts_as_ended(connect: Connect, tmp_path: Path) -> None:
    folder = os.open(tmp_path, os.O_RDONLY)
    transport = StdioTransport(folder, connect().wire_out, StdioFramer(100), FakeLogger())
    assert await receive(transport) is None


async def test_the_first_message_sent_is_reported_once(connect: Connect) -> None:
    client, sent = connect(), list[str]()
    framer = StdioFramer(100, line_mode=True)
    transport = StdioTransport(
        client.wire_in, client.wire_out, framer, FakeLogger(), on_first_send=lambda: sent.append("sent")
    )
    assert sent == []
    transport.reply(b"1")
    transport.send(b"2")
    assert await client.read_lines(2) == [b"1", b"2"]
    assert sent == ["sent"]


async def test_traffic_on_the_wire_is_logged(connect: Connect) -> None:
    logger = FakeLogger()
    client = connect(line_mode=False, logger=logger)
    transport = client.transport()
    transport.send('{"a":"é"}'.encode())
    client.write(b"{}\n")
    await receive(transport)
    transport.send(b"{}")
    assert logger.lines == [
        ("debug", "send (framed)", {"bytes": 10}),
        ("debug", "send", {"json": '{"a":"é"}'}),
        ("debug", "stdin", {"chunk": 3}),
        ("debug", "send (line)", {"bytes": 2}),
        ("debug", "send", {"json": "{}"}),
    ]


def test_input_after_the_end_of_the_loop_is_ignored() -> None:
    before = set(threading.enumerate())

    async def open_wire() -> StdioClient:
        client = StdioClient()
        client.transport()
        return client

    client = asyncio.run(open_wire())
    reader = next(thread for thread in set(threading.enumerate()) - before if thread.name == "stdin")
    client.leave()
    reader.join(WAIT_SECONDS)
    assert not reader.is_alive()


def run_script(script: str, *, redirections: str = "", given: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    command = ["sh", "-c", f'exec "$0" -c "$1" {redirections}', sys.executable, script]
    return subprocess.run(command, input=given, capture_output=True, timeout=SLOW_SECONDS, check=False)


STRAY_OUTPUT = """
import ctypes, os, subprocess, sys
from openai_responses_mcp.adapters.stdio.transport import claim_wire
wire_in, wire_out = claim_wire()
print("stray print", flush=True)
os.write(1, b"stray write\\n")
libc = ctypes.CDLL(None)
libc.puts(b"stray C library")
libc.fflush(None)
subprocess.run([sys.executable, "-c", "import sys; print('stray child', sys.stdin.read())"], check=True)
assert wire_in > 2 and wire_out > 2 and not os.get_inheritable(wire_in) and not os.get_inheritable(wire_out)
assert os.read(0, 1) == b""
os.write(wire_out, os.read(wire_in, 100))
"""


def test_nothing_but_the_wire_reaches_stdout_and_nothing_else_reads_stdin() -> None:
    ended = run_script(STRAY_OUTPUT, given=b"{}\n")
    assert ended.stdout == b"{}\n"
    assert ended.stderr.split(b"\n") == [
        b"stray print",
        b"stray write",
        b"stray C library",
        b"stray child ",
        b"",
    ]
    assert ended.returncode == 0


CLOSED_AT_START = """
import os
from openai_responses_mcp.adapters.stdio.transport import claim_wire
wire_in, wire_out = claim_wire()
assert wire_in > 2 and wire_out > 2
for descriptor in (0, 1, 2, wire_in, wire_out):
    os.fstat(descriptor)
os.write(wire_out, b"wire " + os.read(wire_in, 100))
os.write(1, b"stray")
os.write(2, b"stray")
"""


@pytest.mark.parametrize(
    ("redirections", "stdout", "stderr"),
    [
        ("<&-", b"wire ", b"straystray"),
        (">&-", b"", b"straystray"),
        ("2>&-", b"wire {}", b""),
        ("<&- >&-", b"", b"straystray"),
        ("<&- >&- 2>&-", b"", b""),
    ],
)
def test_descriptors_closed_at_the_start_become_the_null_device(
    redirections: str, stdout: bytes, stderr: bytes
) -> None:
    ended = run_script(CLOSED_AT_START, redirections=redirections, given=b"{}")
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, stdout, stderr)


async def test_a_closed_transport_leaves_no_threads() -> None:
    before = set(threading.enumerate())
    theirs, ours = os.pipe(), os.pipe()
    transport = StdioTransport(ours[0], theirs[1], StdioFramer(1024, line_mode=True), FakeLogger())
    transport.send(b"{}")
    os.close(theirs[0])
    os.close(ours[1])
    assert await asyncio.wait_for(transport.close(), WAIT_SECONDS)
    assert {thread for thread in threading.enumerate() if thread.name in ("stdin", "stdout")} <= before
    for descriptor in (ours[0], theirs[1]):
        os.close(descriptor)


@both_kinds_of_wire
async def test_a_short_reply_to_a_client_that_reads_is_there_at_once(connect: Connect, pair: Pair) -> None:
    client = connect(pair)
    client.transport().send(b"{}")
    assert client.read_what_is_there() == b"{}\n"


@both_kinds_of_wire
async def test_short_replies_to_a_client_that_does_not_read_do_not_stop_the_server(
    connect: Connect, pair: Pair
) -> None:
    client = connect(pair)
    transport = client.transport()
    bodies = [b"%04d" % number + b"x" * 1000 for number in range(2000)]
    too_late = threading.Timer(WAIT_SECONDS, client.close)
    too_late.start()
    for body in bodies:
        transport.send(body)
    too_late.cancel()
    assert await client.read_lines(len(bodies)) == bodies


@both_kinds_of_wire
async def test_short_and_long_replies_keep_their_order(connect: Connect, pair: Pair) -> None:
    client = connect(pair)
    transport = client.transport()
    bodies = [b"%03d" % number + b"x" * (10 if number % 2 else 10_000) for number in range(200)]
    for body in bodies:
        transport.send(body)
    assert await client.read_lines(len(bodies)) == bodies
