"""What is not the same in two JSON values, one line for each place.

Keys and values come from servers and models. Both are written as JSON strings in which nothing is invisible, so that none
of them can begin a line or look like words of ours.
"""

import json
from collections.abc import Iterator

from openai_responses_mcp.domain.texts import revealed_json
from openai_responses_mcp.gate.json_values import JsonValue


def differences(before: JsonValue, after: JsonValue) -> str:
    """Where, what it was, what it is. Empty where nothing differs; `true` is not 1."""
    return "\n".join(_differences(before, after, ""))


def _differences(before: JsonValue, after: JsonValue, where: str) -> Iterator[str]:
    if isinstance(before, dict) and isinstance(after, dict):
        for key in dict.fromkeys([*before, *after]):
            place = f"{where}.{_shown(key)}" if where else _shown(key)
            if key not in after:
                yield f"{place}: {_shown(before[key])} is gone"
            elif key not in before:
                yield f"{place}: {_shown(after[key])} is new"
            else:
                yield from _differences(before[key], after[key], place)
    elif _shown(before) != _shown(after):
        yield f"{where}: {_shown(before)} is now {_shown(after)}"


def _shown(value: JsonValue) -> str:
    return revealed_json(json.dumps(value, ensure_ascii=False, sort_keys=True))
