"""Messages between client and server, read strictly: what two parsers could read differently is refused.

`read` never raises. A body is a request, a notification or a reply, or it is bad and not passed on. `wire` is what may
be sent to the other side: the body as it came, or the same message re-encoded if it holds a line end, because some
readers stop there. A key that some parsers take for a known one (`Method`, `paramſ`) makes the message bad, because
the other side may be such a parser.

Messages also say how a client can be asked a question. Up to 2025-11-25 a client declares its capabilities in
`initialize`, and is asked with a request. From 2026-07-28 on, every request declares them, and the client is asked in
the reply, with `input_required`.
"""

import json
from typing import Literal

from openai_responses_mcp.domain import jsonrpc
from openai_responses_mcp.domain.jsonrpc import (
    INVALID_REQUEST,
    BadMessage,
    Notification,
    Reply,
    Request,
    RequestId,
    is_id,
)
from openai_responses_mcp.gate.json_values import JsonValue as JsonValue
from openai_responses_mcp.gate.json_values import squeezed

JsonObject = dict[str, JsonValue]
Way = Literal["elicitation", "input_required", "desk"]

CALL, LIST = "tools/call", "tools/list"
MOST_LEVELS = 100
FIRST_WITH_ENVELOPE = "2026-07-28"

_REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_ENCODER = json.JSONEncoder(separators=(",", ":"), allow_nan=False, check_circular=False)
_KEYS = frozenset({"jsonrpc", "id", "method", "params", "result", "error"})
_CALL_KEYS = frozenset({"name", "arguments", "_meta", "inputResponses", "requestState", "task"})


Message = Request | Notification | Reply


def read(body: bytes) -> Message | BadMessage:
    message = jsonrpc.read(body)
    if isinstance(message, BadMessage):
        return message
    fault = _fault_in(message)
    if fault:
        request_id = None if isinstance(message, Notification) else message.id
        is_reply = isinstance(message, Reply)
        return BadMessage(INVALID_REQUEST, f"Invalid request: {fault}", request_id, is_reply)
    return message._replace(wire=encode(message.content)) if b"\r" in body or b"\n" in body else message


def encode(content: JsonObject) -> bytes:
    """One line of ASCII. Raises ValueError for a number that JSON has no word for."""
    return _ENCODER.encode(content).encode()


def error_reply(request_id: RequestId | None, code: int, message: str) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "error": {"code": code, "message": message}})


def failed_reply(request_id: RequestId, code: int, message: str) -> Reply:
    """An error in place of a reply that is not passed on."""
    wire = error_reply(request_id, code, message)
    return Reply(request_id, None, {"code": code}, wire=wire)


def result_reply(request_id: RequestId, result: JsonObject) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "result": result})


def request(request_id: RequestId, method: str, params: JsonObject) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification(method: str, params: JsonObject) -> bytes:
    return encode({"jsonrpc": "2.0", "method": method, "params": params})


def object_in(value: JsonValue) -> JsonObject:
    """The value if it is an object, else an empty one."""
    return value if isinstance(value, dict) else {}


def with_note(reply: Reply, note: str) -> bytes:
    """The reply with a note for the model in front of what the tool says."""
    result = object_in(reply.result)
    content = result.get("content")
    if not note or not isinstance(content, list):
        return reply.wire
    return result_reply(reply.id, {**result, "content": [{"type": "text", "text": note}, *content]})


def is_deeper_than(levels: int, value: JsonValue) -> bool:
    """Without recursion, which deep nesting would break."""
    layer = [value]
    for _ in range(levels):
        layer = [
            inner
            for one in layer
            if isinstance(one, dict | list)
            for inner in (one.values() if isinstance(one, dict) else one)
        ]
        if not layer:
            return False
    return True


def cancelled_id(message: Notification) -> RequestId | None:
    found = message.params.get("requestId")
    return found if is_id(found) else None


def _fault_in(message: Message) -> str:
    unclear = look_alike(message.content, _KEYS)
    if not unclear and isinstance(message, Request) and message.method == CALL:
        unclear = look_alike(message.params, _CALL_KEYS)
    if unclear:
        return f"some programs take the key {unclear} for another one"
    if isinstance(message, Reply):
        return ""
    if "result" in message.content or "error" in message.content:
        return "a message is a request or a reply, not both"
    if message.method != CALL:
        return "method looks like tools/call and is not" if squeezed(message.method) == CALL else ""
    return "tools/call needs an id" if isinstance(message, Notification) else ""


def look_alike(given: JsonObject, known: frozenset[str]) -> str:
    """The first unknown key that a careless parser takes for a known one."""
    strangers = [key for key in given if key not in known]
    if not strangers:
        return ""
    taken = {squeezed(name) for name in known}
    return next((json.dumps(key) for key in strangers if squeezed(key) in taken), "")


# ---------------------------------------------------------------------------------------------------------------------
# What a message says about its client


def has_envelope(params: JsonObject) -> bool:
    """Whether the request names a revision that has no handshake."""
    revision = _meta(params).get(_REVISION_KEY)
    return isinstance(revision, str) and revision >= FIRST_WITH_ENVELOPE


def envelope_of(params: JsonObject) -> JsonObject:
    """The part of a request's `_meta` that a request of the guard's own needs too."""
    kept = {key: value for key, value in _meta(params).items() if key.startswith("io.modelcontextprotocol/")}
    return {"_meta": kept} if has_envelope(params) else {}


def progress_token_of(params: JsonObject) -> int | str | None:
    """None for invalid types: a strict client could crash on them."""
    token = _meta(params).get("progressToken")
    return token if isinstance(token, int | str) and not isinstance(token, bool) else None


class ClientWays:
    def __init__(self) -> None:
        self._declared: JsonValue = None
        self._revision = ""
        self._has_failed = False
        self.server_tells_of_tools = False

    def note_initialize(self, request: Request, result: JsonValue) -> None:
        """The handshake, with what the server answered."""
        self._declared = request.params.get("capabilities")
        revision = result.get("protocolVersion") if isinstance(result, dict) else None
        self._revision = revision if isinstance(revision, str) else ""
        declared = object_in(object_in(object_in(result).get("capabilities")).get("tools"))
        self.server_tells_of_tools = declared.get("listChanged") is True

    def note_failure(self) -> None:
        """The client answered a question with an error. It is not asked again."""
        self._has_failed = True

    def way_for(self, params: JsonObject) -> Way:
        if self._has_failed:
            return "desk"
        if has_envelope(params):
            takes_forms = _takes_forms(_meta(params).get(_CAPABILITIES_KEY))
            return "input_required" if takes_forms else "desk"
        # Only the client's declaration counts: an older server may not know elicitation.
        is_asked = self._revision < FIRST_WITH_ENVELOPE and _takes_forms(self._declared)
        return "elicitation" if is_asked else "desk"


def _takes_forms(capabilities: JsonValue) -> bool:
    declared = capabilities.get("elicitation") if isinstance(capabilities, dict) else None
    # In older revisions an empty object means forms; a client that only opens links declares "url".
    return isinstance(declared, dict) and ("form" in declared or "url" not in declared)


def _meta(params: JsonObject) -> JsonObject:
    return object_in(params.get("_meta"))
