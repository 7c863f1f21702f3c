"""What is a message, what is unfit to pass, and that nothing in between exists."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openai_responses_mcp.agents.guard.messages import Notification, Reply, Request, Unfit, encode, read

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "Method", "ID", "x"])
_PARTS = st.sampled_from(
    [
        b'"2.0"',
        b'"tools/call"',
        b"1",
        b"null",
        b"{",
        b"}",
        b"[",
        b"]",
        b":",
        b",",
        b'"id"',
        b'"method"',
        b"\r",
        b"\n",
        b" ",
    ]
)


def a_request(**changes: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", **changes}).encode()


@pytest.mark.parametrize(
    "body",
    [
        a_request(),
        a_request(id="1"),
        a_request(id=""),
        a_request(id=-(10**30)),
        a_request(params=None),
        a_request(params={"deep": {"Method": "fine here"}}),
        a_request(method="tools/call", params={"name": "x", "future": 1}),
        a_request(future={"a": 1}),
        b'{"jsonrpc":"2.0","id":1,"result":null}',
        b'{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"no"}}',
        b'{"jsonrpc":"2.0","method":"notifications/x"}',
        b' {"jsonrpc":"2.0","method":"x","params":{"t":"\xe2\x80\xa8\xc2\x85"}}\t',
        b'{"jsonrpc":"2.0","method":"x","params":{"half":"\\ud800"}}',
    ],
)
def test_a_message_passes_byte_for_byte(body: bytes) -> None:
    message = read(body)
    assert not isinstance(message, Unfit)
    assert message.wire == body


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"no json", -32700),
        (b"\xff\xfe{\x00}\x00", -32700),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"x"}', -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"x"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":1e999}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":"\x01"}}', -32700),
        (b"[]", -32600),
        (b"7", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]', -32600),
        (b"{}", -32600),
        (a_request(jsonrpc="1.0"), -32600),
        (a_request(id=None), -32600),
        (a_request(id=True), -32600),
        (a_request(id=1.0), -32600),
        (a_request(id={}), -32600),
        (a_request(method=None), -32600),
        (a_request(params=[]), -32600),
        (a_request(result={}), -32600),
        (a_request(Method="tools/call"), -32600),
        (a_request(**{"method\0x": "tools/call"}), -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"x","param\u017f":{}}'.encode(), -32600),
        ('{"jsonrpc":"2.0","id":1,"method":"x","\uff49\uff44":2}'.encode(), -32600),
        (a_request(method="Tools/Call"), -32600),
        (a_request(method="tools/call\0"), -32600),
        (a_request(method="tools/call", params={"name": "a", "Name": "b"}), -32600),
        (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}', -32600),
        (b'{"jsonrpc":"2.0","result":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"error":"no"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}', -32600),
    ],
)
def test_what_could_be_read_in_two_ways_is_unfit(body: bytes, code: int) -> None:
    found = read(body)
    assert isinstance(found, Unfit)
    assert found.code == code


@pytest.mark.parametrize(
    ("body", "request_id", "is_reply"),
    [
        (b'{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}', 1, False),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}', None, False),
        (b'{"jsonrpc":"2.0","id":"a","result":1,"result":2}', "a", True),
        (b'{"jsonrpc":"2.0","id":"a","result":1,"error":{}}', "a", True),
        (b'{"jsonrpc":"2.0","id":null,"error":{}}', None, True),
    ],
)
def test_whoever_waits_can_be_told(body: bytes, request_id: int | str | None, is_reply: bool) -> None:
    found = read(body)
    assert isinstance(found, Unfit)
    assert (found.id, found.is_reply) == (request_id, is_reply)


@pytest.mark.parametrize("line_end", [b"\r", b"\n", b"\r\n"])
def test_a_line_end_between_the_parts_is_written_anew(line_end: bytes) -> None:
    body = b'{"jsonrpc":"2.0",' + line_end + b'"id":1,"method":"x","params":{"a":' + line_end + b"1.5}}"
    message = read(body)
    assert isinstance(message, Request)
    assert message.wire == b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1.5}}'


def test_the_three_kinds_are_told_apart() -> None:
    assert isinstance(read(a_request()), Request)
    assert isinstance(read(b'{"jsonrpc":"2.0","method":"x"}'), Notification)
    assert isinstance(read(b'{"jsonrpc":"2.0","id":1,"result":{}}'), Reply)


def _check(body: bytes) -> None:
    found = read(body)
    if isinstance(found, Unfit):
        return
    again = json.loads(found.wire)
    assert b"\r" not in found.wire
    assert b"\n" not in found.wire
    assert again == json.loads(body)
    assert again["jsonrpc"] == "2.0"
    assert isinstance(again.get("method"), str) or ("result" in again) != ("error" in again)
    if again.get("method") == "tools/call":
        assert isinstance(found, Request)


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_whatever_bytes_come_what_passes_is_one_message(body: bytes) -> None:
    _check(body)


@settings(deadline=None)
@given(st.lists(_PARTS, max_size=20))
def test_the_same_for_bytes_that_are_nearly_json(parts: list[bytes]) -> None:
    _check(b"".join(parts))


@settings(deadline=None)
@given(st.dictionaries(_KEYS, _JSON | st.sampled_from(["2.0", "tools/call", 1]), max_size=6))
def test_the_same_for_objects_that_are_nearly_messages(content: dict[str, Any]) -> None:
    _check(json.dumps(content).encode())
    _check(json.dumps(content, indent=1).replace("\n", "\r").encode())


@settings(deadline=None)
@given(st.dictionaries(st.text(), _JSON, max_size=4))
def test_what_is_encoded_is_one_line_that_says_the_same(content: dict[str, Any]) -> None:
    wire = encode(content)
    assert b"\n" not in wire
    assert wire.isascii()
    assert json.loads(wire) == content
