"""JSON as it comes from models, tools, servers and stores: its names, the texts in it, its hashes, its differences.

Until it is checked, its type is `object`. So are values of the SDK outside the adapters: they are passed on unread. JSON
that this library wrote itself (`OwnJson`) is trusted once its hash was checked.
"""

import hashlib
import hmac
import json
import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final, TypeAlias, TypeGuard

from openai_responses_mcp.domain.texts import revealed_json

JsonValue: TypeAlias = object
JsonObject: TypeAlias = Mapping[str, JsonValue]
OwnJson: TypeAlias = Mapping[str, Any]

MISSING: Final = object()
_INDEX = re.compile(r"0|[1-9][0-9]{0,8}")

# One way to write a value, so that equal values have equal hashes everywhere.
_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)


def is_number(value: object) -> TypeGuard[int | float]:
    """Not a bool. Python also reads NaN and Infinity, which are not JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


def pointer_steps(pointer: str) -> list[str]:
    """The names in a JSON pointer (RFC 6901); none in an empty one."""
    return [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]


def value_at(steps: Iterable[str], value: JsonValue) -> JsonValue:
    """`MISSING` where the steps lead to nothing."""
    for step in steps:
        if isinstance(value, Mapping) and step in value:
            value = value[step]
        elif isinstance(value, list | tuple) and _INDEX.fullmatch(step) and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


def texts_in(value: JsonValue) -> Iterator[str]:
    """Every key and every text, at any depth, without the escapes of JSON."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, inner in value.items():
            yield str(key)
            yield from texts_in(inner)
    elif isinstance(value, list | tuple):
        for inner in value:
            yield from texts_in(inner)


def texts_of_call(name: str, args: JsonObject) -> list[str]:
    """The name and each text by itself, all of them in a row, and the whole as JSON with its numbers."""
    texts = [name, *texts_in(args)]
    written = json.dumps(args, ensure_ascii=False, sort_keys=True, separators=(",", ":"), default=str)
    return [*texts, " ".join(texts), f"{name} {written}"]


def texts_of_output(text: str) -> list[str]:
    """The text, and the texts inside it where it is JSON."""
    try:
        return [text, *texts_in(json.loads(text))]
    except (ValueError, RecursionError):
        return [text]


def words_of(input: object) -> str:
    """What the user said, in a text or in a list of the SDK's items."""
    if isinstance(input, str):
        return input
    items = input if isinstance(input, list | tuple) else ()
    said = [item.get("content") for item in items if isinstance(item, Mapping) and item.get("role") == "user"]
    return "\n".join(_words_in(content) for content in said)


def _words_in(content: JsonValue) -> str:
    """The words of one message, which may come in parts."""
    if isinstance(content, str):
        return content
    if isinstance(content, list | tuple):
        return "\n".join(_words_in(part) for part in content)
    if isinstance(content, Mapping) and isinstance(content.get("text"), str):
        return str(content["text"])
    return json.dumps(content, ensure_ascii=False, default=str)


def canonical(value: JsonValue) -> str:
    return _ENCODER.encode(value)


def digest(*parts: JsonValue) -> str:
    return hashlib.sha256(canonical(list(parts)).encode()).hexdigest()


def sealed(key: str, *parts: JsonValue) -> str:
    """A hash that only the holder of the key can make."""
    return hmac.new(key.encode(), canonical(list(parts)).encode(), hashlib.sha256).hexdigest()


def differences(before: JsonValue, after: JsonValue) -> str:
    """Where, what it was, what it is: one line for each place. Empty where nothing differs; `true` is not 1.

    Keys and values come from servers and models. Both are written as JSON strings in which nothing is invisible, so
    that none of them can begin a line or look like words of ours.
    """
    return "\n".join(_differences(before, after, ""))


def _differences(before: JsonValue, after: JsonValue, where: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            place = f"{where}.{shown_json(key)}" if where else shown_json(key)
            if key not in after:
                yield f"{place}: {shown_json(before[key], sort_keys=True)} is gone"
            elif key not in before:
                yield f"{place}: {shown_json(after[key], sort_keys=True)} is new"
            else:
                yield from _differences(before[key], after[key], place)
    else:
        was, now = shown_json(before, sort_keys=True), shown_json(after, sort_keys=True)
        if was != now:
            yield f"{where}: {was} is now {now}"


def shown_json(value: JsonValue, indent: int | None = None, *, sort_keys: bool = False) -> str:
    """The value as JSON for a person: in any script, with nothing invisible in it."""
    return revealed_json(json.dumps(value, ensure_ascii=False, indent=indent, sort_keys=sort_keys))


def squeezed(text: str) -> str:
    """Without case, look-alike letters and invisible characters: some parsers stop at a NUL, some ignore case."""
    plain = unicodedata.normalize("NFKC", text.partition("\0")[0]).casefold()
    return "".join(letter for letter in plain if letter.isprintable() and letter != " ")
