"""One table of `(wire, outcomes)`, each case fed in every way bytes can arrive; faults and limits follow below it."""

import itertools
import tracemalloc
from collections.abc import Iterable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.domain.ports import FramingFault

LIMIT = 64
LONGEST_HEADER_BYTES = 8192
MOST_HEADER_LINES = 32
FAULT = "fault"

PING = b'{"id":1}'
PONG = b'{"id":2}'
LAST = b'{"id":3}'

Outcomes = list[bytes | str]


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def take_all(framer: StdioFramer) -> Outcomes:
    outcomes: Outcomes = []
    while (outcome := framer.next_message()) is not None:
        outcomes.append(FAULT if isinstance(outcome, FramingFault) else outcome)
    return outcomes


def feed(framer: StdioFramer, chunks: Iterable[bytes], *, ends: bool = True) -> Outcomes:
    outcomes: Outcomes = []
    for chunk in chunks:
        framer.receive(chunk)
        outcomes += take_all(framer)
    if ends:
        framer.receive_end()
        outcomes += take_all(framer)
    return outcomes


def single_bytes(wire: bytes) -> Iterable[bytes]:
    return (wire[position : position + 1] for position in range(len(wire)))


def one_fault_then(*messages: bytes) -> Outcomes:
    return [FAULT, *messages]


# Each case ends at a message boundary, so that the test can append a new message.
CASES: dict[str, tuple[bytes, Outcomes]] = {
    "nothing": (b"", []),
    "lines": (PING + b"\n[1, 2]\r\n", [PING, b"[1, 2]"]),
    "blank lines between lines": (b"\n\r\n \t\n" + PING + b"\n\n\r\n" + PONG + b"\n \n", [PING, PONG]),
    "blanks before a line": (b" \t" + PING + b"\n", [PING]),
    "a lone CR is no line end": (PING + b"\r" + PONG + b"\n", [PING + b"\r" + PONG]),
    "only one CR belongs to the line end": (PING + b"\r\r\n", [PING + b"\r"]),
    "a line that is a word": (b"hello\n", [b"hello"]),
    "a line of invalid UTF-8": (b"\xff\xfe{}\n", [b"\xff\xfe{}"]),
    "a JSON string with a colon": (b'"key": 1\n', [b'"key": 1']),
    "characters of many bytes": ('{"a":"日本😀\u2028\u0085"}\n'.encode(), ['{"a":"日本😀\u2028\u0085"}'.encode()]),
    "a BOM before headers": (b"\xef\xbb\xbf" + framed(PING), [PING]),
    "a BOM that is not the first": (PING + b"\n\xef\xbb\xbf" + PONG + b"\n", [PING, b"\xef\xbb\xbf" + PONG]),
    "headers": (framed(PING) + framed(PONG), [PING, PONG]),
    "headers with mixed line ends": (b"A: 1\nContent-Length: 8\r\n\n" + PING, [PING]),
    "headers in any case and order": (b"X-Any: a:b\r\ncOnTeNt-LENGTH:8\r\nz:\r\n\r\n" + PING, [PING]),
    "blanks around a length": (b"Content-Length \t: \t8 \t\r\n\r\n" + PING, [PING]),
    "leading zeros in a length": (b"Content-Length: 000000000008\r\n\r\n" + PING, [PING]),
    "an empty body": (framed(b"") + framed(PING), [b"", PING]),
    "a body with line ends and headers in it": (framed(b"{\n\r\n" + framed(PING) + b"}"), [b"{\n\r\n" + framed(PING) + b"}"]),
    "blank lines between headers": (b"\r\n\n" + framed(PING) + b"\r\n\r\n" + framed(PONG), [PING, PONG]),
    "headers, then lines": (framed(PING) + PONG + b"\n", [PING, PONG]),
    "lines, then headers": (PING + b"\n" + framed(PONG), [PING, PONG]),
    "an over-long line": (b"x" * (LIMIT + 1) + b"\n" + PING + b"\n", one_fault_then(PING)),
    "an over-long body": (framed(b"x" * (LIMIT + 1)) + framed(PING), one_fault_then(PING)),
    "an over-long body with CRLF in it": (framed(b"\r\n" * LIMIT) + framed(PING), one_fault_then(PING)),
    "no header in a header block": (b"A: 1\r\n" + PING + b"\n", one_fault_then(PING)),
    "a folded header": (b"A: 1\r\n folded\r\n\r\n" + framed(PING), one_fault_then(PING)),
}  # fmt: skip


