"""JSON that every program reads alike, or not at all: the one reader of JSON from outside.

A key twice in one object is refused, because some programs take its first value and some its last. NaN, numbers that
are infinite as a float, and a byte order mark are refused too.
"""

import json
from typing import Any, NoReturn

Members = list[tuple[str, Any]]


class UnreadableJson(ValueError):
    """`str(error)` says why, in plain words."""


class KeyTwice(UnreadableJson):
    """An object has a key twice. `members` is the outermost object as it was written, empty where there is none."""

    def __init__(self, members: Members) -> None:
        super().__init__("a key appears twice")
        self.members = members


def read_json(text: str | bytes) -> Any:
    """As `json.loads`, but strict. Bytes have to be UTF-8. Raises `UnreadableJson`."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        if text.startswith("\ufeff"):
            raise ValueError("it begins with a byte order mark (BOM)")
        try:
            return _DECODER.decode(text)
        except _Repeated:
            written = _WRITTEN.decode(text)
            raise KeyTwice(written if isinstance(written, _Written) else []) from None
    except UnreadableJson:
        raise
    except (ValueError, RecursionError) as exc:
        raise UnreadableJson(why_unreadable(exc)) from exc


def why_unreadable(error: Exception) -> str:
    """Of a text that could not be decoded or parsed."""
    if isinstance(error, RecursionError):
        return "nesting too deep"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    # Python refuses longer numbers, in words for programmers.
    return "a number has too many digits" if "digits" in str(error) else str(error)


class _Repeated(Exception):
    """An object has a key twice."""


class _Written(Members):
    """An object as it was written."""


def _each_once(members: Members) -> dict[str, Any]:
    as_object = dict(members)
    if len(as_object) != len(members):
        raise _Repeated
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
_WRITTEN = json.JSONDecoder(object_pairs_hook=_Written, parse_constant=_refuse_constant, parse_float=_finite)
