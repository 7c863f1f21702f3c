"""The body of a reply into JSON objects, one for each event; no I/O.

Asked for a stream, most APIs send events and some a single JSON object. Which of the two it is shows in its first byte;
the content type decides where that byte is not telling. A single object comes out as the event that would have ended a
stream.

Nearly all events of a stream bring a word of the answer each, and the event that ends the answer has all of them. Where
the words are not read as they come, they are not decoded: several that came together become one event.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

from pydantic_core import from_json

LONGEST_REPLY_BYTES = 32 * 1024 * 1024
# The longest event, or reply that is a single object. No model writes as much, and decoding it takes no
# noticeable time.
LONGEST_OBJECT_BYTES = 2 * 1024 * 1024
# In one event or reply. They are what takes long to decode, not the text in them.
MOST_BRACKETS = 50_000
COMPLETED = "response.completed"

_WORDS: dict[str, Any] = {"type": "response.output_text.delta"}
# Those that bring a word, and those that say the same words again at the end of a part.
_IS_WORDS = re.compile(rb'\{\s*"type"\s*:\s*"response\.(?:output_text|content_part)\.')
_FIRST_BYTES_OF_EVENTS = b"edir:"  # of event, data, id, retry and of comments


class BodyTooLong(ValueError):
    """The API sends more than any answer can be."""

    def __init__(self, limit: int, what: str) -> None:
        super().__init__(f"more than {limit // (1024 * 1024)} MiB in {what}")


class ReplyReader:
    """Raises ValueError or RecursionError for what cannot be read."""

    def __init__(self, content_type: str, *, skips_words: bool = False) -> None:
        self._skips_words = skips_words
        self._is_declared = content_type.lower().startswith("text/event-stream")
        self._is_stream: bool | None = None
        self._events = StreamedEvents()
        self._pieces: list[bytes] = []
        self._count = 0
        self._since_last_event = 0
        self._has_events = False
        self.has_ended = False

    def receive(self, data: bytes) -> Iterator[dict[str, Any]]:
        self._count += len(data)
        self._since_last_event += len(data)
        if self._count > LONGEST_REPLY_BYTES:
            raise BodyTooLong(LONGEST_REPLY_BYTES, "a reply")
        if self._is_stream is None:
            data = data.lstrip()
            if not data:
                return
            self._is_stream = self._looks_like_events(data)
        if not self._is_stream:
            self._pieces.append(data)
            self._refuse_long_object()
            return
        has_words = False
        for event in self._events.receive(data):
            self._has_events = True
            self._since_last_event = 0
            if len(event) > LONGEST_OBJECT_BYTES:
                raise BodyTooLong(LONGEST_OBJECT_BYTES, "one event")
            if event.startswith(b"[DONE]"):
                self.has_ended = True
                return
            if not (self._skips_words and _is_words(event)):
                yield _object_in(event)
            elif not has_words:
                has_words = True
                yield _WORDS
        self._refuse_long_object()

    def end(self) -> Iterator[dict[str, Any]]:
        """The object that is complete only at the end of the body."""
        if self._pieces or not (self._is_stream or self._is_declared):
            yield {"type": COMPLETED, "response": _parsed(b"".join(self._pieces))}
        elif not (self._has_events or self._is_declared):
            raise ValueError("neither JSON nor a stream of events")

    def _refuse_long_object(self) -> None:
        if self._since_last_event > LONGEST_OBJECT_BYTES:
            raise BodyTooLong(LONGEST_OBJECT_BYTES, "one event" if self._is_stream else "one object")

    def _looks_like_events(self, data: bytes) -> bool:
        if data[0] in _FIRST_BYTES_OF_EVENTS:
            return True
        return self._is_declared and not data.startswith(b"{")


def _is_words(event: bytes) -> bool:
    """Its beginning says so. Its end says whether it was cut. Raises as `ReplyReader` for what is no text."""
    return _IS_WORDS.match(event) is not None and event.endswith(b"}") and bool(event.decode())


def _object_in(event: bytes) -> dict[str, Any]:
    value = _parsed(event)
    if not isinstance(value, dict):
        raise ValueError("a stream event is no object")
    return value


def _parsed(content: bytes) -> object:
    """With `from_json`, which is quicker. `json` also takes what that refuses, such as half a surrogate pair."""
    if content.count(b"[") + content.count(b"{") > MOST_BRACKETS:
        raise ValueError(f"more than {MOST_BRACKETS} lists and objects in one reply")
    try:
        return from_json(content, cache_strings="keys")  # No words of an answer are kept.
    except ValueError:
        return json.loads(content.decode("utf-8"))


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"


class StreamedEvents:
    """Server-sent events out of bytes, in any chunks, without I/O: the data of the events that are complete.

    Lines end with LF, CR or CRLF. Names, ids and comments are passed over: what an event of the API is stands in its
    data. An event that is not ended by an empty line never comes out. Time is linear in the bytes; their number is for
    the caller to bound.
    """

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
