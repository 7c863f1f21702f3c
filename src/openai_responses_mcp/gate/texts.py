"""The texts in calls, inputs and outputs as they are: a rule about a text must not have to know how JSON writes it."""

import json
from collections.abc import Iterator, Mapping

from openai_responses_mcp.gate.json_values import JsonObject, JsonValue


def texts_in(value: JsonValue) -> Iterator[str]:
    """Every key and every text, at any depth."""
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
