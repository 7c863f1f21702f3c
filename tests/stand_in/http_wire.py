"""HTTP/1.1 requests out of bytes, and reply heads into bytes; no I/O.

Bytes go in with `receive()`, one request or `None` ("need more") comes out of `maybe_next_request()`. Heads and bodies
are bounded. What cannot be understood raises `BadRequest`, after which the connection is of no more use.
"""

import json
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from http import HTTPStatus
from typing import Any

MAX_HEAD_BYTES = 64 * 1024
MAX_BODY_BYTES = 32 * 1024 * 1024

_REQUEST_LINE = re.compile(r"([A-Z]{1,20}) (\S+) HTTP/(\d\.\d)")
_ABSOLUTE_FORM = re.compile(r"https?://[^/?]*")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}


class BadRequest(Exception):
    """The bytes are not a request this server takes."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.message = message


@dataclass(frozen=True, slots=True)
class RecordedRequest:
    """One request as it came over the wire; header names are lower-case, the path is without its query."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""
    target: str = ""

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def is_last(self) -> bool:
        return self.headers.get("connection", "").lower() == "close"


class Ending(Enum):
    """What becomes of the connection once the body was sent."""

    KEEP = "keep"
    CUT = "cut"
    HANG_UP = "hang up"
    RESET = "reset"


@dataclass(frozen=True, slots=True)
class Reply:
    """Bytes are sent with their length, an iterator in chunks.

    With `CUT` the connection closes before the body is complete, with `HANG_UP` and `RESET` before anything is sent.
    """

    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | AsyncIterator[bytes] = b""
    declared_length: int | None = None
    ending: Ending = Ending.KEEP


class RequestReader:
    """Collects the bytes of one connection and cuts requests out of them."""

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._searched = 0
        self._head: RecordedRequest | None = None
        self._body_length = 0

    @property
    def buffered(self) -> int:
        return len(self._buffer)

    def receive(self, data: bytes) -> None:
        self._buffer += data

    def maybe_next_request(self) -> RecordedRequest | None:
        if self._head is None and not self._read_head():
            return None
        if self._head is None or len(self._buffer) < self._body_length:
            return None
        head, self._head = self._head, None
        body = bytes(self._buffer[: self._body_length])
        del self._buffer[: self._body_length]
        return RecordedRequest(head.method, head.path, head.headers, body, head.target)

    def _read_head(self) -> bool:
        # A TLS greeting has no line end to wait for; answering at once spares its sender a timeout.
        if self._buffer and not chr(self._buffer[0]).isupper():
            raise BadRequest(400, "This is not an HTTP request.")
        end = self._buffer.find(b"\r\n\r\n", self._searched)
        if max(end, len(self._buffer) if end < 0 else 0) > MAX_HEAD_BYTES:
            raise BadRequest(431, "The request head is too large.")
        if end < 0:
            self._searched = max(0, len(self._buffer) - 3)
            return False
        text = self._buffer[:end].decode("latin-1")
        del self._buffer[: end + 4]
        self._searched = 0
        self._head = _parse_head(text)
        self._body_length = _body_length(self._head.headers)
        return True


def _parse_head(text: str) -> RecordedRequest:
    first, *rest = text.split("\r\n")
    line = _REQUEST_LINE.fullmatch(first)
    if line is None:
        raise BadRequest(400, "The request line is malformed.")
    method, target, version = line.groups()
    if version != "1.1":
        raise BadRequest(505, "Only HTTP/1.1 is spoken here.")
    headers = {}
    for entry in rest:
        name, colon, value = entry.partition(":")
        if not colon or not name or name != name.strip():
            raise BadRequest(400, "A header line is malformed.")
        headers[name.lower()] = value.strip()
    # Clients that take this server for a proxy send the whole URL.
    path = _ABSOLUTE_FORM.sub("", target, count=1) if target.startswith("http") else target
    return RecordedRequest(method, path.partition("?")[0] or "/", headers, target=target)


def _body_length(headers: Mapping[str, str]) -> int:
    if "transfer-encoding" in headers:
        raise BadRequest(411, "Send the body with a Content-Length.")
    text = headers.get("content-length", "0")
    if not (text.isascii() and text.isdigit()):
        raise BadRequest(400, "The Content-Length is not a number.")
    # The digits are counted first: converting thousands of them takes long or fails.
    if len(text) > 18 or int(text) > MAX_BODY_BYTES:
        raise BadRequest(413, "The request body is too large.")
    return int(text)


def render_head(reply: Reply, *, is_last: bool) -> bytes:
    lines = [f"HTTP/1.1 {reply.status} {_PHRASES.get(reply.status, 'Unknown')}"]
    lines += [f"{name}: {value}" for name, value in reply.headers.items()]
    if isinstance(reply.body, bytes):
        length = len(reply.body) if reply.declared_length is None else reply.declared_length
        lines.append(f"content-length: {length}")
    else:
        lines.append("transfer-encoding: chunked")
    if is_last:
        lines.append("connection: close")
    return "\r\n".join([*lines, "", ""]).encode("latin-1")


def render_chunk(data: bytes) -> bytes:
    return b"%x\r\n%b\r\n" % (len(data), data)
