"""JSON-RPC messages of the server: which messages it answers, its own error codes, and how replies are encoded."""

import json
from typing import Any

from openai_responses_mcp.domain.jsonrpc import (
    BadMessage,
    JsonObject,
    Notification,
    Reply,
    Request,
    RequestId,
    read,
)
from openai_responses_mcp.domain.texts import without_surrogates

ANSWER_FAILED = -32001
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022

_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    separators=(",", ":"),
    allow_nan=False,
    check_circular=False,  # What we send is never circular, and looking takes time.
)
# Legal inside JSON, but line ends to some readers of lines.
_LINE_ENDS = (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def decode(body: bytes) -> Request | Notification | BadMessage | None:
    """None for messages that are never answered: replies, and invalid messages without an id."""
    message = read(body)
    if isinstance(message, Reply) or (isinstance(message, BadMessage) and not message.is_answered):
        return None
    return _without_lone_surrogates(message) if b"\\u" in body else message


def _without_lone_surrogates(message: Request | Notification | BadMessage) -> Request | Notification | BadMessage:
    """JSON may contain them, but they cannot be encoded in a reply."""
    if not isinstance(message, Notification):
        message = message._replace(id=_cleaned(message.id))
    if isinstance(message, BadMessage):
        return message
    return message._replace(method=_cleaned(message.method), params=_cleaned(message.params))


def _cleaned(value: Any) -> Any:
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list):
        return [_cleaned(item) for item in value]
    if isinstance(value, dict):
        return {_cleaned(key): _cleaned(item) for key, item in value.items()}
    return value


def encode(message: JsonObject) -> bytes:
    """One JSON document without raw line ends."""
    text = _ENCODER.encode(message)
    if text.isascii():
        return text.encode()
    for line_end, escape in _LINE_ENDS:
        text = text.replace(line_end, escape)
    return without_surrogates(text).encode()


def result_message(request_id: RequestId, result: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "id": request_id, "result": result}


def error_message(request_id: RequestId | None, code: int, message: str, data: JsonObject | None = None) -> JsonObject:
    error: JsonObject = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return {"jsonrpc": "2.0", "id": request_id, "error": error}


def notification_message(method: str, params: JsonObject) -> JsonObject:
    return {"jsonrpc": "2.0", "method": method, "params": params}
