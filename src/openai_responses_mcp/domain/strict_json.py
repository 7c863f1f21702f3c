"""JSON that every program reads alike, or not at all.

`parsed` takes no NaN, no number that is infinite as a float, and no byte order mark. An object with a key twice, of which some
programs take the first value and some the last, comes out as its `Members`, for the caller to refuse.
"""

import json
from typing import Any, NoReturn


class Members(list[tuple[str, Any]]):
    """An object as it was written."""


class _KeyTwice(Exception):
    """An object has a key twice."""


def parsed(text: str) -> Any:
    """As `json.loads`, but where any object has a key twice, every object is its `Members`.

    Raises `ValueError` and `RecursionError`; `why_unreadable` has the words for them.
    """
    if text.startswith("\ufeff"):
        raise ValueError("it begins with a byte order mark (BOM)")
    try:
        return _DECODER.decode(text)
    except _KeyTwice:
        return json.loads(text, object_pairs_hook=Members, parse_constant=_refuse_constant, parse_float=_finite)


def why_unreadable(error: Exception) -> str:
    """Of a text that could not be decoded or parsed."""
    if isinstance(error, RecursionError):
        return "nesting too deep"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    # Python refuses longer numbers, in words for programmers.
    return "a number has too many digits" if "digits" in str(error) else str(error)


def _each_once(members: list[tuple[str, Any]]) -> dict[str, Any]:
    as_object = dict(members)
    if len(as_object) != len(members):
        raise _KeyTwice
    return as_object


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return number


# Made once: making one takes nearly as long as using it.
_DECODER = json.JSONDecoder(object_pairs_hook=_each_once, parse_constant=_refuse_constant, parse_float=_finite)
