import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.domain.jsonrpc import BadMessage, Notification, Request
from openai_responses_mcp.server.jsonrpc import (
    ANSWER_FAILED,
    MISSING_CLIENT_CAPABILITY,
    UNSUPPORTED_PROTOCOL_VERSION,
    decode,
    encode,
    error_message,
    notification_message,
    result_message,
)
from tests.server.wired import request


def decoded(message: Any) -> Request | Notification | BadMessage | None:
    return decode(json.dumps(message).encode())


def bare(message: Request | Notification | BadMessage | None) -> object:
    """Without the message as it came."""
    return message._replace(content={}, wire=b"") if isinstance(message, Request | Notification) else message


def refused(body: bytes) -> BadMessage:
    bad = decode(body)
    assert isinstance(bad, BadMessage)
    return bad


def test_a_body_that_is_not_json_is_a_parse_error_without_an_id() -> None:
    cases: list[tuple[bytes, str]] = [
        (b'{"jsonrpc": "2.0", "id": 1', "Expecting ',' delimiter: line 1 column 27 (char 26)"),
        ('{"id": 1}'.encode("utf-16"), "not UTF-8 at byte 0"),
        (b'\xef\xbb\xbf{"id": 1}', "it begins with a byte order mark (BOM)"),
        (b'{"id": 1, "params": [-Infinity]}', "-Infinity is not JSON"),
        (b'{"id": ' + b"9" * 5000 + b"}", "a number has too many digits"),
        (b"[" * 100_000, "nesting too deep"),
    ]
    for body, reason in cases:
        assert refused(body) == BadMessage(-32700, f"Parse error: {reason}")


@pytest.mark.parametrize("message", [[], [request(1, "ping")], "ping", 1])
def test_json_that_is_no_object_is_an_invalid_request_without_an_id(message: Any) -> None:
    assert decoded(message) == BadMessage(
        -32600, "Invalid request: not a JSON object (batches are not supported)", None
    )


def test_an_id_that_is_no_text_or_whole_number_is_refused_without_it() -> None:
    cases: list[Any] = [None, True, False, 1.0, 1.5, 1e3]
    for unusable in cases:
        bad = decoded(request(unusable, "ping"))
        assert bad == BadMessage(-32600, "Invalid request: id must be a string or a whole number", None)


def test_any_text_and_any_whole_number_is_an_id() -> None:
    cases: list[Any] = [0, 1, -7, 2**70, ""]
    for usable in cases:
        incoming = decoded(request(usable, "ping", {"a": 1}))
        assert isinstance(incoming, Request)
        assert bare(incoming) == Request(usable, "ping", {"a": 1})
        assert type(incoming.id) is type(usable)


def test_a_request_of_the_wrong_shape_is_refused_with_its_id() -> None:
    cases: list[tuple[dict[str, Any], str]] = [
        ({"jsonrpc": "1.0"}, 'jsonrpc must be "2.0"'),
        ({"jsonrpc": 2.0}, 'jsonrpc must be "2.0"'),
        ({"method": None}, "method must be a string"),
        ({"params": []}, "params must be an object"),
        ({"params": False}, "params must be an object"),
    ]
    for changes, fault in cases:
        assert decoded({**request(7, "ping"), **changes}) == BadMessage(-32600, f"Invalid request: {fault}", 7)


def test_null_params_are_absent() -> None:
    assert bare(decoded({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": None})) == Request(1, "ping", {})
    assert bare(decoded({"jsonrpc": "2.0", "method": "x", "params": None})) == Notification("x", {})


def test_a_key_twice_is_refused_with_the_id_if_there_is_exactly_one() -> None:
    cases: list[tuple[bytes, Any]] = [
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "method": "tools/list"}', 1),
        (b'{"jsonrpc": "2.0", "id": "a", "method": "ping", "params": {"b": 1, "b": 1}}', "a"),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "params": {"c": [{"id": 2, "id": 3}]}}', 1),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "ping", "m\\u0065thod": "ping"}', 1),
        (b'{"jsonrpc": "2.0", "id": 1, "id": 2, "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": 1, "\\u0069d": 1, "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": null, "method": "ping", "method": "ping"}', None),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping", "method": "ping"}', "\ufffd"),
    ]
    for body, request_id in cases:
        assert refused(body) == BadMessage(-32600, "Invalid request: a key appears twice", request_id)


