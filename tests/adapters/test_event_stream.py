"""Server-sent events of a remote server, fed in chunks of several sizes."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.adapters.remote.wire import EventReader

CASES = [
    (b"data: a\n\n", [b"a"]),
    (b"data: a\r\n\r\ndata:b\r\rdata: c\n\n", [b"a", b"b", b"c"]),
    (b"data: a\r\n\n", [b"a"]),
    (b"\xef\xbb\xbfdata: a\n\n", [b"a"]),
    (b"data: a\ndata: b\n\n", [b"a\nb"]),
    (b": ping\n\ndata: a\n\n", [b"a"]),
    (b"event: message\ndata: a\n\nevent: other\ndata: b\n\n", [b"a"]),
    (b"id: 7\ndata:\n\n", []),
    (b"data: unfinished\n", []),
    (b"data: " + b"x" * 50 + b"\n\ndata: a\n\n", [b"x" * 50, b"a"]),
    (b"data: " + b"x" * 51 + b"\n\ndata: a\n\n", [None, b"a"]),
    (b"data: " + b"x" * 30 + b"\ndata: " + b"y" * 30 + b"\n\ndata: a\n\n", [None, b"a"]),
    (b"data: " + b"x" * 10_000 + b"\n\ndata: a\n\n", [None, b"a"]),
]


def read(wire: bytes, size: int) -> list[bytes | None]:
    reader = EventReader(50)
    parts = [wire[at : at + size] for at in range(0, len(wire), size)]
    return [data for part in parts for data in reader.feed(part)]


@pytest.mark.parametrize(("wire", "data"), CASES)
def test_events_are_whole_however_the_bytes_are_chunked(wire: bytes, data: list[bytes | None]) -> None:
    for size in (1, 2, 7, 1_000_000):
        assert read(wire, size) == data


@given(st.lists(st.sampled_from([b"data: a", b"\r", b"\n", b"id: 1", b":", b"x" * 60, b"retry: 5"])), st.integers(1, 9))
def test_any_bytes_give_the_same_events_in_any_chunks(parts: list[bytes], size: int) -> None:
    wire = b"".join(parts)
    assert read(wire, size) == read(wire, len(wire) + 1)


def test_the_last_valid_id_and_retry_delay_are_remembered() -> None:
    reader = EventReader(50)
    reader.feed(b"id: 7\nretry: 1500\ndata:\n\n")
    assert (reader.last_id, reader.retry_seconds) == ("7", 1.5)
    reader.feed(b"id: a\0b\nretry: soon\ndata: x\n\nid: " + b"9" * 5000 + b"\n\n")
    assert (reader.last_id, reader.retry_seconds) == ("7", 1.5)
    reader.feed(b"id\n\n")
    assert reader.last_id == ""
