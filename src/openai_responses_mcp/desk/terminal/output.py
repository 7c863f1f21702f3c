"""What is written to stdout: JSON that every program can read, and texts that every terminal can show."""

import json
import math
from collections.abc import Mapping

from openai_responses_mcp.domain.texts import revealed_json
from openai_responses_mcp.gate.json_values import JsonValue


def json_of(value: JsonValue, encoding: str = "utf-8") -> str:
    """Valid JSON in which nothing is invisible."""
    plain = _plain(value)
    text = revealed_json(json.dumps(plain, ensure_ascii=False, indent=2, allow_nan=False))
    # Python's escapes are not JSON. Where a letter cannot be written, all are escaped as JSON does it.
    return text if _fits(text, encoding) else json.dumps(plain, indent=2, allow_nan=False)


def writable(text: str, encoding: str) -> str:
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _fits(text: str, encoding: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def _plain(value: JsonValue) -> JsonValue:
    """Numbers that JSON has no word for become texts."""
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value
