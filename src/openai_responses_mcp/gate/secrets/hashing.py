"""One way to write a value and one way to hash it, so that equal things have equal hashes everywhere."""

import hashlib
import hmac
import json

from openai_responses_mcp.gate.json_values import JsonValue

_ENCODER = json.JSONEncoder(sort_keys=True, ensure_ascii=True, separators=(",", ":"), default=str)


def canonical(value: JsonValue) -> str:
    return _ENCODER.encode(value)


def digest(*parts: JsonValue) -> str:
    return hashlib.sha256(canonical(list(parts)).encode()).hexdigest()


def sealed(key: str, *parts: JsonValue) -> str:
    """A hash that only the holder of the key can make."""
    return hmac.new(key.encode(), canonical(list(parts)).encode(), hashlib.sha256).hexdigest()
