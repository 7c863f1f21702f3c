"""Instructions of a test to the stand-in: `[rehearse: key=value; key=value]` anywhere in a question.

Pairs are split on `;` (write `\\;` for a literal one), key from value at the first `=`; brackets inside a value must be
balanced. Several markers add up. The names of faults are in the tables of `bodies.py`, `streams.py` and
`odd_answers.py`.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openai_responses_mcp.rehearsal.wire import ApiError

# In a list of statuses: the usual reply, or the connection closed without one.
WORKS = 200
NO_REPLY = 0

_OPENING = re.compile(r"\[rehearse:", re.IGNORECASE)
_BRACKET = re.compile(r"[\[\]]")
_SEMICOLON = re.compile(r"(?<!\\);")
_CUT = re.compile(r"(after|in|end) (\d+)|none")


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of one of the client's functions, made by the answer."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Cut:
    """Where a stream stops: cut after an event or in the middle of it, or ended after it as if it were the last."""

    kind: str
    number: int


@dataclass(frozen=True, slots=True)
class Directives:
    """The keys of all markers of one question; a field that is not set is None."""

    status: int | None = None
    times: int | None = None
    delay: float | None = None
    outcome: str | None = None
    text: str | None = None
    search: bool | None = None
    citations: int | None = None
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
        """Only the keys of a good answer."""
        return Directives(
            text=self.text,
            search=self.search,
            citations=self.citations,
            size=self.size,
            sources=self.sources,
            calls=self.calls,
        )


def read_directives(text: str) -> tuple[str, Directives]:
    """The question without its markers, and their keys; each `call` is one function call.

    Raises `ApiError` for an unknown key.
    """
    plain, contents = _cut_out_markers(text)
    if not contents:
        return text, Directives()
    values: dict[str, Any] = {}
    calls = []
    for content in contents:
        marker = {}
        for pair in filter(str.strip, _SEMICOLON.split(content)):
            name, _, value = map(str.strip, pair.partition("="))
            if name not in _KEYS:
                raise ApiError(400, f"Unknown key of the stand-in: {name}")
            marker[name] = _KEYS[name](value.replace("\\;", ";"))
        name, arguments = marker.pop("call", None), marker.pop("args", "{}")
        calls += [FunctionCall(name, arguments)] if name is not None else []
        values |= marker
    return plain, Directives(**values, calls=tuple(calls))


def _cut_out_markers(text: str) -> tuple[str, list[str]]:
    plain, contents, position = "", [], 0
    while opening := _OPENING.search(text, position):
        end = _closing_bracket(text, opening.end())
        plain += text[position : opening.start()]
        contents.append(text[opening.end() : end])
        position = end + 1
    return (plain + text[position:]).strip(), contents


def _closing_bracket(text: str, position: int) -> int:
    depth = 1
    for bracket in _BRACKET.finditer(text, position):
        depth += 1 if bracket.group() == "[" else -1
        if depth == 0:
            return bracket.start()
    raise ApiError(400, "A [rehearse: …] marker has no closing bracket.")


def _cuts(value: str) -> tuple[Cut | None, ...]:
    found = [_CUT.fullmatch(item.strip()) for item in value.split(",")]
    assert None not in found, value
    return tuple(Cut(cut[1], int(cut[2])) if cut[1] else None for cut in found if cut)


def _statuses(value: str) -> tuple[int, ...]:
    return tuple(map(int, value.split(",")))


def _lines(value: str) -> str:
    return value.replace("\\n", "\n")


def _yes_or_no(value: str) -> bool:
    return {"yes": True, "no": False}[value]


def _header(value: str) -> tuple[str, str]:
    name, _, content = value.partition(":")
    return name.lower(), content.strip()


_KEYS: dict[str, Callable[[str], Any]] = {
    "status": int,
    "times": int,
    "delay": float,
    "text": _lines,
    "search": _yes_or_no,
    "citations": int,
    "code": str,
    "message": _lines,
    "retry_after": str,
    "body": str,
    "stream": str,
    "drop": str,
    "redirect": str,
    "outcome": str,
    "size": int,
    "sources": str,
    "slow_stream": float,
    "header": _header,
    "call": str,
    "args": str,
    "background": _yes_or_no,  # no: like an API that does not know the parameter
    "queue": float,
    "cuts": _cuts,
    "get_status": _statuses,
    "cancel_status": _statuses,
    "hang_after": int,
    "cancelled_after": int,
    "expires": int,  # the number of GETs that still find the response
    "too_old": _yes_or_no,  # yes: too old for streams, not for single GETs
}
