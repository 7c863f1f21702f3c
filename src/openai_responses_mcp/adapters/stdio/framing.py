"""Bytes to message bodies and back, without I/O.

`receive()` takes bytes in any chunks. `next_message()` returns one body, one fault, or None for "need more". Each state
is a method that returns an outcome, goes to another state, or needs more bytes. A message starts with a line that looks
like a header, or it is itself a line of JSON.

After a faulty header block the length of the body is unknown, and the next header may follow it on the same line. The
framer is then lost: until it finds a whole message, it drops each line that cannot be one, or only the part before a
`Content-Length:` in it.
"""

import re
from collections.abc import Callable
from enum import Enum

from openai_responses_mcp.domain.ports import FramingFault

LONGEST_HEADER_BYTES = 8 * 1024
MOST_HEADER_LINES = 32

_BOM = b"\xef\xbb\xbf"
_BLANKS = re.compile(rb"[ \t\r\n]*")
_EMPTY_LINE = re.compile(rb"[ \t\r]*\n")
_HEADER = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]+[ \t]*:")
_UNDECIDED = re.compile(rb"[!#$%&'*+.^_`|~0-9A-Za-z-]*[ \t\r]*")
_LENGTH = re.compile(rb"[0-9]{1,12}")
_GLUED_HEADER = re.compile(rb"content-length[ \t]*:", re.IGNORECASE)
_OPENERS, _CLOSERS = (b"{", b"["), (b"}", b"]")


class _Step(Enum):
    GO_ON = 1
    NEED_MORE = 2


class _Line(Enum):
    """What a line is, judged by its first bytes."""

    EMPTY = 1
    HEADER = 2
    OTHER = 3
    UNDECIDED = 4


_State = Callable[[], bytes | FramingFault | _Step]


