"""What passes between a client and a server, read strictly: whatever two programs could read differently is refused.

`read` never raises. A body is a request, a notification or a reply, or it is unfit to be passed on. `wire` is what may
be sent to the other side: the body as it came, or the same message encoded anew if it holds a line end, because some
readers stop there. Keys have to be written exactly. A key that some parsers take for a known one (`Method`, `paramſ`)
makes the message unfit, because the other side may be such a parser.
"""

import json
import unicodedata
from typing import NamedTuple, TypeGuard

from openai_responses_mcp.agents.json_values import JsonValue as JsonValue
from openai_responses_mcp.domain.strict_json import Members, parsed, why_unreadable

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

JsonObject = dict[str, JsonValue]
RequestId = int | str

CALL, LIST = "tools/call", "tools/list"

_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)
_KEYS = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_CALL_KEYS = frozenset({"name", "arguments", "_meta", "inputResponses", "requestState", "task"})


class Request(NamedTuple):
    id: RequestId
    method: str
    params: JsonObject
    content: JsonObject
    wire: bytes


class Notification(NamedTuple):
    method: str
    params: JsonObject
    wire: bytes


class Reply(NamedTuple):
    """`result` is None where the reply is an error."""

    id: RequestId
    result: JsonValue
    error: JsonValue
    wire: bytes


class Unfit(NamedTuple):
    """Not to be passed on. With an `id`, the sender or whoever waits for the reply can be told why."""

    code: int
    reason: str
    id: RequestId | None = None
    is_reply: bool = False


Message = Request | Notification | Reply


def read(body: bytes) -> Message | Unfit:
    try:
        text = body.decode("utf-8")
        content: JsonValue = parsed(text)
    except (ValueError, RecursionError) as exc:
        return Unfit(PARSE_ERROR, f"Parse error: {why_unreadable(exc)}")
    if isinstance(content, Members):
        return _with_a_key_twice(content)
    if not isinstance(content, dict):
        return Unfit(INVALID_REQUEST, "Invalid request: not a JSON object (batches are not supported)")
    return _classified(content, body)


def encode(content: JsonObject) -> bytes:
    """One line of ASCII. Raises ValueError for a number that JSON has no word for."""
    return _ENCODER.encode(content).encode()


def error_reply(request_id: RequestId | None, code: int, message: str) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})


def result_reply(request_id: RequestId, result: JsonObject) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def request(request_id: RequestId, method: str, params: JsonObject) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification(method: str, params: JsonObject) -> bytes:
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def is_id(value: JsonValue) -> TypeGuard[RequestId]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def object_in(value: JsonValue) -> JsonObject:
    """The value where it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def cancelled_id(message: Notification) -> RequestId | None:
    found = message.params.get("requestId")
    return found if is_id(found) else None


# ---------------------------------------------------------------------------------------------------------------------
# Classifying


def _with_a_key_twice(members: Members) -> Unfit:
    ids = [value for key, value in members if key == "id"]
    keys = {key for key, _ in members}
    usable = ids[0] if len(ids) == 1 and is_id(ids[0]) else None
    is_reply = "method" not in keys and bool(keys & {"result", "error"})
    return Unfit(INVALID_REQUEST, "Invalid request: a key appears twice", usable, is_reply)


def _classified(content: JsonObject, body: bytes) -> Message | Unfit:
    is_reply = "method" not in content and ("result" in content or "error" in content)
    given = content.get("id")
    usable: RequestId | None = given if is_id(given) else None
    fault = _fault_in(content, is_reply)
    if fault:
        return Unfit(INVALID_REQUEST, f"Invalid request: {fault}", usable, is_reply)
    wire = encode(content) if b"\r" in body or b"\n" in body else body
    if is_reply:
        assert usable is not None  # noqa: S101 - a reply without a usable id is a fault
        return Reply(usable, content.get("result"), content.get("error"), wire)
    method, params = str(content["method"]), object_in(content.get("params"))
    if usable is None:
        return Notification(method, params, wire)
    return Request(usable, method, params, content, wire)


def _fault_in(content: JsonObject, is_reply: bool) -> str:
    if content.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    unclear = look_alike(content, _KEYS)
    if unclear:
        return f"some programs take the key {unclear} for another one"
    if "id" in content and not is_id(content["id"]):
        return "id must be a string or a whole number"
    return _fault_in_reply(content) if is_reply else _fault_in_request(content)


def _fault_in_reply(content: JsonObject) -> str:
    if "id" not in content:
        return "a reply needs an id"
    if "result" in content and "error" in content:
        return "a reply has a result or an error, not both"
    if "error" in content and not isinstance(content["error"], dict):
        return "error must be an object"
    return ""


def _fault_in_request(content: JsonObject) -> str:
    method = content.get("method")
    if not isinstance(method, str):
        return "method must be a string"
    if "result" in content or "error" in content:
        return "a message is a request or a reply, not both"
    if not isinstance(content.get("params"), dict | None):
        return "params must be an object"
    if method != CALL:
        return "method looks like tools/call and is not" if _squeezed(method) == CALL else ""
    if "id" not in content:
        return "tools/call needs an id"
    unclear = look_alike(object_in(content.get("params")), _CALL_KEYS)
    return f"some programs take the key {unclear} for another one" if unclear else ""


def look_alike(given: JsonObject, known: frozenset[str]) -> str:
    """The first unknown key that a careless parser takes for a known one."""
    strangers = [key for key in given if key not in known]
    if not strangers:
        return ""
    squeezed = {_squeezed(name) for name in known}
    return next((json.dumps(key) for key in strangers if _squeezed(key) in squeezed), "")


def _squeezed(text: str) -> str:
    """Without case, look-alike letters and invisible characters: some parsers stop at a NUL, some ignore case."""
    plain = unicodedata.normalize("NFKC", text.partition("\0")[0]).casefold()
    return "".join(letter for letter in plain if letter.isprintable() and letter != " ")
