"""JSON-RPC as the server takes and gives it: what of a body is answered, codes of errors, and the way back."""

import json
from typing import Any

from openai_responses_mcp.domain.errors import AnsweringError, CallInFlight, InvalidArguments
from openai_responses_mcp.domain.jsonrpc import (
    INVALID_REQUEST,
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

_CODES: tuple[tuple[type[AnsweringError], int], ...] = (
    (CallInFlight, INVALID_REQUEST),
    (InvalidArguments, ANSWER_FAILED),
    (AnsweringError, ANSWER_FAILED),
)
"""The only table from error to code; the first class that fits decides."""

_ENCODER = json.JSONEncoder(
    ensure_ascii=False,
    separators=(",", ":"),
    allow_nan=False,
    check_circular=False,  # What we send is never circular, and looking takes time.
)
# Legal inside JSON, but line ends to some readers of lines.
_LINE_ENDS = (("\x85", "\\u0085"), ("\u2028", "\\u2028"), ("\u2029", "\\u2029"))


def code_of(error: AnsweringError) -> int:
    return next(code for kind, code in _CODES if isinstance(error, kind))


def decode(body: bytes) -> Request | Notification | BadMessage | None:
    """None for what is never answered: replies, and objects without an id that are no notification either."""
    message = read(body)
    if isinstance(message, Reply) or (isinstance(message, BadMessage) and not message.is_answered):
        return None
    return _without_lone_surrogates(message) if b"\\u" in body else message


def _without_lone_surrogates(message: Request | Notification | BadMessage) -> Request | Notification | BadMessage:
    """A reader of JSON lets them through, and no encoder takes one."""
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
    """One JSON document without a raw line end in it."""
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
