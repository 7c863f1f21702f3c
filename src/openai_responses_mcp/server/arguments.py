"""The arguments of tools: what each takes is said once, and gives schema, words and reader."""

import re
from math import inf, isfinite
from typing import Any, NamedTuple, Protocol

from openai_responses_mcp.domain.errors import InvalidArguments
from openai_responses_mcp.domain.jsonrpc import JsonObject

_DIGITS = re.compile(r"[0-9]+(\.[0-9]+)?")


class _Unfit(ValueError):
    """The value is not what the argument takes."""


class Text:
    schema: JsonObject = {"type": "string"}  # noqa: RUF012 -- never written to

    def __init__(self, words: str = "a string that is not blank") -> None:
        self.words = words

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or not value.strip():
            raise _Unfit
        return value


class Texts:
    schema: JsonObject = {"type": "array", "items": Text.schema}  # noqa: RUF012 -- never written to

    def __init__(self, words: str) -> None:
        self.words = words

    def read(self, value: Any) -> tuple[str, ...]:
        if not isinstance(value, list):
            raise _Unfit
        return tuple(Text().read(item).strip() for item in value)


class Flag:
    schema: JsonObject = {"type": "boolean"}  # noqa: RUF012 -- never written to
    words = "true or false"

    def read(self, value: Any) -> bool:
        if not isinstance(value, bool):
            raise _Unfit
        return value


class Number:
    """A string of digits counts as the number."""

    def __init__(self, lowest: int, highest: int | None = None) -> None:
        bounds = {"minimum": lowest, "maximum": highest}
        self.schema: JsonObject = {"type": "number", **{name: n for name, n in bounds.items() if n is not None}}
        self.words = f"a number, {lowest} or more" if highest is None else f"a number from {lowest} to {highest}"
        self._lowest, self._highest = lowest, inf if highest is None else highest

    def read(self, value: Any) -> float:
        if isinstance(value, str) and _DIGITS.fullmatch(value):
            value = float(value)
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise _Unfit
        # Infinity is within no limit; NaN compares as false.
        if not (self._lowest <= value <= self._highest) or (isinstance(value, float) and not isfinite(value)):
            raise _Unfit
        return value


class Chosen:
    def __init__(self, *names: str) -> None:
        self.schema: JsonObject = {"type": "string", "enum": list(names)}
        self.words = f"one of {', '.join(names)}"
        self._names = names

    def read(self, value: Any) -> str:
        if not isinstance(value, str) or value not in self._names:
            raise _Unfit
        return value


class _Kind(Protocol):
    """What an argument takes, said once: as a schema for clients, in words for a refusal, and as a reader."""

    @property
    def schema(self) -> JsonObject: ...

    @property
    def words(self) -> str: ...

    def read(self, value: Any) -> Any:
        """Raises `_Unfit`."""
        ...


class Argument(NamedTuple):
    """One argument of a tool: its name on the wire, the field of a question it sets, what it takes."""

    name: str
    field: str
    kind: _Kind
    description: str
    is_required: bool = False

    @property
    def schema(self) -> JsonObject:
        return {**self.kind.schema, "description": self.description}

    def read(self, value: Any) -> Any:
        """Raises `InvalidArguments`."""
        try:
            return self.kind.read(value)
        except _Unfit:
            raise InvalidArguments(f"{self.name} must be {self.kind.words}") from None
