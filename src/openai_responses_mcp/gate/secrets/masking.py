"""Hides secrets in everything that gate, guard and agents store or show, in two views.

The human or judge who decides on a call sees it exactly: a label for each real secret (`‹OPENAI_API_KEY›`), and
everything else whole, because the model chose the keys and the texts. The log may hide more: also what only looks like
a secret. Secrets that must come back when a run resumes: see `withholding`.
"""

import json
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from openai_responses_mcp.domain.masking import (
    SHORTEST_SECRET,
    SecretFinder,
    SecretMask,
    known_secrets,
    label_of,
    replaced,
)
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, texts_in
from openai_responses_mcp.gate.schema.documents import Document

Path = tuple[object, ...]

MOST_STEPS = 100_000

# Runs of capitals, words, numbers: `dbPassword`, `X-API-Key` and `access_token2` are read as their words.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
_SECRET_NAME = re.compile(
    r"(?:^| )(?:pass ?word|passwd|pwd|pass ?phrase|passcode|secrets?|token|authorization|credentials?|cookies?"
    r"|(?:api|access|account|auth|encryption|private|secret|signing|ssh) ?keys?)$"
)
_JAPANESE_NAMES = ("パスワード", "暗証番号", "秘密鍵", "トークン")

LABEL = re.compile(r"‹[^‹›]*›")
_LIKELY_LABEL = re.compile(r"‹[^‹›]{1,300}›")
_SURE_LABEL = re.compile(r"‹(?:.*, [1-9][0-9]* characters?|[A-Z][A-Z0-9_]+|password in .*)›", re.DOTALL)
_COMMAND = re.compile(r"\s|`|\$\(")


class Masking:
    """`also` names a variable that holds a secret, whatever its name says."""

    def __init__(self, environ: Mapping[str, str] | None = None, also: str = "") -> None:
        known = known_secrets(os.environ if environ is None else environ, key_variable=also)
        self.finder = SecretFinder(known)
        self._mask = SecretMask(secret.value for secret in known)

    # -----------------------------------------------------------------------------------------------------------------
    # For the approver and the judge

    def shown_text(self, text: str) -> str:
        """The text with a label for each real secret in it."""
        found = self.finder.find(text)
        return replaced(text, found) if found else text

    def shown(self, args: JsonObject, schema: JsonObject) -> dict[str, JsonValue]:
        """The arguments of a call. `schema` is the tool's own, and says which of its fields hold a secret."""
        names = {field.path: field.name for field in secret_fields(schema, args)}
        return _mapped_object(args, self.shown_text, lambda path, text: names.get(path, ""))

    def label_in(self, args: JsonObject) -> str | None:
        """The first label in the arguments that stands, or may stand, in the place of a secret."""
        for text in texts_in(args):
            for label in _LIKELY_LABEL.findall(text):
                if label in self.finder.labels or _SURE_LABEL.fullmatch(label):
                    return str(label)
        return None

    # -----------------------------------------------------------------------------------------------------------------
    # For the log

    def text(self, text: str, also: Sequence[str] = ()) -> str:
        """The text without secrets and without what looks like one. `also` are texts of secret fields."""
        if not text:
            return text
        for secret in also:
            if len(secret) >= SHORTEST_SECRET:
                text = text.replace(secret, label_of("secret", len(secret)))
        return self._mask.rest(self.shown_text(text))

    def value(self, value: JsonValue, also: Sequence[str] = ()) -> JsonValue:
        """The same JSON value without secrets: likely ones in texts, and texts of fields whose name says so."""
        return _mapped(value, lambda text: self.text(text, also), _likely_field)

    def mapping(self, value: JsonObject, also: Sequence[str] = ()) -> dict[str, JsonValue]:
        return _mapped_object(value, lambda text: self.text(text, also), _likely_field)

    def error(self, failure: AgentsError, also: Sequence[str] = (), **details: object) -> AgentsError:
        """The error as it may be shown: masked, and without a cause that has a secret in its text."""
        facts = self.mapping({**details, **failure.details}, also)
        shown = AgentsError(failure.code, self.text(failure.message, also), failure.category, facts)
        shown.__cause__ = failure.__cause__ if self._is_clean(failure.__cause__, also) else None
        return shown

    def _is_clean(self, error: BaseException | None, also: Sequence[str]) -> bool:
        seen: list[BaseException] = []
        while error is not None and error not in seen:
            seen.append(error)
            if any(self.text(text, also) != text for text in (str(error), repr(error))):
                return False
            error = error.__cause__ or error.__context__
        return True


def _likely_field(path: Path, text: str) -> str:
    """The name of a field if it sounds like a secret. Shell commands are not hidden."""
    name = path[-1] if path else None
    is_likely = isinstance(name, str) and is_secret_name(name) and not _COMMAND.search(text)
    return str(name) if is_likely else ""


