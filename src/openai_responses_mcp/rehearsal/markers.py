"""What a question asks the stand-in to do: `[rehearse: key=value; key=value]` anywhere in its text.

Pairs are split on `;` (write `\\;` for a literal one), key from value at the first `=`; brackets inside a value must be
balanced. Several markers add up; each `call` is one function call.
"""

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from openai_responses_mcp.rehearsal.api_errors import ApiError

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
OUTCOMES = (
    "refusal", "incomplete", "incomplete-empty", "failed", "no-text", "unknown-item", "commentary",
)  # fmt: skip
SOURCES = ("none", "api", "url", "dated")

_OPENING = re.compile(r"\[rehearse:", re.IGNORECASE)
_BRACKET = re.compile(r"[\[\]]")
_SEMICOLON = re.compile(r"(?<!\\);")
_HEADER_NAME = re.compile(r"[A-Za-z0-9-]+")
_MAX_SIZE_BYTES = 256 * 1024 * 1024
_MAX_CITATIONS = 1000


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call of one of the client's functions that the answer shall ask for."""

    name: str
    arguments: str


@dataclass(frozen=True, slots=True)
class Directives:
    """The keys of all markers of one question; a field nobody set is None."""

    status: int | None = None
    code: str | None = None
    message: str | None = None
    retry_after: str | None = None
    times: int | None = None
    delay: float | None = None
    body: str | None = None
    stream: str | None = None
    drop: str | None = None
    redirect: str | None = None
    outcome: str | None = None
    size: int | None = None
    search: bool | None = None
    sources: str | None = None
    text: str | None = None
    citations: int | None = None
    slow_stream: float | None = None
    header: tuple[str, str] | None = None
    calls: tuple[FunctionCall, ...] = ()

    def without_faults(self) -> "Directives":
        """Only what shapes a good answer."""
        return Directives(
            size=self.size,
            search=self.search,
            sources=self.sources,
            text=self.text,
            citations=self.citations,
            calls=self.calls,
        )


NOTHING_ASKED = Directives()


def read_markers(text: str) -> tuple[str, Directives]:
    """The question without its markers, and what they ask for; raises ApiError when one cannot be understood."""
    plain, contents = _cut_out_markers(text)
    if not contents:
        return text, NOTHING_ASKED
    values: dict[str, Any] = {}
    calls = []
    for content in contents:
        pairs = _pairs(content)
        calls += _function_calls(pairs)
        values |= {key: _parse(key, value) for key, value in pairs.items()}
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
    raise _refusal("A [rehearse: …] marker has no closing bracket.")


def _pairs(content: str) -> dict[str, str]:
    pairs = {}
    for pair in filter(str.strip, _SEMICOLON.split(content)):
        key, equals, value = pair.partition("=")
        if not equals:
            raise _refusal(f"Rehearsal keys take a value: '{pair.strip()}' has none.")
        pairs[key.strip()] = value.strip().replace("\\;", ";")
    return pairs


def _function_calls(pairs: dict[str, str]) -> list[FunctionCall]:
    name, arguments = pairs.pop("call", None), pairs.pop("args", None)
    if name is None:
        return []
    return [FunctionCall(name, "{}" if arguments is None else _json_text(arguments))]


def _json_text(text: str) -> str:
    try:
        json.loads(text)
    except (ValueError, RecursionError) as exc:
        raise _refusal(f"Rehearsal key 'args' takes JSON: {exc}") from exc
    return text


def _parse(key: str, value: str) -> Any:
    if key not in _PARSERS:
        known = ", ".join([*_PARSERS, "call", "args"])
        raise _refusal(f"Unknown rehearsal key: '{key}'. Known keys: {known}.")
    parse, takes = _PARSERS[key]
    try:
        return parse(value)
    except ValueError as exc:
        raise _refusal(f"Rehearsal key '{key}' takes {takes}, not '{value[:80]}'.") from exc


def _refusal(message: str) -> ApiError:
    return ApiError(400, message, param="input", code="invalid_rehearsal")


def _one_of(*choices: str) -> tuple[Callable[[str], str], str]:
    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(value)
        return value

    return parse, "one of " + ", ".join(choices)


def _whole_number(lowest: int, highest: int) -> tuple[Callable[[str], int], str]:
    def parse(value: str) -> int:
        number = int(value)
        if not lowest <= number <= highest:
            raise ValueError(value)
        return number

    return parse, f"a whole number from {lowest} to {highest}"


def _seconds(value: str) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(value)
    return number


def _header_value(value: str) -> str:
    if not (value.isascii() and value.isprintable()):
        raise ValueError(value)
    return value


def _header(value: str) -> tuple[str, str]:
    name, colon, content = value.partition(":")
    if not colon or not _HEADER_NAME.fullmatch(name):
        raise ValueError(value)
    return name.lower(), _header_value(content.strip())


def _yes_or_no(value: str) -> bool:
    if value not in ("yes", "no"):
        raise ValueError(value)
    return value == "yes"


def _literal(value: str) -> str:
    return value.replace("\\n", "\n")


# Each key with its parser and with what a refusal says the key takes.
_PARSERS: dict[str, tuple[Callable[[str], Any], str]] = {
    "status": _whole_number(400, 599),
    "code": (str, "text"),
    "message": (_literal, "text"),
    "retry_after": (_header_value, "printable ASCII"),
    "times": _whole_number(0, 1_000_000),
    "delay": (_seconds, "seconds"),
    "body": _one_of(*BODIES),
    "stream": _one_of(*STREAMS),
    "drop": _one_of(*DROPS),
    "redirect": (_header_value, "a URL in printable ASCII"),
    "outcome": _one_of(*OUTCOMES),
    "size": _whole_number(0, _MAX_SIZE_BYTES),
    "search": (_yes_or_no, "yes or no"),
    "sources": _one_of(*SOURCES),
    "text": (_literal, "text"),
    "citations": _whole_number(0, _MAX_CITATIONS),
    "slow_stream": (_seconds, "seconds"),
    "header": (_header, "'Name: value' in printable ASCII"),
}
