"""JSON-RPC 2.0: bodies in, requests, notifications and faults out; and the way back.

`decode` never raises: whatever arrives is a request, a notification, something to refuse, or nothing at all.
"""

import json
from typing import Any, NamedTuple

from openai_responses_mcp.domain.errors import AnsweringError, CallInFlight, InvalidArguments
from openai_responses_mcp.domain.strict_json import Members, parsed, why_unreadable
from openai_responses_mcp.domain.texts import without_surrogates

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603
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

JsonObject = dict[str, Any]
RequestId = int | str


class Request(NamedTuple):
    id: RequestId
    method: str
    params: JsonObject = {}  # noqa: RUF012 -- nobody writes to it


class Notification(NamedTuple):
    method: str
    params: JsonObject = {}  # noqa: RUF012 -- nobody writes to it


class BadMessage(NamedTuple):
    """Something to be refused, with the id where there is exactly one that can be used."""

    code: int
    message: str
    id: RequestId | None = None


Incoming = Request | Notification | BadMessage | None


def code_of(error: AnsweringError) -> int:
    return next(code for kind, code in _CODES if isinstance(error, kind))


def decode(body: bytes) -> Incoming:
    """None for what is never answered: responses, and objects without an id that are no notification either."""
    try:
        text = body.decode("utf-8")
        message = parsed(text)
        if "\\u" in text:
            message = _cleaned(message)
    except (ValueError, RecursionError) as exc:
        return BadMessage(PARSE_ERROR, f"Parse error: {why_unreadable(exc)}")
    if isinstance(message, Members):
        return _refuse_repeated_keys(message)
    if not isinstance(message, dict):
        return BadMessage(INVALID_REQUEST, "Invalid request: not a JSON object (batches are not supported)")
    return _classify(message)


def _classify(message: JsonObject) -> Incoming:
    if "id" not in message or _is_response(message):
        return _notification(message)
    request_id = message["id"]
    if not _is_usable_id(request_id):
        return BadMessage(INVALID_REQUEST, "Invalid request: id must be a string or a whole number")
    fault = _fault_in(message)
    if fault:
        return BadMessage(INVALID_REQUEST, f"Invalid request: {fault}", request_id)
    return Request(request_id, message["method"], message.get("params") or {})


def _is_response(message: JsonObject) -> bool:
    return "method" not in message and ("result" in message or "error" in message)


def _notification(message: JsonObject) -> Notification | None:
    if _fault_in(message):
        return None
    return Notification(message["method"], message.get("params") or {})


def _fault_in(message: JsonObject) -> str | None:
    if message.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if not isinstance(message.get("method"), str):
        return "method must be a string"
    if not isinstance(message.get("params"), dict | None):
        return "params must be an object"
    return None


def _refuse_repeated_keys(members: Members) -> BadMessage | None:
    ids = [value for key, value in members if key == "id"]
    if not ids or _is_response(dict(members)):
        return None
    usable = len(ids) == 1 and _is_usable_id(ids[0])
    return BadMessage(INVALID_REQUEST, "Invalid request: a key appears twice", ids[0] if usable else None)


def _is_usable_id(value: object) -> bool:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _cleaned(value: Any) -> Any:
    """json.loads lets a lone surrogate through, and no encoder takes one."""
    if isinstance(value, str):
        return without_surrogates(value)
    if isinstance(value, list | tuple):
        return type(value)(_cleaned(item) for item in value)
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