@pytest.mark.parametrize(("wire", "outcomes"), CASES.values(), ids=CASES.keys())
def test_the_same_bytes_give_the_same_outcomes_however_they_are_cut(wire: bytes, outcomes: Outcomes) -> None:
    assert feed(StdioFramer(LIMIT), [wire]) == outcomes
    assert feed(StdioFramer(LIMIT), single_bytes(wire)) == outcomes
    assert feed(StdioFramer(LIMIT), [wire], ends=False) == outcomes
    for cut in range(len(wire)):
        assert feed(StdioFramer(LIMIT), [wire[:cut], wire[cut:]]) == outcomes, f"cut at {cut}"
    for trailing in (LAST + b"\n", framed(LAST), LAST):
        assert feed(StdioFramer(LIMIT), [wire + trailing]) == [*outcomes, LAST]
        assert feed(StdioFramer(LIMIT), single_bytes(wire + trailing)) == [*outcomes, LAST]


BAD_LENGTHS = {
    "missing": b"Content-Type: application/json\r\n",
    "without a value": b"Content-Length:\r\n",
    "negative": b"Content-Length: -8\r\n",
    "signed": b"Content-Length: +8\r\n",
    "hexadecimal": b"Content-Length: 0x8\r\n",
    "with underscores": b"Content-Length: 1_0\r\n",
    "in full-width digits": "Content-Length: ８\r\n".encode(),
    "with a CR inside": b"Content-Length: 8\r8\r\n",
    "before a letter": b"Content-Length: 8X\r\n",
    "13 digits long": b"Content-Length: 0000000000008\r\n",
    "20 digits long": b"Content-Length: 99999999999999999999\r\n",
    "given twice": b"Content-Length: 8\r\nContent-Length: 8\r\n",
}


@pytest.mark.parametrize("headers", BAD_LENGTHS.values(), ids=BAD_LENGTHS.keys())
def test_a_bad_length_is_one_fault_and_the_next_message_is_found(headers: bytes) -> None:
    for line in (PONG, b"[1, 2]"):
        assert feed(StdioFramer(LIMIT), [headers + b"\r\n" + line + b"\n" + LAST]) == one_fault_then(line, LAST)
    bodies = (b"", PING, b"{", b"garbage ", b'{"text":\n"Content-Length: none"}')
    for line_end, body in itertools.product((b"\r\n", b"\n"), bodies):
        wire = headers.replace(b"\r\n", line_end) + line_end + body + framed(PONG) + framed(LAST)
        assert feed(StdioFramer(LIMIT), [wire]) == one_fault_then(PONG, LAST)
        assert feed(StdioFramer(LIMIT), single_bytes(wire)) == one_fault_then(PONG, LAST)


def test_a_length_of_twelve_digits_is_too_long_but_not_malformed() -> None:
    framer = StdioFramer(LIMIT)
    framer.receive(b"Content-Length: 999999999999\r\n\r\n" + PING)
    assert framer.next_message() == FramingFault(f"the message is longer than {LIMIT} bytes")
    assert framer.next_message() is None


def test_text_that_only_starts_like_a_header_does_not_hang_the_framer() -> None:
    never_a_header = b"Content-Length" + b" " * LONGEST_HEADER_BYTES + b": 8"
    wire = b"A: 1\n\nx" + never_a_header + b"\n" + framed(PING)
    assert feed(StdioFramer(100_000), [wire]) == one_fault_then(PING)


def test_a_fault_says_what_is_wrong() -> None:
    reasons = []
    wires = (b"A: 1\n\n", b"Content-Length: 1\nContent-Length: 1\n\n", b"Content-Length: x\n\n", b"A: 1\nno\n")
    for wire in (*wires, b"A: 1\n" * 33):
        framer = StdioFramer(LIMIT)
        framer.receive(wire)
        fault = framer.next_message()
        assert isinstance(fault, FramingFault)
        reasons.append(fault.reason)
    assert reasons == [
        "Content-Length is missing",
        "Content-Length is given more than once",
        "Content-Length must be 1 to 12 digits",
        "a line in the header block is not a header",
        "the header block is longer than 8192 bytes or 32 lines",
    ]


LINE_OF_LIMIT = b"{" + b"x" * (LIMIT - 2) + b"}"


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_line_of_exactly_the_limit_is_taken_and_one_byte_more_is_not(line_end: bytes) -> None:
    for wire, outcomes in (
        (LINE_OF_LIMIT + line_end, [LINE_OF_LIMIT]),
        (b"x" + LINE_OF_LIMIT + line_end, [FAULT]),
        (LINE_OF_LIMIT * 10 + line_end, [FAULT]),
        (LINE_OF_LIMIT + b"\r\r" + line_end, [FAULT]),
    ):
        for chunks in ([wire], single_bytes(wire)):
            assert feed(StdioFramer(LIMIT), [*chunks, PING + b"\n"]) == [*outcomes, PING]


