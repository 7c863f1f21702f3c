"""Which fields of a call hold a secret: those that the tool's own schema names after one, and no others.

The model chooses the arguments. So a key counts only where the schema has it, at that place, and only texts are hidden:
numbers, lists, objects and keys that the model made up are always shown.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache

from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, pointer_steps

Path = tuple[object, ...]

MOST_STEPS = 100_000

# Runs of capitals, words, numbers: `dbPassword`, `X-API-Key` and `access_token2` are read as their words.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_NAME = re.compile(
    r"(?:^| )(?:pass ?word|passwd|pwd|pass ?phrase|passcode|secrets?|token|authorization|credentials?|cookies?"
    r"|(?:api|access|account|auth|encryption|private|secret|signing|ssh) ?keys?)$"
)
_JAPANESE_NAMES = ("パスワード", "暗証番号", "秘密鍵", "トークン")


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """By its last word: `access_token` holds a secret, `token_amount` and `secretary` do not."""
    words = " ".join(_WORD.findall(name)).lower()
    return bool(_SECRET_NAME.search(words)) or name.endswith(_JAPANESE_NAMES)


def secret_fields(schema: JsonObject, args: JsonObject) -> dict[Path, str]:
    """The names of the fields with a secret in them, by where they stand in the arguments.

    Raises `AGENTS-E-AGENT-CAPABILITY-RESOLVE` for a schema that was made to take forever.
    """
    return {path: name for path, name, _ in _found(schema, args)}


def secret_texts(schema: JsonObject, args: JsonObject) -> list[str]:
    """The texts in these fields."""
    return [text for _, _, text in _found(schema, args)]


def _found(schema: JsonObject, args: JsonObject) -> Iterable[tuple[Path, str, str]]:
    # Most calls have no such name in them, and reading a schema takes much longer than looking for one.
    return _fields_in(args, _Place([schema], _Reading(schema)), ()) if _names_a_secret(args) else ()


def _names_a_secret(value: JsonValue) -> bool:
    if isinstance(value, Mapping):
        return any((isinstance(key, str) and is_secret_name(key)) or _names_a_secret(value[key]) for key in value)
    return isinstance(value, list | tuple) and any(map(_names_a_secret, value))


def _fields_in(value: JsonValue, place: "_Place", path: Path) -> Iterator[tuple[Path, str, str]]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(inner, str):
                yield from _fields_in(inner, place.below(key), (*path, key))
            elif inner and place.names(key) and is_secret_name(key):
                yield (*path, key), key, inner
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            if not isinstance(inner, str):
                yield from _fields_in(inner, place.item(number), (*path, number))


class _Reading:
    """One schema being read, in a bounded number of steps."""

    def __init__(self, root: JsonObject) -> None:
        self._root = root
        self._steps = 0

    def alternatives(self, schemas: Iterable[JsonValue]) -> Iterator[JsonObject]:
        """Every schema that may describe a value, each once, however they refer to each other."""
        waiting, seen = list(schemas), set[int]()
        while waiting:
            self._count(1)
            schema = waiting.pop()
            if not isinstance(schema, Mapping) or id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            for word in ("allOf", "anyOf", "oneOf"):
                parts = schema.get(word)
                waiting += parts if isinstance(parts, list) else []
            waiting += [schema.get(word) for word in ("then", "else")]
            waiting.append(self._referred(schema.get("$ref")))

    def properties_of(self, schema: JsonObject) -> JsonObject:
        found = schema.get("properties")
        properties = found if isinstance(found, Mapping) else {}
        self._count(len(properties))
        return properties

    def _referred(self, reference: JsonValue) -> JsonValue:
        """What a reference inside the schema leads to. None for one that leads elsewhere, or nowhere."""
        if not isinstance(reference, str) or not reference.startswith("#"):
            return None
        found: JsonValue = self._root
        for step in pointer_steps(reference[1:]):
            found = found.get(step) if isinstance(found, Mapping) else None
        return found

    def _count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            message = "The schema of a tool is too intricate to tell which of its fields hold secrets"
            raise AgentsError("AGENTS-E-AGENT-CAPABILITY-RESOLVE", message)


class _Place:
    """A place in the arguments: what the schema says about a value there, and about what is inside it."""

    def __init__(self, schemas: Iterable[JsonValue], reading: _Reading) -> None:
        self._reading = reading
        self._named: dict[str, list[JsonValue]] = {}
        self._free: list[JsonValue] = []
        self._items: list[JsonValue] = []
        self._first: list[Sequence[JsonValue]] = []
        for schema in reading.alternatives(schemas):
            for name, inner in reading.properties_of(schema).items():
                self._named.setdefault(name, []).append(inner)
            self._free.append(schema.get("additionalProperties"))
            self._items.append(schema.get("items"))
            first = schema.get("prefixItems")
            self._first.append(first if isinstance(first, list) else ())
        # Each is made once, however often it is reached.
        self._inside: dict[JsonValue, _Place] = {}

    def names(self, key: JsonValue) -> bool:
        return key in self._named

    def below(self, key: JsonValue) -> "_Place":
        return (
            self._at(key, self._named[key]) if isinstance(key, str) and self.names(key) else self._at(None, self._free)
        )

    def item(self, number: int) -> "_Place":
        in_order = [first[number] for first in self._first if number < len(first)]
        return self._at(number, [*in_order, *self._items]) if in_order else self._at(-1, self._items)

    def _at(self, key: JsonValue, schemas: list[JsonValue]) -> "_Place":
        if key not in self._inside:
            self._inside[key] = _Place(schemas, self._reading)
        return self._inside[key]
