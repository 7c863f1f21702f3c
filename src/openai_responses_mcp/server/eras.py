"""The two eras of the protocol, distinguished request by request.

Up to 2025-06-18 a client opens with `initialize`. From 2026-07-28 on there is no handshake: every request carries its
revision and capabilities in `params._meta`. One connection may use both in turn.
"""

from typing import Literal, NamedTuple

from openai_responses_mcp import __version__
from openai_responses_mcp.domain.jsonrpc import INVALID_PARAMS, METHOD_NOT_FOUND, JsonObject, Request
from openai_responses_mcp.server.jsonrpc import UNSUPPORTED_PROTOCOL_VERSION
from openai_responses_mcp.server.tools import RESULT_TOOL

HANDSHAKE_REVISION = "2025-06-18"
ENVELOPE_REVISION = "2026-07-28"
# Over HTTP a revision in between is supported too. It differs only in the transport.
HTTP_HANDSHAKES = ("2025-11-25", HANDSHAKE_REVISION)
SUPPORTED_REVISIONS = (ENVELOPE_REVISION, HANDSHAKE_REVISION)

_REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_CLIENT_INFO_KEY = "io.modelcontextprotocol/clientInfo"
_SERVER_INFO_KEY = "io.modelcontextprotocol/serverInfo"

TASKS_EXTENSION = "io.modelcontextprotocol/tasks"

SERVER_INFO = {"name": "openai-responses-mcp", "title": "OpenAI Responses MCP", "version": __version__}

# The tools change only with a restart, which a client notices. An hour saves requests.
_CACHE_HINTS = {"ttlMs": 3_600_000, "cacheScope": "private"}


class Era(NamedTuple):
    """What differs between the eras."""

    revision: str
    methods: frozenset[str]
    unknown_tool_code: int
    returns_failures_as_results: bool
    stamps_results: bool

    def result(self, payload: JsonObject, *, is_cacheable: bool = False) -> JsonObject:
        if not self.stamps_results:
            return payload
        meta = {**payload.get("_meta", {}), _SERVER_INFO_KEY: SERVER_INFO}
        hints = _CACHE_HINTS if is_cacheable else {}
        return {"resultType": "complete", **payload, **hints, "_meta": meta}


HANDSHAKE = Era(
    revision=HANDSHAKE_REVISION,
    methods=frozenset({"initialize", "ping", "tools/list", "tools/call"}),
    unknown_tool_code=METHOD_NOT_FOUND,
    returns_failures_as_results=False,
    stamps_results=False,
)
ENVELOPE = Era(
    revision=ENVELOPE_REVISION,
    methods=frozenset({"server/discover", "tools/list", "tools/call", "tasks/get", "tasks/cancel", "tasks/update"}),
    unknown_tool_code=INVALID_PARAMS,
    returns_failures_as_results=True,
    stamps_results=True,
)


class EnvelopeFault(NamedTuple):
    code: int
    message: str
    data: JsonObject | None = None


def era_of(request: Request) -> Era | EnvelopeFault:
    meta = request.params.get("_meta")
    if not isinstance(meta, dict) or _REVISION_KEY not in meta:
        if request.method == "server/discover":
            return EnvelopeFault(INVALID_PARAMS, f"server/discover needs _meta with {_REVISION_KEY}")
        return HANDSHAKE
    revision = meta[_REVISION_KEY]
    if not isinstance(revision, str):
        return EnvelopeFault(INVALID_PARAMS, f"{_REVISION_KEY} must be a string")
    if revision not in SUPPORTED_REVISIONS:
        data = {"supported": list(SUPPORTED_REVISIONS), "requested": revision}
        return EnvelopeFault(UNSUPPORTED_PROTOCOL_VERSION, "Unsupported protocol version", data)
    if not isinstance(meta.get(_CAPABILITIES_KEY), dict):
        return EnvelopeFault(INVALID_PARAMS, f"_meta needs {_CAPABILITIES_KEY}, an object")
    return ENVELOPE


HandOver = float | Literal["auto"] | None

# Some clients give up after a minute. This leaves ten seconds.
USUAL_HAND_OVER_SECONDS = 50.0

IMPATIENT: dict[str, str] = {
    "claude-ai": "Claude Desktop calls itself so; it ends a call after a minute, whatever progress it gets",
}
"""Clients that give up while research is still running, by name, with the reason."""


class CallingClient(NamedTuple):
    """The client of one request, as far as it decides how the request is answered."""

    era: Era
    takes_tasks: bool = False
    hand_over_seconds: float | None = None
    may_fetch: bool = False
    caller: str = ""


class ClientOfConnection:
    """Remembers the client's name, which comes with the handshake in one era, and with any request in the other."""

    def __init__(self, hand_over: HandOver, tool_names: tuple[str, ...]) -> None:
        self._hand_over = hand_over
        self._tool_names = tool_names
        self._name: str | None = None

    def seen_in(self, request: Request, era: Era, caller: str = "") -> CallingClient:
        self._name = _maybe_name(request, era) or self._name
        seconds = self._hand_over
        if seconds == "auto":
            seconds = USUAL_HAND_OVER_SECONDS if self._name in IMPATIENT else None
        return CallingClient(
            era,
            takes_tasks=era is ENVELOPE and _declares_tasks(request),
            hand_over_seconds=seconds,
            may_fetch=seconds is not None or RESULT_TOOL in self._tool_names,
            caller=caller,
        )


def _declares_tasks(request: Request) -> bool:
    extensions = request.params["_meta"][_CAPABILITIES_KEY].get("extensions")
    return isinstance(extensions, dict) and isinstance(extensions.get(TASKS_EXTENSION), dict)


def _maybe_name(request: Request, era: Era) -> str | None:
    """The client's own name, if this request gives one. The values may have any type."""
    if era is ENVELOPE:
        info = request.params["_meta"].get(_CLIENT_INFO_KEY)
    else:
        info = request.params.get("clientInfo") if request.method == "initialize" else None
    name = info.get("name") if isinstance(info, dict) else None
    return name if isinstance(name, str) else None