def test_responses_and_objects_without_an_id_are_never_answered() -> None:
    cases: list[bytes] = [
        b'{"jsonrpc": "2.0", "method": "x", "method": "x"}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {}, "result": {}}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {"a": 1, "a": 2}}',
        b'{"jsonrpc": "2.0", "id": 1, "result": {}}',
        b'{"jsonrpc": "2.0", "id": null, "error": {"code": -32700, "message": "x"}}',
        b'{"id": 1, "error": 7}',
        b"{}",
        b'{"method": "x"}',
        b'{"jsonrpc": "2.0", "method": 7}',
        b'{"jsonrpc": "2.0", "method": "x", "params": []}',
    ]
    for body in cases:
        assert decode(body) is None


def test_a_method_makes_a_request_of_what_looks_like_a_response() -> None:
    assert isinstance(decoded({**request(1, "ping"), "result": {}}), Request)


def test_an_object_with_a_method_and_no_id_is_a_notification() -> None:
    incoming = decoded({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})
    assert isinstance(incoming, Notification)
    assert bare(incoming) == Notification("notifications/cancelled", {"requestId": 1})


def test_lone_surrogates_become_replacement_characters_everywhere() -> None:
    body = b'{"jsonrpc": "2.0", "id": 1, "method": "m\\ud800", "params": {"\\udfff": ["a\\ud800", 1], "ok": "\\ud83d\\ude00"}}'
    assert bare(decode(body)) == Request(1, "m\ufffd", {"\ufffd": ["a\ufffd", 1], "ok": "😀"})
    assert bare(decode(b'{"jsonrpc": "2.0", "method": "m\\ud800"}')) == Notification("m\ufffd", {})


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_value_that_json_cannot_express_is_never_sent(number: float) -> None:
    with pytest.raises(ValueError, match="JSON"):
        encode({"result": number})


@given(st.binary(max_size=200))
def test_no_bytes_make_the_decoder_raise(body: bytes) -> None:
    assert isinstance(decode(body), Request | Notification | BadMessage | None)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=20),
    lambda children: st.lists(children, max_size=4) | st.dictionaries(st.text(max_size=8), children, max_size=4),
    max_leaves=10,
)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=4))
def test_an_encoded_message_is_one_line_of_utf_8_that_decodes_to_the_same(message: dict[str, Any]) -> None:
    body = encode(message)
    assert len(body.decode("utf-8").splitlines()) == 1
    assert json.loads(body) == message


def test_no_line_end_gets_into_a_message_raw() -> None:
    cases: list[str] = ["\n", "\r", "\r\n", "\x0b", "\x0c", "\x1c", "\x1d", "\x1e", "\x85", "\u2028", "\u2029"]
    for line_end in cases:
        body = encode({"a" + line_end: f'"x{line_end}y"'})
        assert line_end not in body.decode()
        assert json.loads(body) == {"a" + line_end: f'"x{line_end}y"'}


def test_a_lone_surrogate_is_sent_as_a_replacement_character() -> None:
    assert encode({"a": "\ud800é"}) == '{"a":"\ufffdé"}'.encode()


def test_messages_have_the_shapes_and_codes_that_clients_know() -> None:
    assert (ANSWER_FAILED, MISSING_CLIENT_CAPABILITY, UNSUPPORTED_PROTOCOL_VERSION) == (-32001, -32021, -32022)
    assert result_message(1, {"a": 1}) == {"jsonrpc": "2.0", "id": 1, "result": {"a": 1}}
    assert error_message(None, -32700, "x") == {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "x"}}
    assert error_message("a", -32001, "x", {}) == {
        "jsonrpc": "2.0",
        "id": "a",
        "error": {"code": -32001, "message": "x", "data": {}},
    }
    assert notification_message("m", {"a": 1}) == {"jsonrpc": "2.0", "method": "m", "params": {"a": 1}}