def _mapped(
    value: JsonValue, change: Callable[[str], str], field: Callable[[Path, str], str], path: Path = ()
) -> JsonValue:
    """The value as JSON can say it, every text changed. A text that is a secret field gives way to a label."""
    if isinstance(value, str):
        name = field(path, value)
        return _labelled(name, value) if name and value else change(value)
    if isinstance(value, Mapping):
        return _mapped_object(value, change, field, path)
    if isinstance(value, list | tuple):
        return [_mapped(inner, change, field, (*path, place)) for place, inner in enumerate(value)]
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps(value)
    return value if value is None or isinstance(value, bool | int | float) else change(str(value))


def _mapped_object(
    value: JsonObject, change: Callable[[str], str], field: Callable[[Path, str], str], path: Path = ()
) -> dict[str, JsonValue]:
    mapped: dict[str, JsonValue] = {}
    for key, inner in value.items():
        mapped[_unused(change(str(key)), mapped)] = _mapped(inner, change, field, (*path, key))
    return mapped


def _labelled(name: str, text: str) -> str:
    # A text that is a label already stays as it is.
    is_label = text.startswith("‹") and text.find("›") == len(text) - 1
    return text if is_label else label_of(name, len(text))


def _unused(key: str, taken: JsonObject, number: int = 2) -> str:
    """Two keys that look the same when masked stay two keys."""
    if key not in taken:
        return key
    numbered = f"{key} ({number})"
    return numbered if numbered not in taken else _unused(key, taken, number + 1)


# ---------------------------------------------------------------------------------------------------------------------
# Which fields of a call hold a secret: those that the tool's own schema names after one, and no others.
#
# The model chooses the arguments. So a key counts only where the schema has it, at that place, and only texts are hidden:
# numbers, lists, objects and keys that the model made up are always shown.


@lru_cache(maxsize=4096)
def is_secret_name(name: str) -> bool:
    """By its last word: `access_token` holds a secret, `token_amount` and `secretary` do not."""
    words = " ".join(_WORD.findall(name)).lower()
    return bool(_SECRET_NAME.search(words)) or name.endswith(_JAPANESE_NAMES)


class SecretField(NamedTuple):
    """Where it stands in the arguments, its name, and the secret."""

    path: Path
    name: str
    text: str


def secret_fields(schema: JsonObject, args: JsonObject) -> list[SecretField]:
    """Raises `AGENTS-E-AGENT-CAPABILITY-RESOLVE` for a schema that was made to take forever."""
    # Most calls have no such name in them, and reading a schema takes much longer than looking for one.
    return list(_fields_in(args, _Place([schema], _Reading(schema)), ())) if _names_a_secret(args) else []


def secret_texts(schema: JsonObject, args: JsonObject) -> list[str]:
    return [field.text for field in secret_fields(schema, args)]


def _names_a_secret(value: JsonValue) -> bool:
    if isinstance(value, Mapping):
        return any((isinstance(key, str) and is_secret_name(key)) or _names_a_secret(value[key]) for key in value)
    return isinstance(value, list | tuple) and any(map(_names_a_secret, value))


def _fields_in(value: JsonValue, place: "_Place", path: Path) -> Iterator[SecretField]:
    if isinstance(value, Mapping):
        for key, inner in value.items():
            if not isinstance(inner, str):
                yield from _fields_in(inner, place.below(key), (*path, key))
            elif inner and place.names(key) and is_secret_name(key):
                yield SecretField((*path, key), key, inner)
    elif isinstance(value, list | tuple):
        for number, inner in enumerate(value):
            if not isinstance(inner, str):
                yield from _fields_in(inner, place.item(number), (*path, number))


class _Reading:
    """One schema being read, in a bounded number of steps."""

    def __init__(self, root: JsonObject) -> None:
        self._document = Document(root, self.count)
        self._steps = 0

    def alternatives(self, schemas: Iterable[JsonValue]) -> Iterator[JsonObject]:
        """Every schema that may describe a value, each once, however they refer to each other."""
        waiting, seen = list(schemas), set[int]()
        while waiting:
            self.count(1)
            schema = waiting.pop()
            if not isinstance(schema, Mapping) or id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            for word in ("allOf", "anyOf", "oneOf"):
                parts = schema.get(word)
                waiting += parts if isinstance(parts, list) else []
            waiting += [schema.get(word) for word in ("then", "else")]
            if "$ref" in schema:
                waiting.append(self._document.find(schema["$ref"]))

    def count(self, steps: int) -> None:
        self._steps += steps
        if self._steps > MOST_STEPS:
            message = "The schema of a tool is too complex to find which of its fields hold secrets"
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
            properties = schema.get("properties")
            if isinstance(properties, Mapping):
                reading.count(len(properties))
                for name, inner in properties.items():
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
        is_named = isinstance(key, str) and self.names(key)
        return self._at(key, self._named[str(key)]) if is_named else self._at(None, self._free)

    def item(self, number: int) -> "_Place":
        in_order = [first[number] for first in self._first if number < len(first)]
        return self._at(number, [*in_order, *self._items]) if in_order else self._at(-1, self._items)

    def _at(self, key: JsonValue, schemas: list[JsonValue]) -> "_Place":
        if key not in self._inside:
            self._inside[key] = _Place(schemas, self._reading)
        return self._inside[key]
