"""How a client can be asked a question: by its protocol revision and its capabilities.

Up to 2025-11-25 a client declares its capabilities in `initialize`, and is asked with a request. From 2026-07-28 on,
every request declares them, and the client is asked in the reply, with `input_required`.
"""

from typing import Literal

from openai_responses_mcp.domain.jsonrpc import Request
from openai_responses_mcp.guard.messages import JsonObject, JsonValue, object_in

Way = Literal["elicitation", "input_required", "desk"]

FIRST_WITH_ENVELOPE = "2026-07-28"

_REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"


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
