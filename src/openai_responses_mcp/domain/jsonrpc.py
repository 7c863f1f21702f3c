"""JSON and JSON-RPC 2.0 as they arrive: the one reader of each, for the server, the guard and transports.

JSON is read as every program reads it, or not at all. A key twice in one object is refused, because some programs take
its first value and some its last. NaN, numbers that are infinite as a float, and a byte order mark are refused too.

`read` never raises. A body is a request, a notification, a reply, or bad.
"""

import json
from typing import Any, NamedTuple, NoReturn, TypeGuard

Members = list[tuple[str, Any]]


class UnreadableJson(ValueError):
    """`str(error)` says why, in plain words."""


class KeyTwice(UnreadableJson):
    """An object has a key twice. `members` is the outermost object as it was written, empty where there is none."""

    def __init__(self, members: Members) -> None:
        super().__init__("a key appears twice")
        self.members = members


def read_json(text: str | bytes) -> Any:
    """As `json.loads`, but strict. Bytes have to be UTF-8. Raises `UnreadableJson`."""
    try:
        if isinstance(text, bytes):
            text = text.decode("utf-8")
        if text.startswith("\ufeff"):
            raise ValueError("it begins with a byte order mark (BOM)")
        try:
            return _DECODER.decode(text)
        except _Repeated:
            written = _WRITTEN.decode(text)
            raise KeyTwice(written if isinstance(written, _Written) else []) from None
    except UnreadableJson:
        raise
    except (ValueError, RecursionError) as exc:
        raise UnreadableJson(why_unreadable(exc)) from exc


def why_unreadable(error: Exception) -> str:
    """Of a text that could not be decoded or parsed."""
    if isinstance(error, RecursionError):
        return "nesting too deep"
    if isinstance(error, UnicodeDecodeError):
        return f"not UTF-8 at byte {error.start}"
    # Python refuses longer numbers, in words for programmers.
    return "a number has too many digits" if "digits" in str(error) else str(error)


class _Repeated(Exception):
    """An object has a key twice."""


class _Written(Members):
    """An object as it was written."""


def _each_once(members: Members) -> dict[str, Any]:
    as_object = dict(members)
    if len(as_object) != len(members):
        raise _Repeated
    return as_object


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _finite(text: str) -> float:
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise ValueError("a number is too large")
    return number


# Made once: making one takes nearly as long as using it.
_DECODER = json.JSONDecoder(object_pairs_hook=_each_once, parse_constant=_refuse_constant, parse_float=_finite)
_WRITTEN = json.JSONDecoder(object_pairs_hook=_Written, parse_constant=_refuse_constant, parse_float=_finite)

PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
INTERNAL_ERROR = -32603

JsonObject = dict[str, Any]
RequestId = int | str


class Request(NamedTuple):
    """`content` is the whole message, `wire` its bytes as they came."""

    id: RequestId
    method: str
    params: JsonObject = {}  # noqa: RUF012 -- never written to
    content: JsonObject = {}  # noqa: RUF012 -- never written to
    wire: bytes = b""


class Notification(NamedTuple):
    method: str
    params: JsonObject = {}  # noqa: RUF012 -- never written to
    content: JsonObject = {}  # noqa: RUF012 -- never written to
    wire: bytes = b""


class Reply(NamedTuple):
    """`result` is None where the reply is an error."""

    id: RequestId
    result: Any
    error: Any
    content: JsonObject = {}  # noqa: RUF012 -- never written to
    wire: bytes = b""


class BadMessage(NamedTuple):
    """A message to reject, with its id if it has exactly one usable id.

    `is_answered` is False for a reply and for a message without an id: neither gets an error back.
    """

    code: int
    message: str
    id: RequestId | None = None
    is_reply: bool = False
    is_answered: bool = True


Message = Request | Notification | Reply | BadMessage


def read(body: bytes) -> Message:
    try:
        content = read_json(body)
    except KeyTwice as exc:
        return _with_a_key_twice(exc.members)
    except UnreadableJson as exc:
        return BadMessage(PARSE_ERROR, f"Parse error: {exc}")
    if not isinstance(content, dict):
        return BadMessage(INVALID_REQUEST, "Invalid request: not a JSON object (batches are not supported)")
    is_reply = _is_reply(content)
    given = content.get("id")
    usable = given if is_id(given) else None
    fault = _fault_in(content, is_reply=is_reply)
    if fault:
        text = f"Invalid request: {fault}"
        return BadMessage(INVALID_REQUEST, text, usable, is_reply, is_answered="id" in content and not is_reply)
    if is_reply and usable is not None:
        return Reply(usable, content.get("result"), content.get("error"), content, body)
    params = content.get("params") or {}
    if usable is None:
        return Notification(content["method"], params, content, body)
    return Request(usable, content["method"], params, content, body)


def is_id(value: object) -> TypeGuard[RequestId]:
    return isinstance(value, str | int) and not isinstance(value, bool)


def _with_a_key_twice(members: Members) -> BadMessage:
    ids = [value for key, value in members if key == "id"]
    is_reply = _is_reply(dict(members))
    usable = ids[0] if len(ids) == 1 and is_id(ids[0]) else None
    text = "Invalid request: a key appears twice"
    return BadMessage(INVALID_REQUEST, text, usable, is_reply, is_answered=bool(ids) and not is_reply)


def _is_reply(content: JsonObject) -> bool:
    return "method" not in content and ("result" in content or "error" in content)


def _fault_in(content: JsonObject, *, is_reply: bool) -> str | None:
    if "id" in content and not is_id(content["id"]):
        return "id must be a string or a whole number"
    if content.get("jsonrpc") != "2.0":
        return 'jsonrpc must be "2.0"'
    if is_reply:
        if "id" not in content:
            return "a reply needs an id"
        if "result" in content and "error" in content:
            return "a reply has a result or an error, not both"
        return None if isinstance(content.get("error", {}), dict) else "error must be an object"
    if not isinstance(content.get("method"), str):
        return "method must be a string"
    return None if isinstance(content.get("params"), dict | None) else "params must be an object"
