"""All that a test can ask the stand-in for in a question: the keys that ship, and the faults.

The names of the faults are lists here and tables where they are played: `bodies.py`, `streams.py`, `odd_answers.py`.
"""

import json
import re
from dataclasses import dataclass
from typing import Any

from openai_responses_mcp.rehearsal.markers import (
    KEYS,
    OUTCOMES,
    SECONDS,
    TEXT,
    YES_OR_NO,
    Key,
    Wishes,
    one_of,
    read_markers,
    whole_number,
)

BODIES = (
    "truncated", "empty", "null", "list", "string", "html", "bad-utf8", "huge", "drip", "not-json", "wrong-shape",
    "wrong-output", "wrong-item", "wrong-content", "wrong-text", "wrong-annotations", "wrong-usage", "wrong-id",
    "wrong-model", "wrong-status", "wrong-sources",
)  # fmt: skip
STREAMS = (
    "cut", "cut-in-event", "bad-json", "bad-utf8", "never", "twice", "error-event", "drip", "garbage-event",
    "non-object", "done-without-completed", "empty",
)  # fmt: skip
DROPS = ("before", "mid", "reset")
ODD_OUTCOMES = ("incomplete-empty", "unknown-item", "commentary")
SOURCES = ("none", "api", "url", "dated")

# In a list of statuses: the request is answered as ever, or its connection closed without a word.
WORKS = 200
NO_REPLY = 0

_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_CUT = re.compile(r"(after|in|end) (\d+)|none")
_MAX_SIZE_BYTES = 256 * 1024 * 1024
_MAX_EVENTS = 1_000_000


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of one of the client's functions that the answer shall ask for."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a stream stops: broken off after an event or in the middle of it, or ended after it as if it were the last."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class Directives(Wishes):
    """The keys of all markers of one question; a field nobody set is None."""

    code: str | None = None
    message: str | None = None
    retry_after: str | None = None
    body: str | None = None
    stream: str | None = None
    drop: str | None = None
    redirect: str | None = None
    size: int | None = None
    sources: str | None = None
    slow_stream: float | None = None
    header: tuple[str, str] | None = None
    background: bool | None = None
    queue: float | None = None
    cuts: tuple[Cut | None, ...] = ()
    get_status: tuple[int, ...] = ()
    cancel_status: tuple[int, ...] = ()
    hang_after: int | None = None
    cancelled_after: int | None = None
    expires: int | None = None
    too_old: bool | None = None
    calls: tuple[FunctionCall, ...] = ()

    def without_trouble(self) -> "Directives":
        """Only what shapes a good answer."""
        return Directives(
            text=self.text,
            search=self.search,
            citations=self.citations,
            size=self.size,
            sources=self.sources,
            calls=self.calls,
        )


def read_directives(text: str) -> tuple[str, Directives]:
    """The question without its markers, and what they ask for; each `call` is one function call."""
    plain, markers = read_markers(text, ALL_KEYS)
    values: dict[str, Any] = {}
    calls = []
    for marker in markers:
        name, arguments = marker.pop("call", None), marker.pop("args", "{}")
        calls += [FunctionCall(name, arguments)] if name is not None else []
        values |= marker
    return plain, Directives(**values, calls=tuple(calls))


def _cuts(value: str) -> tuple[Cut | None, ...]:
    found = [_CUT.fullmatch(item.strip()) for item in value.split(",")]
    if None in found:
        raise ValueError(value)
    return tuple(Cut(cut[1], int(cut[2])) if cut[1] else None for cut in found if cut)


def _statuses(value: str) -> tuple[int, ...]:
    statuses = tuple(int(item) for item in value.split(","))
    if not all(status in (WORKS, NO_REPLY) or 400 <= status <= 599 for status in statuses):
        raise ValueError(value)
    return statuses


def _json_text(text: str) -> str:
    try:
        json.loads(text)
    except RecursionError as exc:
        raise ValueError(text) from exc
    return text


def _header_value(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError(value)
    return value


def _header(value: str) -> tuple[str, str]:
    name, colon, content = value.partition(":")
    if not colon or not _HEADER_NAME.fullmatch(name):
        raise ValueError(value)
    return name.lower(), _header_value(content.strip())


_STATUSES = Key(_statuses, "a list of statuses from 400 to 599, of 200 and 0")
_EVENT_NUMBER = whole_number(0, _MAX_EVENTS)

_BACKGROUND_KEYS: dict[str, Key] = {
    "background": YES_OR_NO,  # no: as an API that does not know the parameter
    "queue": SECONDS,
    "cuts": Key(_cuts, "a list of 'after N', 'in N', 'end N' and 'none'"),
    "get_status": _STATUSES,
    "cancel_status": _STATUSES,
    "hang_after": _EVENT_NUMBER,
    "cancelled_after": _EVENT_NUMBER,
    "expires": whole_number(0, _MAX_EVENTS),  # the number of GETs that find it
    "too_old": YES_OR_NO,  # yes: for streams, not for single GETs
}

ALL_KEYS: dict[str, Key] = (
    KEYS
    | _BACKGROUND_KEYS
    | {
        "code": Key(str, "text"),
        "message": TEXT,
        "retry_after": Key(_header_value, "printable ASCII"),
        "body": one_of(*BODIES),
        "stream": one_of(*STREAMS),
        "drop": one_of(*DROPS),
        "redirect": Key(_header_value, "a URL in printable ASCII"),
        "outcome": one_of(*OUTCOMES, *ODD_OUTCOMES),
        "size": whole_number(0, _MAX_SIZE_BYTES),
        "sources": one_of(*SOURCES),
        "slow_stream": SECONDS,
        "header": Key(_header, "'Name: value' in printable ASCII"),
        "call": Key(str, "text"),
        "args": Key(_json_text, "JSON"),
    }
)
