"""Which fields of a call hold a secret: those that the tool's own schema names after one, and no others.

The model chooses the arguments. So a key counts only where the schema has it, at that place, and only texts are hidden:
numbers, lists, objects and keys that the model made up are always shown.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

Path = tuple[Any, ...]

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


def secret_fields(schema: Mapping[str, Any], args: Mapping[str, Any]) -> dict[Path, str]:
    """The names of the fields with a secret in them, by where they stand in the arguments."""
    if not _has_secret_name(schema):
        return {}
    return dict(_fields_in(args, [schema], schema, ()))


def _fields_in(value: Any, schemas: Sequence[Any], root: Mapping[str, Any], path: Path) -> Iterator[tuple[Path, str]]:
    here = list(_alternatives(schemas, root))
    if isinstance(value, Mapping):
        for key, inner in value.items():
            named = [one["properties"][key] for one in here if key in _mapping(one, "properties")]
            free = [one.get("additionalProperties") for one in here]
            if not isinstance(inner, str):
                yield from _fields_in(inner, named or free, root, (*path, key))
            elif named and inner and is_secret_name(key):
                yield (*path, key), key
    elif isinstance(value, list | tuple):
        for place, inner in enumerate(value):
            items = [item for one in here for item in _items_at(one, place)]
            yield from _fields_in(inner, items, root, (*path, place))


def _alternatives(schemas: Sequence[Any], root: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Every schema that may describe a value, each once, however they refer to each other."""
    waiting, seen = list(schemas), set[int]()
    while waiting:
        schema = waiting.pop()
        if not isinstance(schema, Mapping) or id(schema) in seen:
            continue
        seen.add(id(schema))
        yield schema
        for word in ("allOf", "anyOf", "oneOf"):
            parts = schema.get(word)
            waiting += parts if isinstance(parts, list) else []
        waiting += [schema.get(word) for word in ("if", "then", "else")]
        waiting.append(_referred(schema.get("$ref"), root))


def _referred(reference: Any, root: Mapping[str, Any]) -> Any:
    """What a reference inside the schema leads to. None for one that leads elsewhere, or nowhere."""
    if not isinstance(reference, str) or not reference.startswith("#"):
        return None
    found: Any = root
    for step in reference[1:].split("/")[1:]:
        found = found.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(found, Mapping) else None
    return found


def _items_at(schema: Mapping[str, Any], place: int) -> list[Any]:
    first = schema.get("prefixItems")
    in_order = first[place : place + 1] if isinstance(first, list) else []
    return [*in_order, schema.get("items")]


def _mapping(schema: Mapping[str, Any], word: str) -> Mapping[str, Any]:
    found = schema.get(word)
    return found if isinstance(found, Mapping) else {}


def _has_secret_name(schema: Any) -> bool:
    """Whether a look at the arguments is worth it. Most schemas name no secret."""
    waiting = [schema]
    while waiting:
        part = waiting.pop()
        if isinstance(part, Mapping):
            if any(is_secret_name(str(key)) for key in _mapping(part, "properties")):
                return True
            waiting += part.values()
        elif isinstance(part, list):
            waiting += part
    return False
