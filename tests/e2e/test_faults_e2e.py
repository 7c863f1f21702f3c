"""Limits, cancellations and a flood of calls over the wire."""

from typing import Any

import pytest

from tests.e2e.client import Message, Server, answer_in, call, cancellation, framed, line, request
from tests.e2e.conftest import Start
from tests.stand_in.server import StandInThread

PING = {"jsonrpc": "2.0", "id": "good", "method": "ping"}


@pytest.mark.slow
@pytest.mark.parametrize("encode", [line, framed])
def test_a_message_of_exactly_the_limit_is_taken_and_one_byte_more_is_not(start: Start, encode: Any) -> None:
    server = start(config="server: {max_message_bytes: 1000}")

    def padded(request_id: int, size: int) -> Message:
        room = size - len(line(request(request_id, "ping", {"x": ""}))) + 1
        return request(request_id, "ping", {"x": "x" * room})

    server.send_bytes(encode(padded(1, 1000)) + encode(padded(2, 1001)) + encode(padded(3, 10_000)))
    server.send_bytes(encode(request(4, "ping")))
    assert server.finish() == 0
    codes = [message["error"]["code"] for message in server.received if "error" in message]
    assert [message["id"] for message in server.received if "result" in message] == [1, 4]
    assert codes == [-32600, -32600]


def test_a_cancelled_call_is_aborted_and_never_answered(server: Server, rehearsal: StandInThread) -> None:
    server.send(call(1, "Why? [rehearse: delay=60]"), call("1", "Why? [rehearse: delay=0.3]"))
    rehearsal.wait_for_requests(2)
    server.send(cancellation(1))
    rehearsal.wait_for_abort(1)
    server.reply_to("1")
    server.send(cancellation(1), call(1, "A new question?"))
    assert "A new question?" in answer_in(server.reply_to(1))["answer"]
    assert server.finish() == 0
    assert [message["id"] for message in server.received] == ["1", 1]


def test_a_cancellation_ends_the_waiting_for_a_retry_and_for_a_place(start: Start, rehearsal: StandInThread) -> None:
    server = start(config="request: {max_concurrency: 1}")
    server.send(call(1, "Why? [rehearse: status=429; retry_after=50]"))
    rehearsal.wait_for_requests(1)
    server.send(call(2, "Why? [rehearse: delay=60]"))
    rehearsal.wait_for_requests(2)
    server.send(call(3, "Why?"), cancellation(1), cancellation(3), cancellation(2))
    rehearsal.wait_for_abort(1)
    assert "result" in server.ask("Why?", "answer_quick")
    assert server.finish() == 0
    assert len(server.received) == 1
    assert rehearsal.server.received == 3


@pytest.mark.slow
def test_a_thousand_calls_in_flight_get_one_reply_each_and_a_ping_is_not_kept_waiting(
    server: Server, rehearsal: StandInThread
) -> None:
    server.ask("Ready?")
    server.received.clear()
    server.send(*(call(number, "Why? [rehearse: delay=0.5]") for number in range(1000)))
    rehearsal.wait_for_requests(200)
    server.send(PING, request("listed", "tools/list"))
    server.replies_to(["good", "listed"])
    assert len(server.received) < 1000
    server.replies_to(range(1000))
    assert server.finish() == 0
    answered = [message["id"] for message in server.received if isinstance(message["id"], int)]
    assert sorted(answered) == list(range(1000))
    assert all("result" in message for message in server.received)