def test_a_line_is_too_long_as_soon_as_no_line_end_could_make_it_fit() -> None:
    assert feed(StdioFramer(LIMIT), [b"{" * (LIMIT + 1)], ends=False) == []
    assert feed(StdioFramer(LIMIT), [b"{" * (LIMIT + 2)], ends=False) == [FAULT]


def test_a_last_line_of_the_limit_needs_no_newline_and_a_longer_one_is_a_fault() -> None:
    assert feed(StdioFramer(LIMIT), [LINE_OF_LIMIT]) == [LINE_OF_LIMIT]
    assert feed(StdioFramer(LIMIT), [LINE_OF_LIMIT + b"\r"]) == [LINE_OF_LIMIT]
    assert feed(StdioFramer(LIMIT), [LINE_OF_LIMIT + b"x"]) == [FAULT]
    assert feed(StdioFramer(LIMIT), [LINE_OF_LIMIT * 10]) == [FAULT]


def test_a_body_of_exactly_the_limit_is_taken_and_one_byte_more_is_not() -> None:
    assert feed(StdioFramer(LIMIT), [framed(LINE_OF_LIMIT)]) == [LINE_OF_LIMIT]
    assert feed(StdioFramer(LIMIT), [framed(LINE_OF_LIMIT + b"x"), framed(PING)]) == [FAULT, PING]
    assert feed(StdioFramer(LIMIT), [framed(LINE_OF_LIMIT * 10), framed(PING)]) == [FAULT, PING]


