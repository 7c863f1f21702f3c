"""Bodies of replies, as JSON or as events, whatever their content type says."""

import itertools
import json
from typing import Any

import pytest

from openai_responses_mcp.adapters.openai.replies import (
    LONGEST_OBJECT_BYTES,
    LONGEST_REPLY_BYTES,
    MOST_BRACKETS,
    BodyTooLong,
    ReplyReader,
)

EVENTS, JSON = "text/event-stream; charset=utf-8", "application/json"
RESPONSE = {"id": "resp_1", "output": []}
WHOLE = json.dumps(RESPONSE).encode()
STREAM = b'event: response.created\ndata: {"type":"response.created"}\n\ndata: {"type":"x","n":1}\n\n'


def read(body: bytes, content_type: str, *, chunk_bytes: int = 1_000_000) -> list[dict[str, Any]]:
    reader = ReplyReader(content_type)
    chunks = [body[at : at + chunk_bytes] for at in range(0, len(body), chunk_bytes)]
    return [*(event for chunk in chunks for event in reader.receive(chunk)), *reader.end()]


def test_the_first_byte_distinguishes_events_from_one_object() -> None:
    for content_type in (EVENTS, JSON, "text/plain", "", "TEXT/EVENT-STREAM"):
        for before, chunk_bytes in itertools.product((b"", b"\r\n \n"), (1, 1_000_000)):
            assert read(before + STREAM, content_type, chunk_bytes=chunk_bytes) == [
                {"type": "response.created"},
                {"type": "x", "n": 1},
            ]
            assert read(before + WHOLE, content_type, chunk_bytes=chunk_bytes) == [
                {"type": "response.completed", "response": RESPONSE}
            ]


def test_a_stream_may_begin_with_any_kind_of_line() -> None:
    for start in (b": hello\n\n", b"id: 1\n", b"retry: 1\n", b"data: ", b"event: x\n"):
        body = start + (b"" if start == b"data: " else b"data: ") + b'{"type":"x"}\n\n'
        assert read(body, "") == [{"type": "x"}]


@pytest.mark.parametrize(("body", "response"), [(b"null", None), (b"[]", [])])
def test_a_single_value_that_is_no_object_is_passed_on(body: bytes, response: object) -> None:
    assert read(body, JSON) == [{"type": "response.completed", "response": response}]


def test_a_body_that_is_neither_json_nor_events_cannot_be_read() -> None:
    cases: list[bytes] = [
        b"",
        b"<!DOCTYPE html>",
        b"error: no",
        b"{cut",
        b"[" * 100_000,
    ]
    for body in cases:
        for content_type in (JSON, "text/html", ""):
            with pytest.raises((ValueError, RecursionError)):
                read(body, content_type)


def test_a_stream_without_an_event_is_an_empty_one() -> None:
    for body in (b"", b"\n\n", b": hello\n\n", b"<html>", b"data: {}"):
        assert read(body, EVENTS) == []


def test_an_event_that_is_no_json_object_cannot_be_read() -> None:
    cases: list[bytes] = [b"[7]", b"{cut", b'{"a": "\xff"}', b"[" * 100_000]
    for data in cases:
        with pytest.raises((ValueError, RecursionError)):
            read(b"data: " + data + b"\n\n", EVENTS)


def test_half_a_surrogate_pair_is_read() -> None:
    assert read(b'data: {"type": "\\ud800"}\n\n', EVENTS) == [{"type": "\ud800"}]


def test_the_done_marker_ends_a_stream() -> None:
    reader = ReplyReader(EVENTS)
    assert list(reader.receive(b'data: {"type":"x"}\n\ndata: [DONE]\n\ndata: {"type":"y"}\n\n')) == [{"type": "x"}]
    assert reader.has_ended


def test_events_are_read_one_at_a_time() -> None:
    events = ReplyReader(EVENTS).receive(b'data: {"type":"x"}\n\ndata: {cut\n\n')
    assert next(events) == {"type": "x"}
    with pytest.raises(ValueError, match="property name"):
        next(events)


def test_the_length_of_a_body_is_limited() -> None:
    reader, event = ReplyReader(EVENTS), b'data: {"text": "' + b"x" * 1024 * 1024 + b'"}\n\n'
    count = LONGEST_REPLY_BYTES // len(event)
    assert sum(len(list(reader.receive(event))) for _ in range(count)) == count
    with pytest.raises(BodyTooLong, match="more than 32 MiB in a reply"):
        list(reader.receive(event))


def test_one_object_has_its_own_limit() -> None:
    reader = ReplyReader("application/json")
    with pytest.raises(BodyTooLong, match="more than 2 MiB in one object"):
        list(reader.receive(b'{"output": "' + b"x" * LONGEST_OBJECT_BYTES))


@pytest.mark.parametrize("chunk", [1024 * 1024, 4 * 1024 * 1024])
def test_one_event_has_its_own_limit(chunk: int) -> None:
    data = b'data: {"text": "' + b"x" * LONGEST_OBJECT_BYTES + b'"}\n\n'
    reader = ReplyReader("text/event-stream")
    with pytest.raises(BodyTooLong, match="more than 2 MiB in one event"):
        _ = [list(reader.receive(data[start : start + chunk])) for start in range(0, len(data), chunk)]


def test_a_reply_of_nothing_but_brackets_is_not_decoded() -> None:
    reader = ReplyReader("application/json")
    list(reader.receive(b"[" + b"[]," * MOST_BRACKETS + b"[]]"))
    with pytest.raises(ValueError, match="lists and objects"):
        list(reader.end())
