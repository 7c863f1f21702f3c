"""Server-sent events of the API, fed whole, byte by byte, and in two chunks split anywhere."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.adapters.openai.replies import StreamedEvents

CASES = {
    "two": (b"data: a\n\ndata: b\n\n", [b"a", b"b"]),
    "name behind the data": (b"data: a\nevent: response.created\n\n", [b"a"]),
    "id and retry": (b"id: 7\nretry: 10\ndata: a\n\n", [b"a"]),
    "only the first space is not data": (b"data:  a b\n\n", [b" a b"]),
    "several data lines, one of them empty": (b"data: a\ndata:\ndata: b\n\n", [b"a\n\nb"]),
    "CRLF": (b"event: x\r\ndata: a\r\n\r\ndata: b\r\n\r\n", [b"a", b"b"]),
    "mixed line ends": (b"data: a\r\n\ndata: b\n\r\ndata: c\r\r\n", [b"a", b"b", b"c"]),
    "comments": (b": hello\n\n: hello\ndata: a\n: hello\n\n", [b"a"]),
    "no data": (b"event: ping\n\ndata: a\n\n", [b"a"]),
    "empty data": (b"data:\n\ndata: \n\ndata\n\ndata: a\n\n", [b"a"]),
    "byte order mark": (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    "any byte": (b"data: \xff\x00\x0b\x0c\x1c\x85\xe2\x80\xa8\n\n", [b"\xff\x00\x0b\x0c\x1c\x85\xe2\x80\xa8"]),
    "not ended by any line end": (b"data: a\n\ndata: b", [b"a"]),
}


def events_in(*chunks: bytes) -> list[bytes]:
    reader = StreamedEvents()
    return [event for chunk in chunks for event in reader.receive(chunk)]


@pytest.mark.parametrize(("wire", "events"), CASES.values(), ids=CASES)
def test_events_are_whole_however_the_bytes_are_chunked(wire: bytes, events: list[bytes]) -> None:
    assert events_in(wire) == events
    assert events_in(*(wire[at : at + 1] for at in range(len(wire)))) == events
    assert events_in(*(piece for byte in wire for piece in (bytes([byte]), b""))) == events
    for at in range(len(wire)):
        assert events_in(wire[:at], wire[at:]) == events


def test_an_event_comes_out_as_soon_as_it_is_complete() -> None:
    reader = StreamedEvents()
    assert reader.receive(b"data: a\r\n\r") == [b"a"]
    assert reader.receive(b"\ndata: b") == []
    assert reader.receive(b"\r\n\r\n") == [b"b"]


@given(
    st.lists(st.sampled_from([b"data: a", b"data", b":", b"\r", b"\n", b"\r\n", b"event: x", b" ", b"\xef\xbb\xbf"]))
)
def test_any_bytes_give_the_same_events_in_any_chunks(pieces: list[bytes]) -> None:
    assert events_in(*pieces) == events_in(b"".join(pieces))


def test_a_long_line_in_small_chunks_is_one_event() -> None:
    chunk = b"x" * 1000
    events = events_in(b"data: ", *[chunk] * 10_000, b"\n\n")
    assert [len(event) for event in events] == [10_000_000]
