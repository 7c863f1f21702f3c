"""JSON as it comes from models, tools, servers and stores, under one name.

Its form is unknown until it is checked, so it is an `object` to the type checker. So is what belongs to the SDK,
outside of the adapters: it is passed on and never looked into. What this library has written itself is read as it was
written, once its hash has been checked.
"""

from collections.abc import Mapping
from typing import Any, TypeAlias, TypeGuard

JsonValue: TypeAlias = object
JsonObject: TypeAlias = Mapping[str, JsonValue]
OwnJson: TypeAlias = Mapping[str, Any]


def is_number(value: object) -> TypeGuard[int | float]:
    """Not a bool. Python also reads NaN and Infinity, which are not JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


def pointer_steps(pointer: str) -> list[str]:
    """The names in a JSON pointer (RFC 6901); none in an empty one."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
