"""A JSON value as a text that is the same for equal values: 1 and 1.0 are equal, 1 and true are not.

Texts are compared and not the values themselves, because numbers can be chosen so that a set of them takes for ever.
"""

import json
from collections.abc import Mapping

from openai_responses_mcp.agents.json_values import JsonValue
from openai_responses_mcp.agents.schemas.steps import DEEPEST, Steps, TooDeep

_CHARACTERS_PER_STEP = 64


def canonical(value: JsonValue, steps: Steps, depth: int = 0) -> str:
    steps.spend()
    if depth > DEEPEST:
        raise TooDeep
    if isinstance(value, Mapping):
        named = [f"{_text(name, steps)}:{canonical(inner, steps, depth + 1)}" for name, inner in sorted(value.items())]
        return f"{{{','.join(named)}}}"
    if isinstance(value, list):
        return f"[{','.join([canonical(inner, steps, depth + 1) for inner in value])}]"
    if isinstance(value, str):
        return _text(value, steps)
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        # In this base, because Python refuses to write very long numbers in base 10.
        return f"{value:x}"
    return repr(value)


def _text(text: str, steps: Steps) -> str:
    steps.spend(1 + len(text) // _CHARACTERS_PER_STEP)
    return json.dumps(text)
