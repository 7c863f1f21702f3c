"""Whatever bytes come from either side, messages pass whole and everything else is stopped.

Invalid input from the client gets an error; invalid input from the server is dropped and reported on stderr. After
each of these the next valid message passes.
"""

from typing import Any

import pytest

from openai_responses_mcp.guard.composition import LONGEST_MESSAGE_BYTES
from tests.e2e.client import cancellation, line
from tests.e2e.test_process import memory_bytes
from tests.guard.conftest import ALLOW_ALL, Guard, Guarded
from tests.guard.test_guard_faults import wait_until

pytestmark = pytest.mark.slow

PING = line({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
NOTE = b'{"jsonrpc":"2.0","method":"notifications/x"}'

# One that is no JSON, one that is no message, and one that is not framed: `test_messages` and `test_framing` have all.
BAD = (
    b"[" * 100_000,
    b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}',
    b"Content-Length: -1\r\n\r\n",
)


def methods_seen(guard: Guard) -> list[Any]:
    return [message.get("method") for message in guard.seen]


# ---------------------------------------------------------------------------------------------------------------------
# From the client


def test_client_input_that_is_no_message_is_an_error(guarded: Guarded) -> None:
    guard = guarded()
    for ping, sent, code in zip("abc", BAD, (-32700, -32600, -32600), strict=True):
        guard.send_bytes(sent + b"\n" + line({"jsonrpc": "2.0", "id": ping, "method": "ping"}))
        assert guard.receive()["error"]["code"] == code
        assert guard.reply_to(ping)["result"] == {"method": "ping"}
    assert methods_seen(guard) == ["ping"] * 3


def test_a_cancellation_that_races_the_reply_never_brings_two(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL)
    guard.called("echo", "first")
    for number in range(1_000):
        guard.start_call("echo", number)
        guard.send(cancellation(number))
    guard.request("ping")
    assert guard.finish() == 0
    answered = [message["id"] for message in guard.received if isinstance(message.get("id"), int)]
    assert len(answered) == len(set(answered))


# ---------------------------------------------------------------------------------------------------------------------
# From the server


def test_server_output_that_is_no_message_is_dropped_and_reported(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL)
    guard.called("echo", "first")
    for written in BAD:
        guard.server_writes(written + b"\n\n" + NOTE + b"\n" + NOTE + b"\n", f"after {written[:9]!r}")
    assert guard.called("echo", "last")["result"]["isError"] is False
    assert guard.finish() == 0
    assert len([message for message in guard.received if "id" in message]) == 5
    # Of two good messages behind each fault, one may be lost.
    assert len([message for message in guard.received if message.get("method") == "notifications/x"]) >= 3
    assert "the server sent something that is not a message" in guard.stderr


# ---------------------------------------------------------------------------------------------------------------------
# Too long


def test_a_message_that_is_too_long_is_one_error_for_either_side_and_takes_bounded_memory(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL)
    piece = b"x" * 1024 * 1024
    for _ in range(LONGEST_MESSAGE_BYTES // len(piece) * 3):
        guard.send_bytes(piece)
    guard.send_bytes(b"\n" + PING)
    assert (
        guard.receive()["error"]["message"] == f"Invalid request: the line is longer than {LONGEST_MESSAGE_BYTES} bytes"
    )
    guard.reply_to("ping")
    guard.start_call("long", "l", text=str(LONGEST_MESSAGE_BYTES))
    # Two calls that are judged at the same time may reach the server in either order.
    wait_until(lambda: len(guard.calls_seen()) == 1)
    assert guard.called("echo", "after")["result"]["isError"] is False
    assert memory_bytes(guard) < 400 * 1024 * 1024
    guard.finish()
    assert "the line is longer than" in guard.stderr
