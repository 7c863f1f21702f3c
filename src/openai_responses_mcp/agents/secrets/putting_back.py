"""Arguments that somebody changed while they were looking at them without their secrets."""

from collections.abc import Mapping, Sequence

from openai_responses_mcp.agents.json_values import JsonObject, JsonValue


def with_secrets(changed: JsonObject, shown: JsonObject, original: JsonObject) -> JsonObject:
    """The changed arguments, with the secret put back wherever a text was left as it was shown."""
    return {key: _restored(inner, shown.get(key), original.get(key)) for key, inner in changed.items()}


def _restored(changed: JsonValue, shown: JsonValue, original: JsonValue) -> JsonValue:
    if isinstance(changed, dict) and isinstance(shown, dict) and isinstance(original, Mapping):
        return {key: _restored(inner, shown.get(key), original.get(key)) for key, inner in changed.items()}
    if isinstance(changed, list) and isinstance(shown, list) and isinstance(original, list | tuple):
        return [_restored(inner, _at(shown, place), _at(original, place)) for place, inner in enumerate(changed)]
    return original if isinstance(changed, str) and changed == shown and isinstance(original, str) else changed


def _at(items: Sequence[JsonValue], place: int) -> JsonValue:
    return items[place] if place < len(items) else None
