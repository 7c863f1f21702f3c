"""Server-sent events from bytes in any chunks, without I/O. Read as in the HTML standard.

A line ends with CR, LF or both, an empty line ends the event, several `data` lines are joined. An event over the limit is
skipped and reported, and reading goes on after it.
"""

from collections.abc import Collection, Iterator

_BOM = b"\xef\xbb\xbf"
_LONGEST_OTHER_FIELD = 4096


class EventReader:
    """Gives events with one of these names, or all without `names`. An event without a name is called message.

    `last_id` and `retry_seconds` are the latest that the server sent; empty and None before that.
    """

    def __init__(self, longest_bytes: int, names: Collection[bytes] = ()) -> None:
        self.last_id = ""
        self.retry_seconds: float | None = None
        self._longest = longest_bytes
        self._names = names
        self._line: list[bytes] = []  # pieces of the current line
        self._line_bytes = 0
        self._is_first_line = True
        self._ended_with_cr = False
        self._is_skipping_line = False
        self._data: list[bytes] = []  # data lines of the current event
        self._data_bytes = 0
        self._is_too_large = False
        self._name = b""

    def feed(self, chunk: bytes) -> list[bytes | None]:
        """The data of each complete event; None for an event over the limit."""
        ended: list[bytes | None] = []
        for line in self._lines(chunk):
            if line:
                self._take(line)
                continue
            data, is_wanted = b"\n".join(self._data), not self._names or (self._name or b"message") in self._names
            if self._is_too_large:
                ended.append(None)
            elif data and is_wanted:  # An event without data only says where the stream can be resumed.
                ended.append(data)
            self._data, self._data_bytes, self._is_too_large, self._name = [], 0, False, b""
        return ended

    def _lines(self, chunk: bytes) -> Iterator[bytes]:
        if self._ended_with_cr and chunk:
            chunk = chunk.removeprefix(b"\n")  # A CRLF in two chunks is one line end.
            self._ended_with_cr = False
        if not chunk:
            return
        self._ended_with_cr = chunk.endswith(b"\r")
        lines = chunk.splitlines()
        rest = b"" if chunk.endswith((b"\r", b"\n")) else lines.pop()
        for line in lines:
            whole = b"".join([*self._line, line])
            self._line, self._line_bytes = [], 0
            if self._is_skipping_line:
                self._is_skipping_line = False
                continue
            if self._is_first_line:
                self._is_first_line, whole = False, whole.removeprefix(_BOM)
            yield whole
        self._line.append(rest)
        self._line_bytes += len(rest)
        if self._line_bytes > self._longest + _LONGEST_OTHER_FIELD or self._is_skipping_line:
            self._is_too_large = self._is_skipping_line = True
            self._line, self._line_bytes = [], 0

    def _take(self, line: bytes) -> None:
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data_bytes += len(value) + 1
            if self._data_bytes > self._longest + 1:
                self._is_too_large = True
            if self._is_too_large:
                self._data.clear()
            else:
                self._data.append(value)
        elif name == b"event":
            self._name = value
        elif name == b"id" and b"\0" not in value and len(value) <= _LONGEST_OTHER_FIELD:
            self.last_id = value.decode("utf-8", "replace")
        elif name == b"retry" and value.isdigit() and len(value) < 10:
            self.retry_seconds = int(value) / 1000
