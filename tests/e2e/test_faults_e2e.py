"""Faults over the wire: bad bytes, bad JSON, bad requests, and an API that misbehaves. The next good call always works."""

from typing import Any

import pytest

from tests.e2e.client import Message, Server, answer_in, call, cancellation, framed, line, request
from tests.e2e.conftest import Start
from tests.stand_in.server import StandInThread

PING = {"jsonrpc": "2.0", "id": "good", "method": "ping"}
DIGITS = "7" * 5000


def refusal_of(server: Server, data: bytes, request_id: int | str | None = None) -> int:
    """The code of the one error these bytes bring, on a server that goes on to answer a good message."""
    server.received.clear()
    server.send_bytes(data)
    error = server.reply_to(request_id)["error"]
    server.send(PING)
    server.reply_to("good")
    assert len(server.received) == 2
    code: int = error["code"]
    return code


def failure_of(reply: Message) -> Message:
    error = reply["error"]
    assert (error["code"], error["message"]) == (-32001, "answer failed")
    assert len(error["data"]["message"]) <= 400
    data: Message = error["data"]
    return data


# Bytes on stdin


NOT_JSON = {
    "text": b"this is no JSON",
    "bad UTF-8": b'{"jsonrpc": "2.0", "id": 1, "method": "\xff\xfe"}',
    "UTF-16": '{"jsonrpc": "2.0", "id": 1, "method": "ping"}'.encode("utf-16").replace(b"\n", b""),
    "nesting": b"[" * 100_000,
    "digits": b'{"jsonrpc": "2.0", "id": %b, "method": "ping"}' % DIGITS.encode(),
    "NaN": b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": NaN}}',
    "Infinity": b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"x": -Infinity}}',
    "lone CR": b'{"jsonrpc": "2.0", "id": 1, "method": "ping"}\r{"jsonrpc": "2.0", "id": 2, "method": "ping"}',
}


def test_a_line_that_is_not_json_is_a_parse_error(warm_server: Server) -> None:
    codes = {name: refusal_of(warm_server, body + b"\n") for name, body in NOT_JSON.items()}
    assert codes == dict.fromkeys(NOT_JSON, -32700)


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


# JSON-RPC


def test_line_ends_and_quotes_in_an_answer_stay_inside_one_message(warm_server: Server) -> None:
    text = 'one\\ntwo\u2028three\u2029four\x85five "six" \\\\ seven'
    answer = answer_in(warm_server.ask(f"Why? [rehearse: text={text}]"))["answer"]
    assert answer.splitlines()[:4] == ["one", "two", "three", "four"]
    assert '"six"' in answer


# Cancellation


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


def test_a_cancellation_that_races_the_reply_never_brings_two(warm_server: Server) -> None:
    warm_server.received.clear()
    names = [f"race {number}" for number in range(200)]
    for name in names:
        warm_server.send(call(name, "Why?"))
    for name in names:
        warm_server.send(cancellation(name))
    warm_server.send(PING)
    warm_server.reply_to("good")
    answered = [message["id"] for message in warm_server.received]
    assert len(answered) == len(set(answered))
    assert "result" in warm_server.ask("Why?")
    # Nothing that was cancelled has been answered since.
    assert len(warm_server.received) == len(answered) + 1


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


# The API behind it


def test_dripping_and_silence_end_with_the_timeout(warm_server: Server, warm_streamless_server: Server) -> None:
    questions = [f"Why? [rehearse: {slow}]" for slow in ("delay=60", "stream=never", "stream=drip")]
    calls = [call(f"slow {number}", question) for number, question in enumerate(questions)]
    warm_server.send(*calls)
    replies = [warm_streamless_server.ask("Why? [rehearse: body=drip]")]
    for reply in [*replies, *warm_server.replies_to([message["id"] for message in calls])]:
        data = failure_of(reply)
        assert "within 1.5 s" in data["message"]
        assert "request.timeout_ms" in data["message"]
        assert "retries" not in data


def test_a_missing_key_fails_the_call_and_not_the_server(start: Start) -> None:
    server = start(config="openai: {api_key_env: MY_KEY}")
    assert failure_of(server.ask("Why?")) == {"message": "Missing API key: set MY_KEY"}
    assert server.result_of("ping") == {}