@pytest.mark.parametrize(
    "opening",
    [b"", b"Content-Length: 10000000\r\n\r\n", b"A:", b"A: 1\n" * 40 + b"A:"],
    ids=["line", "body", "header", "header block"],
)
def test_over_long_input_is_skipped_in_bounded_memory(opening: bytes) -> None:
    limit, chunk = 100_000, b"x" * 10_000
    framer = StdioFramer(limit)
    framer.receive(opening)
    tracemalloc.start()
    outcomes = feed(framer, (chunk for _ in range(10 * limit // len(chunk))), ends=False)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert outcomes == [FAULT]
    assert most < 3 * limit


def header_block(size: int, line_end: bytes = b"\r\n") -> bytes:
    """A valid block for PING whose lines, with their ends, have exactly this size."""
    length = b"Content-Length: 8" + line_end
    filling = b"X: " + b"x" * (size - len(length) - len(b"X: " + line_end)) + line_end
    return filling + length + line_end


@pytest.mark.parametrize("line_end", [b"\n", b"\r\n"])
def test_a_header_block_may_have_8_kib_and_not_one_byte_more(line_end: bytes) -> None:
    good, bad = (header_block(size, line_end) + PING for size in (LONGEST_HEADER_BYTES, LONGEST_HEADER_BYTES + 1))
    assert feed(StdioFramer(LIMIT), [good + framed(PONG)]) == [PING, PONG]
    assert feed(StdioFramer(LIMIT), single_bytes(good + framed(PONG))) == [PING, PONG]
    assert feed(StdioFramer(LIMIT), [bad + framed(PONG)]) == [FAULT, PONG]
    assert feed(StdioFramer(LIMIT), single_bytes(bad + framed(PONG))) == [FAULT, PONG]


def test_a_header_block_may_have_32_lines_and_not_one_more() -> None:
    good, bad = (b"X: 1\r\n" * (lines - 1) + framed(PING) for lines in (MOST_HEADER_LINES, MOST_HEADER_LINES + 1))
    for chunks in ([good], single_bytes(good)):
        assert feed(StdioFramer(LIMIT), [*chunks, framed(PONG)]) == [PING, PONG]
    for chunks in ([bad], single_bytes(bad)):
        assert feed(StdioFramer(LIMIT), [*chunks, framed(PONG)]) == [FAULT, PONG]


@pytest.mark.parametrize("line", [b"X: 1\r\n", b"X: " + b"x" * 2000 + b"\n"])
def test_a_header_block_that_never_ends_is_one_fault(line: bytes) -> None:
    assert feed(StdioFramer(LIMIT), [line] * 1000, ends=False) == [FAULT]


def test_after_an_over_long_block_the_next_line_that_is_no_header_is_read() -> None:
    assert feed(StdioFramer(LIMIT), [b"X: 1\n" * 100 + PING + b"\n" + PONG + b"\n"]) == [FAULT, PING, PONG]


UNFINISHED = {
    "half a BOM": (b"\xef\xbb", [b"\xef\xbb"]),
    "blanks": (b" \r\n\t", []),
    "half a word": (b"Content", [b"Content"]),
    "half a header": (b"Content-Length: ", []),
    "the longest half header": (b"A: " + b"x" * (LONGEST_HEADER_BYTES - 3), []),
    "half an over-long header": (b"A: " + b"x" * (LONGEST_HEADER_BYTES - 2), [FAULT]),
    "a CR in a header block": (b"Content-Length: 8\r\n\r", []),
    "half a body": (framed(PING)[:-1], []),
    "half an over-long body": (b"Content-Length: 100\r\n\r\n" + PING, [FAULT]),
    "half an over-long header block": (b"X: 1\r\n" * 40 + b"X", [FAULT]),
    "a line without newline": (PING + b"\n" + PONG, [PING, PONG]),
    "a line with only a CR": (PING + b"\r", [PING]),
    "half a line": (PING[:-1], [PING[:-1]]),
    "half a message after a bad header": (b"Content-Length: x\r\n\r\n" + PING[:-1], [FAULT]),
    "a bad header block and its body": (b"Content-Length: x\r\n\r\n" + PING, [FAULT, PING]),
}


@pytest.mark.parametrize(("wire", "outcomes"), UNFINISHED.values(), ids=UNFINISHED.keys())
def test_input_may_end_anywhere_and_part_of_a_framed_message_is_dropped(wire: bytes, outcomes: Outcomes) -> None:
    for chunks in ([wire], single_bytes(wire)):
        framer = StdioFramer(LIMIT)
        assert feed(framer, chunks) == outcomes
        assert framer.next_message() is None


def test_replies_are_framed_until_the_first_line_of_json_and_are_lines_from_then_on() -> None:
    framer = StdioFramer(LIMIT)
    assert framer.frame("é".encode()) == b"Content-Length: 2\r\n\r\n\xc3\xa9"
    for wire, is_line_mode in ((framed(PING), False), (b"no JSON\n", False), (b"[]\n", True), (framed(PING), True)):
        framer.receive(wire)
        take_all(framer)
        assert framer.is_line_mode is is_line_mode
    assert framer.frame(PING) == PING + b"\n"


def test_line_mode_can_be_set_from_the_start() -> None:
    framer = StdioFramer(LIMIT, line_mode=True)
    assert framer.frame(PING) == PING + b"\n"
    assert feed(framer, [framed(PING)]) == [PING]
    assert framer.is_line_mode


def test_a_thousand_messages_in_one_chunk_are_all_found() -> None:
    bodies = [b'{"id":%d}' % number for number in range(1000)]
    assert feed(StdioFramer(LIMIT), [b"".join(body + b"\n" for body in bodies)]) == bodies
    assert feed(StdioFramer(LIMIT), [b"".join(map(framed, bodies))]) == bodies


# Pieces that lead the framer into every state, and stray bytes in between.
PIECES = st.one_of(
    st.sampled_from(
        [b"\n", b"\r\n", b"\r", b" ", b"{", b"}", b"[", b":", b"x" * 20, PING, framed(PING), b"Content-Length: 3\r\n",
         b"Content-Length: x\n", b"content-length:12\n\n", b"A: 1\n", b"A: 1\n" * 33, b"\xef\xbb\xbf", b"Content-Length"]
    ),
    st.binary(max_size=6),
)  # fmt: skip


@given(st.lists(PIECES, max_size=20).map(b"".join), st.lists(st.integers(0, 400), max_size=20))
def test_any_bytes_in_any_chunking_give_the_same_outcomes_and_the_same_mode(wire: bytes, cuts: list[int]) -> None:
    marks = [0, *sorted(cuts), len(wire)]
    chunks = [wire[start:end] for start, end in itertools.pairwise(marks)]
    whole, cut, bytewise = StdioFramer(20), StdioFramer(20), StdioFramer(20)
    outcomes = feed(whole, [wire])
    assert feed(cut, chunks) == outcomes
    assert feed(bytewise, single_bytes(wire)) == outcomes
    assert whole.is_line_mode == cut.is_line_mode == bytewise.is_line_mode


@given(st.lists(st.binary(max_size=LIMIT)), st.booleans())
def test_framed_bodies_are_read_back_unchanged(bodies: list[bytes], line_mode: bool) -> None:
    if line_mode:
        bodies = [b'{"x":"%b"}' % body.hex().encode() for body in bodies]
    writer = StdioFramer(LIMIT, line_mode=line_mode)
    reader = StdioFramer(1000)
    assert feed(reader, [b"".join(map(writer.frame, bodies))]) == bodies
