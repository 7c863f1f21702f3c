"""What is not the same in two JSON values, one line for each place."""

import json
from collections.abc import Iterator

from openai_responses_mcp.agents.json_values import JsonValue


def differences(before: JsonValue, after: JsonValue) -> str:
    """Where, what it was, what it is. Empty where nothing differs; `true` is not 1."""
    return "\n".join(_differences(before, after, ""))


def _differences(before: JsonValue, after: JsonValue, where: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            place = f"{where}.{key}" if where else key
            if key not in after:
                yield f"{place}: {_shown(before[key])} is gone"
            elif key not in before:
                yield f"{place}: {_shown(after[key])} is new"
            else:
                yield from _differences(before[key], after[key], place)
    elif _shown(before) != _shown(after):
        yield f"{where}: {_shown(before)} is now {_shown(after)}"


def _shown(value: JsonValue) -> str:
    return json.dumps(value, ensure_ascii=False, sort_keys=True)
