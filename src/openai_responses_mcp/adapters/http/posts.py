"""One POST of Streamable HTTP, read and checked without I/O: its message, the era it speaks, or why it is refused.

From 2026-07-28 on, headers repeat what the body says, so that proxies can route without reading it. A header that
differs from the body is refused, because a proxy and the server would act on different requests.
"""

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from openai_responses_mcp.adapters.remote.wire import NAMES, REVISION_KEY, TASK_NAMES, decoded
from openai_responses_mcp.domain.jsonrpc import (
    INVALID_PARAMS,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    BadMessage,
    Message,
    Notification,
    Request,
    RequestId,
    read,
)

ENVELOPE_REVISION = "2026-07-28"
HANDSHAKE_REVISIONS = ("2025-11-25", "2025-06-18", "2025-03-26")

HEADER_MISMATCH = -32020
MISSING_CLIENT_CAPABILITY = -32021
UNSUPPORTED_PROTOCOL_VERSION = -32022
REQUEST_CANCELLED = -32800

_VERSION_HEADER, _METHOD_HEADER, _NAME_HEADER = "mcp-protocol-version", "mcp-method", "mcp-name"
_ROUTING_HEADERS = (_VERSION_HEADER, _METHOD_HEADER, _NAME_HEADER)
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"

_STATUS = {
    METHOD_NOT_FOUND: 404,
    PARSE_ERROR: 400,
    INVALID_REQUEST: 400,
    INVALID_PARAMS: 400,
    HEADER_MISMATCH: 400,
    MISSING_CLIENT_CAPABILITY: 400,
    UNSUPPORTED_PROTOCOL_VERSION: 400,
}

Headers = Sequence[tuple[str, str]]
"""In the order they came, with names in lower case."""


class Refusal(NamedTuple):
    """`code` is that of the JSON-RPC error in the body."""

    status: int
    reason: str
    code: int = INVALID_REQUEST
    id: RequestId | None = None
    data: Any = None

    @property
    def body(self) -> bytes:
        return error_body(self.id, self.code, self.reason, self.data)


class Post(NamedTuple):
    message: Message
    body: bytes
    is_envelope: bool

    @property
    def is_answered(self) -> bool:
        """True if a JSON-RPC reply follows."""
        return isinstance(self.message, Request) or (isinstance(self.message, BadMessage) and self.message.is_answered)

    @property
    def request_id(self) -> RequestId | None:
        return self.message.id if isinstance(self.message, Request | BadMessage) else None

    @property
    def opens_session(self) -> bool:
        return not self.is_envelope and isinstance(self.message, Request) and self.message.method == "initialize"

    @property
    def wants_progress(self) -> bool:
        meta = self.message.params.get("_meta") if isinstance(self.message, Request) else None
        return isinstance(meta, dict) and "progressToken" in meta

    def status_of(self, error_code: int | None) -> int:
        """In the older eras the status of every reply is 200."""
        return _STATUS.get(error_code, 200) if self.is_envelope and error_code is not None else 200


def error_body(request_id: RequestId | None, code: int, message: str, data: Any = None) -> bytes:
    error: dict[str, Any] = {"code": code, "message": message}
    if data is not None:
        error["data"] = data
    return json.dumps({"jsonrpc": "2.0", "id": request_id, "error": error}, separators=(",", ":")).encode()


def revision_in(headers: Headers) -> str | None:
    return next((value for name, value in headers if name == _VERSION_HEADER), None)


def is_envelope_era(headers: Headers) -> bool:
    """By the headers alone. An unknown revision counts as the newer era."""
    revision = revision_in(headers)
    return revision is not None and revision not in HANDSHAKE_REVISIONS


def read_post(headers: Headers, body: bytes) -> Post | Refusal:
    message = read(body)
    meta = message.params.get("_meta") if isinstance(message, Request) else None
    says_envelope = isinstance(meta, dict) and REVISION_KEY in meta
    if not is_envelope_era(headers) and not says_envelope:
        return Post(message, body, is_envelope=False)
    refusal = _refusal_of(message, meta, headers)
    return refusal or Post(message, body, is_envelope=True)


def _refusal_of(message: Message, meta: Any, headers: Headers) -> Refusal | None:
    revision = revision_in(headers)
    if isinstance(message, Notification):
        if revision == ENVELOPE_REVISION:
            return None
        data = {"supported": [ENVELOPE_REVISION], "requested": revision}
        return Refusal(400, "Unsupported protocol version", UNSUPPORTED_PROTOCOL_VERSION, data=data)
    if not isinstance(message, Request):
        return None
    names = [name for name, _ in headers]
    twice = next((name for name in _ROUTING_HEADERS if names.count(name) > 1), None)
    if twice is not None:
        return Refusal(400, f"the header {twice} is given more than once", HEADER_MISMATCH, message.id)
    missing = [key for key in (REVISION_KEY, _CAPABILITIES_KEY) if not isinstance(meta, dict) or key not in meta]
    if missing:
        return Refusal(400, f"params._meta needs {' and '.join(missing)}", INVALID_PARAMS, message.id)
    differing = _differing_header(message, meta[REVISION_KEY], dict(headers))
    if differing is not None:
        return Refusal(400, f"the header {differing} differs from the body", HEADER_MISMATCH, message.id)
    return None


def _differing_header(request: Request, revision: Any, headers: dict[str, str]) -> str | None:
    if headers.get(_VERSION_HEADER) != revision:
        return _VERSION_HEADER
    if headers.get(_METHOD_HEADER) != request.method:
        return _METHOD_HEADER
    given = headers.get(_NAME_HEADER)
    names = NAMES if given is None else {**NAMES, **TASK_NAMES}
    name = request.params.get(names.get(request.method, ""))
    is_differing = name is not None and (given is None or decoded(given) != name)
    return _NAME_HEADER if is_differing else None
