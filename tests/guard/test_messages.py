"""What is a message, what is unfit to pass, and that nothing in between exists."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.domain.jsonrpc import BadMessage, Notification, Reply, Request
from openai_responses_mcp.guard import messages
from openai_responses_mcp.guard.messages import encode, read

_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
_KEYS = st.sampled_from(["jsonrpc", "id", "method", "params", "result", "error", "Method", "ID", "x"])
_PARTS = st.sampled_from([*b'"2.0" "tools/call" 1 null { } [ ] : , "id" "method"'.split(), b"\r", b"\n", b" "])


def a_request(**changes: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": 1, "method": "ping", **changes}).encode()


def test_a_message_passes_byte_for_byte() -> None:
    cases: list[bytes] = [
        a_request(),
        a_request(id="1"),
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
    ]
    for body in cases:
        message = read(body)
        assert not isinstance(message, BadMessage)
        assert message.wire == body


def test_an_ambiguous_message_is_rejected() -> None:
    cases: list[tuple[bytes, int]] = [
        (b"no json", -32700),
        (b"\xff\xfe{\x00}\x00", -32700),
        (b'\xef\xbb\xbf{"jsonrpc":"2.0","method":"x"}', -32700),
        (b"[" * 100_000, -32700),
        (b'{"jsonrpc":"2.0","id":' + b"9" * 5000 + b',"method":"x"}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"n":1e999}}', -32700),
        (b"[]", -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1,"a":2}}', -32600),
    ]
    for body, code in cases:
        found = read(body)
        assert isinstance(found, BadMessage)
        assert found.code == code


NO_OBJECT = "not a JSON object (batches are not supported)"
NO_ID = "id must be a string or a whole number"
NOT_QUITE_A_CALL = "method looks like tools/call and is not"


def test_a_body_that_is_no_message_is_rejected_with_the_reason() -> None:
    cases: list[tuple[bytes, str]] = [
        (b"7", NO_OBJECT),
        (b'[{"jsonrpc":"2.0","id":1,"method":"tools/call"}]', NO_OBJECT),
        (b"{}", 'jsonrpc must be "2.0"'),
        (a_request(id=None), NO_ID),
        (a_request(id=True), NO_ID),
        (a_request(id=1.0), NO_ID),
        (a_request(method=None), "method must be a string"),
        (a_request(params=[]), "params must be an object"),
        *((a_request(**{key: {}}), "a message is a request or a reply, not both") for key in ("result", "error")),
        *((a_request(method=name), NOT_QUITE_A_CALL) for name in ("Tools/Call", "tools/call\0", "tools /call")),
        (b'{"jsonrpc":"2.0","method":"tools/call","params":{"name":"x"}}', "tools/call needs an id"),
        (b'{"jsonrpc":"2.0","result":{}}', "a reply needs an id"),
        (b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}', "a reply has a result or an error, not both"),
        (b'{"jsonrpc":"2.0","id":1,"error":"no"}', "error must be an object"),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","method":"x"}', "a key appears twice"),
    ]
    for body, reason in cases:
        found = read(body)
        assert isinstance(found, BadMessage)
        assert (found.code, found.message) == (-32600, f"Invalid request: {reason}")


def _looks_like(key: str) -> list[str]:
    wide = "".join(chr(ord(letter) + 0xFEE0) for letter in key)
    long_s = [key.replace("s", "\u017f")] if "s" in key else []
    return [key.upper(), f"{key}\0x", f" {key}", f"{key}\u200b", wide, *long_s]


def test_a_key_that_some_programs_take_for_one_of_a_message_makes_it_unfit() -> None:
    for key in ("jsonrpc", "id", "method", "params", "result", "error"):
        for other in _looks_like(key):
            found = read(a_request(**{other: 1}))
            reason = f"Invalid request: some programs take the key {json.dumps(other)} for another one"
            assert found == BadMessage(-32600, reason, 1)


def test_a_key_that_some_programs_take_for_one_of_a_call_makes_it_unfit() -> None:
    cases: list[str] = ["name", "arguments", "_meta", "inputResponses", "requestState", "task"]
    for key in cases:
        assert isinstance(read(a_request(method="tools/call", params={key: 1})), Request)
        for other in _looks_like(key):
            assert isinstance(read(a_request(params={other: 1})), Request)
            found = read(a_request(method="tools/call", params={"name": "x", other: 1}))
            reason = f"Invalid request: some programs take the key {json.dumps(other)} for another one"
            assert found == BadMessage(-32600, reason, 1)


def test_an_unfit_message_keeps_its_id_and_whether_it_is_a_reply() -> None:
    cases: list[tuple[bytes, int | str | None, bool]] = [
        (b'{"jsonrpc":"2.0","id":1,"method":"x","method":"y"}', 1, False),
        (b'{"jsonrpc":"2.0","id":1,"id":2,"method":"x"}', None, False),
        (b'{"jsonrpc":"2.0","id":"a","result":1,"result":2}', "a", True),
        (b'{"jsonrpc":"2.0","id":"a","result":1,"error":{}}', "a", True),
        (b'{"jsonrpc":"2.0","id":null,"error":{}}', None, True),
    ]
    for body, request_id, is_reply in cases:
        found = read(body)
        assert isinstance(found, BadMessage)
        assert (found.id, found.is_reply) == (request_id, is_reply)


@pytest.mark.parametrize("line_end", [b"\r", b"\n", b"\r\n"])
def test_a_message_with_line_ends_is_re_encoded(line_end: bytes) -> None:
    body = b'{"jsonrpc":"2.0",' + line_end + b'"id":1,"method":"x","params":{"a":' + line_end + b"1.5}}"
    message = read(body)
    assert isinstance(message, Request)
    assert message.wire == b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":1.5}}'


def test_requests_notifications_and_replies_are_distinguished() -> None:
    body = a_request(params={"a": 1})
    assert read(body) == Request(1, "ping", {"a": 1}, json.loads(body), body)
    body = b'{"jsonrpc":"2.0","method":"x","params":{"a":1}}'
    assert read(body) == Notification("x", {"a": 1}, json.loads(body), body)
    body = b'{"jsonrpc":"2.0","id":1,"result":{"a":1}}'
    assert read(body) == Reply(1, {"a": 1}, None, json.loads(body), body)
    body = b'{"jsonrpc":"2.0","id":"1","error":{"code":1}}'
    assert read(body) == Reply("1", None, {"code": 1}, json.loads(body), body)


def test_messages_of_the_guards_own_have_the_shapes_of_json_rpc() -> None:
    assert messages.error_reply(None, -1, "é") == b'{"jsonrpc":"2.0","id":null,"error":{"code":-1,"message":"\\u00e9"}}'
    assert messages.result_reply("a", {"b": 1}) == b'{"jsonrpc":"2.0","id":"a","result":{"b":1}}'
    assert messages.request(1, "m", {"b": 1}) == b'{"jsonrpc":"2.0","id":1,"method":"m","params":{"b":1}}'
    assert messages.notification("m", {"b": 1}) == b'{"jsonrpc":"2.0","method":"m","params":{"b":1}}'
    with pytest.raises(ValueError, match="JSON compliant"):
        encode({"n": float("nan")})


def test_a_note_for_the_model_stands_before_what_the_tool_says() -> None:
    reply = Reply(1, {"content": [{"type": "text", "text": "done"}], "isError": False}, None, wire=b"as it came")
    assert json.loads(messages.with_note(reply, "changed")) == {
        "jsonrpc": "2.0",
        "id": 1,
        "result": {"content": [{"type": "text", "text": "changed"}, *reply.result["content"]], "isError": False},
    }
    assert messages.with_note(reply, "") == b"as it came"


def test_a_cancellation_names_a_request_by_its_id() -> None:
    cases: list[tuple[Any, int | str | None]] = [(1, 1), ("a", "a"), (True, None), (None, None), ({}, None)]
    for request_id, found in cases:
        assert messages.cancelled_id(Notification("notifications/cancelled", {"requestId": request_id})) == found


def _check(body: bytes) -> None:
    found = read(body)
    if isinstance(found, BadMessage):
        return
    again = json.loads(found.wire)
    assert b"\r" not in found.wire
    assert b"\n" not in found.wire
    assert again == json.loads(body)
    assert again["jsonrpc"] == "2.0"
    assert isinstance(again.get("method"), str) or ("result" in again) != ("error" in again)
    if again.get("method") == "tools/call":
        assert isinstance(found, Request)


@given(st.binary(max_size=200) | st.lists(_PARTS, max_size=20).map(b"".join))
def test_of_any_bytes_only_whole_messages_pass(body: bytes) -> None:
    _check(body)


@given(st.dictionaries(_KEYS, _JSON | st.sampled_from(["2.0", "tools/call", 1]), max_size=6))
def test_the_same_for_objects_that_are_nearly_messages(content: dict[str, Any]) -> None:
    _check(json.dumps(content).encode())
    _check(json.dumps(content, indent=1).replace("\n", "\r").encode())


@given(st.dictionaries(st.text(), _JSON, max_size=4))
def test_an_encoded_message_is_one_ascii_line_that_decodes_to_the_same(content: dict[str, Any]) -> None:
    wire = encode(content)
    assert b"\n" not in wire
    assert wire.isascii()
    assert json.loads(wire) == content