class StdioFramer:
    def __init__(self, max_message_bytes: int, *, line_mode: bool = False) -> None:
        self._max_bytes = max_message_bytes
        self._line_mode = line_mode
        self._buffer = bytearray()
        self._searched = 0
        self._state: _State = self._at_beginning
        self._state_after_line: _State = self._at_boundary
        self._lengths: list[bytes] = []
        self._header_lines = 0
        self._header_bytes = 0
        self._body_bytes = 0
        self._is_lost = False
        self._has_ended = False

    @property
    def is_line_mode(self) -> bool:
        """True once messages are lines. It never becomes false again."""
        return self._line_mode

    def receive(self, data: bytes) -> None:
        self._buffer += data

    def receive_end(self) -> None:
        """The end of input: a last line needs no newline, anything else unfinished is dropped."""
        self._has_ended = True

    def next_message(self) -> bytes | FramingFault | None:
        while (outcome := self._state()) is _Step.GO_ON:
            pass
        return None if isinstance(outcome, _Step) else outcome

    def frame(self, body: bytes) -> bytes:
        if self._line_mode:
            return body + b"\n"
        return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)

    def _at_beginning(self) -> bytes | FramingFault | _Step:
        if len(self._buffer) < len(_BOM) and _BOM.startswith(self._buffer) and not self._has_ended:
            return _Step.NEED_MORE
        if self._buffer.startswith(_BOM):
            self._drop(len(_BOM))
        return self._go(self._at_boundary)

    def _at_boundary(self) -> bytes | FramingFault | _Step:
        blanks = _BLANKS.match(self._buffer)
        self._drop(blanks.end() if blanks else 0)
        if not self._buffer:
            return _Step.NEED_MORE
        kind = self._line_kind(LONGEST_HEADER_BYTES)
        if kind is _Line.HEADER:
            self._lengths, self._header_lines, self._header_bytes = [], 0, 0
            return self._go(self._in_headers)
        is_undecided = kind is _Line.UNDECIDED and not self._has_ended
        return _Step.NEED_MORE if is_undecided else self._go(self._in_line)

    def _in_line(self) -> bytes | FramingFault | _Step:
        end = self._line_end()
        if end is None:
            return self._fail_line() if len(self._buffer) > self._max_bytes + len(b"\r") else _Step.NEED_MORE
        line = self._line_up_to(end)
        if len(line) > self._max_bytes:
            return self._fail_line()
        looks_whole = line.startswith(_OPENERS) and line.rstrip().endswith(_CLOSERS)
        if self._is_lost and not looks_whole:
            # From the second byte on: a header at the start of the line would already have been recognised.
            self._drop(max((glued.start() for glued in _GLUED_HEADER.finditer(line, 1)), default=end))
            return self._go(self._at_boundary)
        self._drop(end)
        self._line_mode |= line.startswith(_OPENERS)
        return self._found(line)

    def _in_headers(self) -> bytes | FramingFault | _Step:
        kind = self._line_kind(LONGEST_HEADER_BYTES)
        if kind is _Line.UNDECIDED:
            return _Step.NEED_MORE
        if kind is _Line.EMPTY:
            self._drop(self._buffer.index(b"\n") + 1)
            return self._after_headers()
        if kind is _Line.OTHER:
            return self._lose_track("a line in the header block is not a header")
        room = LONGEST_HEADER_BYTES - self._header_bytes
        end = self._line_end(needs_newline=True)
        if end is None and len(self._buffer) <= room:
            return _Step.NEED_MORE
        if end is None or end > room or self._header_lines == MOST_HEADER_LINES:
            return self._fail_headers()
        self._take_header(self._line_up_to(end))
        self._header_lines += 1
        self._header_bytes += end
        self._drop(end)
        return _Step.GO_ON

    def _take_header(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        if name.strip().lower() == b"content-length":
            self._lengths.append(value.strip(b" \t"))

    def _after_headers(self) -> FramingFault | _Step:
        if not self._lengths:
            return self._lose_track("Content-Length is missing")
        if len(self._lengths) > 1:
            return self._lose_track("Content-Length is given more than once")
        if not _LENGTH.fullmatch(self._lengths[0]):
            return self._lose_track("Content-Length must be 1 to 12 digits")
        self._body_bytes = int(self._lengths[0])
        if self._body_bytes > self._max_bytes:
            return self._fail(f"the message is longer than {self._max_bytes} bytes", self._skipping_body)
        return self._go(self._in_body)

    def _in_body(self) -> bytes | FramingFault | _Step:
        if len(self._buffer) < self._body_bytes:
            return _Step.NEED_MORE
        body = bytes(memoryview(self._buffer)[: self._body_bytes])
        self._drop(self._body_bytes)
        return self._found(body)

    def _skipping_body(self) -> bytes | FramingFault | _Step:
        skipped = min(self._body_bytes, len(self._buffer))
        self._drop(skipped)
        self._body_bytes -= skipped
        return _Step.NEED_MORE if self._body_bytes else self._go(self._at_boundary)

    def _skipping_line(self) -> bytes | FramingFault | _Step:
        end = self._buffer.find(b"\n") + 1
        self._drop(end or len(self._buffer))
        return self._go(self._state_after_line) if end else _Step.NEED_MORE

    def _skipping_headers(self) -> bytes | FramingFault | _Step:
        """Skip a header block that is too long. It ends at an empty line or a line that is not a header."""
        kind = self._line_kind(LONGEST_HEADER_BYTES)
        if kind is _Line.UNDECIDED:
            return _Step.NEED_MORE
        if kind is not _Line.HEADER:
            return self._go(self._at_boundary)
        self._state_after_line = self._skipping_headers
        return self._go(self._skipping_line)

    def _line_kind(self, within: int) -> _Line:
        """Looks at the first bytes only, so the result does not depend on how many have arrived."""
        if _EMPTY_LINE.match(self._buffer, 0, within):
            return _Line.EMPTY
        if _HEADER.match(self._buffer, 0, within):
            return _Line.HEADER
        is_all = len(self._buffer) <= within
        return _Line.UNDECIDED if is_all and _UNDECIDED.fullmatch(self._buffer) else _Line.OTHER

    def _line_end(self, *, needs_newline: bool = False) -> int | None:
        """Where the next line begins; None until all of this line has arrived."""
        end = self._buffer.find(b"\n", self._searched) + 1
        if not end and self._has_ended and self._buffer and not needs_newline:
            return len(self._buffer)
        self._searched = len(self._buffer)
        return end or None

    def _line_up_to(self, end: int) -> bytes:
        end -= self._buffer.endswith(b"\n", 0, end)
        end -= self._buffer.endswith(b"\r", 0, end)
        return bytes(memoryview(self._buffer)[:end])

    def _drop(self, count: int) -> None:
        del self._buffer[:count]
        self._searched = 0

    def _go(self, state: _State) -> _Step:
        self._state = state
        self._searched = 0
        return _Step.GO_ON

    def _found(self, body: bytes) -> bytes:
        self._is_lost = False
        self._state = self._at_boundary
        return body

    def _fail(self, reason: str, state: _State) -> FramingFault:
        self._go(state)
        return FramingFault(reason)

    def _fail_line(self) -> FramingFault:
        self._state_after_line = self._at_boundary
        return self._fail(f"the line is longer than {self._max_bytes} bytes", self._skipping_line)

    def _fail_headers(self) -> FramingFault:
        self._is_lost = True
        self._state_after_line = self._skipping_headers
        limits = f"{LONGEST_HEADER_BYTES} bytes or {MOST_HEADER_LINES} lines"
        return self._fail(f"the header block is longer than {limits}", self._skipping_line)

    def _lose_track(self, reason: str) -> FramingFault:
        self._is_lost = True
        return self._fail(reason, self._at_boundary)
