"""Server-sent events, fed whole, byte by byte, and in two chunks split anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.adapters.event_stream import EventReader

CASES: dict[str, tuple[bytes, list[bytes | None]]] = {
    "id and retry": (b"id: 7\nretry: 10\ndata: a\n\n", [b"a"]),
    "only the first space is not data": (b"data:  a b\n\n", [b" a b"]),
    "several data lines, one of them empty": (b"data: a\ndata:\ndata: b\n\n", [b"a\n\nb"]),
    "CRLF": (b"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    "mixed line ends": (b"data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", [b"a", b"b", b"c"]),
    "empty data": (b"data:\n\ndata: \n\ndata\n\ndata: a\n\n", [b"a"]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    "any byte": (b"data: \xff\x00\x0b\x0c\x1c\x85\xe2\x80\xa8\n\n", [b"\xff\x00\x0b\x0c\x1c\x85\xe2\x80\xa8"]),
    "not ended by any line end": (b"data: a\n\ndata: b", [b"a"]),
    "as long as it may be": (b"data: " + b"x" * 50 + b"\n\ndata: a\n\n", [b"x" * 50, b"a"]),
    "too long": (b"data: " + b"x" * 51 + b"\n\ndata: a\n\n", [None, b"a"]),
    "far too long": (b"data: " + b"x" * 5_000 + b"\n\ndata: a\n\n", [None, b"a"]),
}


def events_in(*chunks: bytes) -> list[bytes | None]:
    reader = EventReader(50)
    return [event for chunk in chunks for event in reader.feed(chunk)]


@pytest.mark.parametrize(("wire", "events"), CASES.values(), ids=CASES)
def test_events_are_whole_however_the_bytes_are_chunked(wire: bytes, events: list[bytes | None]) -> None:
    assert events_in(wire) == events
    assert events_in(*(wire[at : at + 1] for at in range(len(wire)))) == events
    assert events_in(*(piece for byte in wire for piece in (bytes([byte]), b""))) == events
    for at in range(0, len(wire), 1 + len(wire) // 200):
        assert events_in(wire[:at], wire[at:]) == events


def test_only_events_with_a_wanted_name_are_given() -> None:
    reader = EventReader(50, (b"message",))
    assert reader.feed(b"event: message\ndata: a\n\nevent: other\ndata: b\n\ndata: c\n\n") == [b"a", b"c"]


def test_an_event_comes_out_as_soon_as_it_is_complete() -> None:
    reader = EventReader(50)
    assert reader.feed(b"data: a\r\n\r") == [b"a"]
    assert reader.feed(b"\ndata: b") == []
    assert reader.feed(b"\r\n\r\n") == [b"b"]


PIECES = [b"data: a", b"data", b":", b"\r", b"\n", b"\r\n", b"event: x", b" ", b"\xef\xbb\xbf", b"x" * 60, b"id: 1"]


@given(st.lists(st.sampled_from(PIECES)), st.integers(1, 9))
def test_any_bytes_give_the_same_events_in_any_chunks(pieces: list[bytes], size: int) -> None:
    wire = b"".join(pieces)
    chunks = [wire[at : at + size] for at in range(0, len(wire), size)]
    assert events_in(*pieces) == events_in(*chunks) == events_in(wire)


def test_a_long_line_in_small_chunks_is_one_event() -> None:
    reader = EventReader(10_000_000)
    events = [event for chunk in (b"data: ", *[b"x" * 1000] * 10_000, b"\n\n") for event in reader.feed(chunk)]
    assert [len(event or b"") for event in events] == [10_000_000]


def test_the_last_valid_id_and_retry_delay_are_remembered() -> None:
    reader = EventReader(50)
    reader.feed(b"id: 7\nretry: 1500\ndata:\n\n")
    assert (reader.last_id, reader.retry_seconds) == ("7", 1.5)
    reader.feed(b"id: a\0b\nretry: soon\ndata: x\n\nid: " + b"9" * 5000 + b"\n\n")
    assert (reader.last_id, reader.retry_seconds) == ("7", 1.5)
    reader.feed(b"id\n\n")
    assert reader.last_id == ""
