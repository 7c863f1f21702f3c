"""Server-sent events, read without I/O: bytes in, whole events out.

As the HTML standard has them: a line ends with CR, LF or both, an empty line ends the event, several `data` lines are
joined. An event larger than the limit is dropped to its end and reported, so that the stream can go on behind it.
"""

import re
from collections.abc import Iterator
from typing import NamedTuple

_LINE_END = re.compile(rb"\r\n|\n|\r")
_MARK = b"\xef\xbb\xbf"
_LONGEST_OTHER_FIELD = 4096


class ServerEvent(NamedTuple):
    """`data` is None where the event was larger than the limit."""

    data: bytes | None


class EventReader:
    """`last_id` and `retry_seconds` are what the server said last; empty and None before that."""

    def __init__(self, longest_bytes: int) -> None:
        self.last_id = ""
        self.retry_seconds: float | None = None
        self._longest = longest_bytes
        self._rest = bytearray()
        self._searched = 0
        self._is_first = True
        self._ended_with_cr = False
        self._is_skipping_line = False
        self._data: list[bytes] = []
        self._size = 0
        self._is_too_large = False
        self._kind = b""

    def feed(self, chunk: bytes) -> list[ServerEvent]:
        return [event for line in self._lines(chunk) if (event := self._after(line)) is not None]

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        if chunk:
            if self._ended_with_cr and chunk.startswith(b"\n"):
                chunk = chunk[1:]
            self._ended_with_cr = chunk.endswith(b"\r")
        self._rest += chunk
        start = 0
        while end := _LINE_END.search(self._rest, max(start, self._searched)):
            line, start = bytes(self._rest[start : end.start()]), end.end()
            if self._is_skipping_line:
                self._is_skipping_line = False
                continue
            if self._is_first:
                self._is_first, line = False, line.removeprefix(_MARK)
            yield line
        del self._rest[:start]
        self._searched = len(self._rest)
        if self._searched > self._longest + _LONGEST_OTHER_FIELD or self._is_skipping_line:
            self._is_too_large = self._is_skipping_line = True
            self._rest.clear()
            self._searched = 0

    def _after(self, line: bytes) -> ServerEvent | None:
        if not line:
            return self._end_of_event()
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._size += len(value) + 1
            if self._size > self._longest + 1:
                self._is_too_large = True
            if self._is_too_large:
                self._data.clear()
            else:
                self._data.append(value)
        elif name == b"event":
            self._kind = value
        elif name == b"id" and b"\0" not in value and len(value) <= _LONGEST_OTHER_FIELD:
            self.last_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_seconds = int(value) / 1000
        return None

    def _end_of_event(self) -> ServerEvent | None:
        data, kind, is_too_large = b"\n".join(self._data), self._kind, self._is_too_large
        self._data, self._size, self._is_too_large, self._kind = [], 0, False, b""
        if is_too_large:
            return ServerEvent(None)
        # An event without data only says where the stream can be resumed.
        return ServerEvent(data) if data and kind in (b"", b"message") else None
