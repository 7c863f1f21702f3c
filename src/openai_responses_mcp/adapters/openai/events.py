"""Server-sent events out of bytes; no I/O.

Bytes go in with `receive()`, in any chunks; out come the data of the events that are complete. Lines end with LF, CR or
CRLF. Names, ids and comments are passed over: what an event of the API is stands in its data. An event that is not
ended by an empty line never comes out. Time is linear in the bytes; their number is for the caller to bound.
"""

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class EventReader:
    def __init__(self) -> None:
        self._line: list[bytes] = []  # the pieces of a line whose end has not come yet
        self._data: list[bytes] = []  # the data lines of an event whose end has not come yet
        self._ends_with_return = False
        self._is_first_line = True

    def receive(self, data: bytes) -> list[bytes]:
        events = []
        for line in self._lines(data):
            if line.startswith(b"data:"):
                self._data.append(line[5:].removeprefix(b" "))
            elif not line and self._data:
                events.append(b"\n".join(self._data))
                self._data = []
        return [event for event in events if event]

    def _lines(self, data: bytes) -> list[bytes]:
        if self._ends_with_return and data:
            data = data.removeprefix(b"\n")  # A CRLF that came in two chunks is one line end.
            self._ends_with_return = False
        if not data:
            return []
        self._ends_with_return = data.endswith(b"\r")
        lines = data.splitlines()
        rest = [] if data.endswith((b"\r", b"\n")) else [lines.pop()]
        if not lines:
            self._line += rest
            return []
        lines[0] = b"".join([*self._line, lines[0]])
        self._line = rest
        if self._is_first_line:
            self._is_first_line = False
            lines[0] = lines[0].removeprefix(_BYTE_ORDER_MARK)
        return lines
