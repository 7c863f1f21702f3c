"""Whatever bytes come from either side, messages pass whole and everything else is stopped.

Invalid input from the client gets an error; invalid input from the server is dropped and reported on stderr. After
each of these the next valid message passes.
"""

import json
from typing import Any

import pytest

from openai_responses_mcp.guard.composition import LONGEST_MESSAGE_BYTES
from tests.e2e.client import cancellation, line
from tests.e2e.test_process import memory_bytes
from tests.guard.conftest import ALLOW_ALL, Guard, Guarded, text_of
from tests.guard.test_guard_faults import wait_until

pytestmark = pytest.mark.slow

PING = line({"jsonrpc": "2.0", "id": "ping", "method": "ping"})
NOTE = b'{"jsonrpc":"2.0","method":"notifications/x"}'

# One of each kind: `test_messages` has all of them.
NO_JSON = [
    pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"\xff"}', id="invalid UTF-8"),
    pytest.param(b"[" * 100_000, id="nesting"),
]
NO_MESSAGE = [
    pytest.param(b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', id="batch"),
    pytest.param(b'{"jsonrpc":"2.0","id":1,"method":"ping","method":"tools/call"}', id="key twice"),
    pytest.param(b"Content-Length: -1\r\n\r\n", id="negative length"),
    pytest.param(b"Content-Type: x\r\n\r\n", id="no length"),
    pytest.param(b"X-Header: " + b"x" * 9_000, id="endless header"),
]


def methods_seen(guard: Guard) -> list[Any]:
    return [message.get("method") for message in guard.seen]


# ---------------------------------------------------------------------------------------------------------------------
# From the client


@pytest.mark.parametrize("sent", NO_JSON)
def test_client_input_that_is_not_json_is_a_parse_error(guarded: Guarded, sent: bytes) -> None:
    guard = guarded()
    guard.send_bytes(sent + b"\n")
    first = guard.receive()
    assert (first["id"], first["error"]["code"]) == (None, -32700)
    # A body in UTF-16 has a line end of its own: one message more may be lost.
    guard.send_bytes(b"\n" + PING)
    assert guard.reply_to("ping")["result"] == {"method": "ping"}
    assert methods_seen(guard) == ["ping"]


@pytest.mark.parametrize("sent", NO_MESSAGE)
def test_client_input_that_is_no_message_is_an_invalid_request(guarded: Guarded, sent: bytes) -> None:
    guard = guarded()
    guard.send_bytes(sent + b"\n" + PING)
    assert guard.receive()["error"]["code"] == -32600
    assert guard.reply_to("ping")["result"] == {"method": "ping"}
    assert methods_seen(guard) == ["ping"]


def test_blank_lines_line_ends_and_a_byte_order_mark_are_no_part_of_a_message(guarded: Guarded) -> None:
    guard = guarded()
    guard.send_bytes(b"\xef\xbb\xbf" + NOTE + b"\r\n\r\n  \n\n" + NOTE + b"\n" + PING)
    guard.reply_to("ping")
    assert guard.seen_file.read_bytes() == (NOTE + b"\n") * 2 + PING


def test_input_byte_by_byte_passes_like_input_in_one_piece(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL)
    call = line(
        {"jsonrpc": "2.0", "id": "c", "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "é漢"}}}
    )
    for byte in call:
        guard.send_bytes(bytes([byte]))
    assert json.loads(text_of(guard.reply_to("c"))) == {"got": {"text": "é漢"}}
    assert guard.seen_file.read_bytes().endswith(call)


def test_a_message_that_the_end_cuts_off_never_runs_and_a_last_line_needs_no_newline(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL)
    call = b'{"jsonrpc":"2.0","id":"c","method":"tools/call","params":{"name":"echo","arguments":{"text":"a"}}}'
    guard.send_bytes(PING + call[:-2])
    assert guard.finish() == 0
    assert guard.calls_seen() == []
    again = guarded(policy=ALLOW_ALL)
    again.send_bytes(call)
    assert again.finish() == 0
    assert again.reply_to("c")["result"]["isError"] is False


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


@pytest.mark.parametrize("written", [*NO_JSON, *NO_MESSAGE])
def test_server_output_that_is_no_message_is_dropped_and_reported(guarded: Guarded, written: bytes) -> None:
    guard = guarded(policy=ALLOW_ALL)
    guard.called("echo", "first")
    guard.server_writes(written + b"\n\n" + NOTE + b"\n" + NOTE + b"\n")
    assert guard.called("echo", "last")["result"]["isError"] is False
    assert guard.finish() == 0
    assert [message.get("id") for message in guard.received if "id" in message] == ["first", "raw", "last"]
    # Of two good messages behind the fault, one may be lost.
    assert 1 <= len([message for message in guard.received if message.get("method") == "notifications/x"]) <= 2
    assert "the server sent something that is not a message" in guard.stderr


def test_line_ends_inside_texts_of_the_server_stay_inside_one_message(guarded: Guarded) -> None:
    guard = guarded(policy=ALLOW_ALL)
    odd = '{"jsonrpc":"2.0","method":"notifications/x","params":{"a":"\u2028 \u2029 \u0085 \\n \\""}}'
    guard.server_writes(odd.encode() + b"\r\n\r\n")
    assert [message for message in guard.received if "method" in message] == [json.loads(odd)]


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
