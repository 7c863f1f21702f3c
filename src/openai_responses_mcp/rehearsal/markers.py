"""What a question asks the stand-in to do: `[rehearse: key=value; key=value]` anywhere in its text.

Pairs are split on `;` (write `\\;` for a literal one), key from value at the first `=`; brackets inside a value must be
balanced. Several markers add up.
"""

import math
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from openai_responses_mcp.rehearsal.wire import ApiError

OUTCOMES = ("refusal", "incomplete", "failed", "no-text")

_OPENING = re.compile(r"\[rehearse:", re.IGNORECASE)
_BRACKET = re.compile(r"[\[\]]")
_SEMICOLON = re.compile(r"(?<!\\);")
_MAX_CITATIONS = 1000
_MAX_TIMES = 1_000_000


@dataclass(frozen=True, slots=True)
class Wishes:
    """The keys of all markers of one question; a field that is not set is None."""

    status: int | None = None
    times: int | None = None
    delay: float | None = None
    outcome: str | None = None
    text: str | None = None
    search: bool | None = None
    citations: int | None = None

    def without_trouble(self) -> "Wishes":
        """Only what shapes a good answer."""
        return Wishes(text=self.text, search=self.search, citations=self.citations)


def read_wishes(text: str) -> tuple[str, Wishes]:
    """The question without its markers, and what they ask for; raises ApiError when one cannot be understood."""
    plain, markers = read_markers(text, KEYS)
    values: dict[str, Any] = {}
    for marker in markers:
        values |= marker
    return plain, Wishes(**values)


@dataclass(frozen=True, slots=True)
class Key:
    """How a value is read, and what a refusal says that the key takes."""

    parse: Callable[[str], Any]
    takes: str


def read_markers(text: str, keys: Mapping[str, Key]) -> tuple[str, list[dict[str, Any]]]:
    """The text without its markers, and the values of each marker."""
    plain, contents = _cut_out_markers(text)
    if not contents:
        return text, []
    return plain, [_read_pairs(content, keys) for content in contents]


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


def _read_pairs(content: str, keys: Mapping[str, Key]) -> dict[str, Any]:
    values = {}
    for pair in filter(str.strip, _SEMICOLON.split(content)):
        name, equals, value = pair.partition("=")
        if not equals:
            raise _refusal(f"Rehearsal keys take a value: '{pair.strip()}' has none.")
        name = name.strip()
        values[name] = _read_value(name, value.strip().replace("\\;", ";"), keys)
    return values


def _read_value(name: str, value: str, keys: Mapping[str, Key]) -> Any:
    if name not in keys:
        raise _refusal(f"Unknown rehearsal key: '{name}'. Known keys: {', '.join(keys)}.")
    try:
        return keys[name].parse(value)
    except ValueError as exc:
        raise _refusal(f"Rehearsal key '{name}' takes {keys[name].takes}, not '{value[:80]}'.") from exc


def _refusal(message: str) -> ApiError:
    return ApiError(400, message, param="input", code="invalid_rehearsal")


def one_of(*choices: str) -> Key:
    def parse(value: str) -> str:
        if value not in choices:
            raise ValueError(value)
        return value

    return Key(parse, "one of " + ", ".join(choices))


def whole_number(lowest: int, highest: int) -> Key:
    def parse(value: str) -> int:
        number = int(value)
        if not lowest <= number <= highest:
            raise ValueError(value)
        return number

    return Key(parse, f"a whole number from {lowest} to {highest}")


def _seconds(value: str) -> float:
    number = float(value)
    if not math.isfinite(number) or number < 0:
        raise ValueError(value)
    return number


def _yes_or_no(value: str) -> bool:
    if value not in ("yes", "no"):
        raise ValueError(value)
    return value == "yes"


SECONDS = Key(_seconds, "seconds")
TEXT = Key(lambda value: value.replace("\\n", "\n"), "text")
YES_OR_NO = Key(_yes_or_no, "yes or no")

KEYS: dict[str, Key] = {
    "status": whole_number(400, 599),
    "times": whole_number(0, _MAX_TIMES),
    "delay": SECONDS,
    "outcome": one_of(*OUTCOMES),
    "text": TEXT,
    "search": YES_OR_NO,
    "citations": whole_number(0, _MAX_CITATIONS),
}
