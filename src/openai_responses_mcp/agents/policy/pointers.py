"""JSON pointers (RFC 6901), and what they lead to in the arguments of a call."""

import re
from collections.abc import Mapping
from typing import Final

from openai_responses_mcp.agents.json_values import JsonObject

MISSING: Final = object()

_BAD_ESCAPE = re.compile(r"~(?![01])")
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")


def steps_of(place: str) -> tuple[str, ...]:
    """From a pointer or the name of an argument. Raises ValueError."""
    if not place:
        raise ValueError("is the name of an argument or a JSON pointer such as /options/depth")
    if not place.startswith("/"):
        return (place,)
    if _BAD_ESCAPE.search(place):
        raise ValueError("is not a JSON pointer: ~ is written ~0 there, and / inside a name ~1")
    return tuple(step.replace("~1", "/").replace("~0", "~") for step in place[1:].split("/"))


def place_of(steps: tuple[str, ...]) -> str:
    return "".join(f"/{step.replace('~', '~0').replace('/', '~1')}" for step in steps)


def value_at(steps: tuple[str, ...], args: JsonObject) -> object:
    """`MISSING` where the steps lead to nothing."""
    value: object = args
    for step in steps:
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list | tuple) and _INDEX.fullmatch(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value
