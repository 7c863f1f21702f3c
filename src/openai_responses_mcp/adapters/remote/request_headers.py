"""The headers of a request to a remote MCP server, from the message that it carries.

From 2026-07-28 on, headers repeat what the body says: the revision, the method, the name of what is called, and the
arguments that the tool's schema marks with `x-mcp-header`. The older revisions have a session instead.
"""

import base64
import re
from collections.abc import Iterator, Mapping
from typing import Any

from openai_responses_mcp.domain.jsonrpc import Notification, Request

SESSION, VERSION = "mcp-session-id", "mcp-protocol-version"

_REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"} | dict.fromkeys(
    ("tasks/get", "tasks/cancel", "tasks/update", "tasks/result"), "taskId"
)
_PLAIN = re.compile(r"[\x20-\x7e]*")
_WRAPPED = re.compile(r"=\?base64\?.*\?=")
_FIELD_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_MOST_TOOLS = 10_000

ArgumentPath = tuple[str, ...]


def revision_of(message: Request | Notification) -> str:
    """The revision that the message itself names; empty in the older eras, which agree on it once."""
    meta = message.params.get("_meta")
    revision = meta.get(_REVISION_KEY) if isinstance(meta, dict) else None
    return revision if isinstance(revision, str) else ""


class EnvelopeHeaders:
    """Remembers which arguments of which tools are repeated in headers."""

    def __init__(self) -> None:
        self._arguments: dict[str, dict[ArgumentPath, str]] = {}

    def note_tools(self, result: Any) -> None:
        """The result of a `tools/list`."""
        tools = result.get("tools") if isinstance(result, dict) else None
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
                marked = dict(_marked(tool.get("inputSchema"), ()))
                if marked and len(self._arguments) < _MOST_TOOLS:
                    self._arguments[name] = marked
                else:
                    self._arguments.pop(name, None)

    def of(self, message: Request | Notification, revision: str) -> dict[str, str]:
        headers = {VERSION: revision, "mcp-method": _encoded(message.method)}
        name = message.params.get(_NAMES.get(message.method, ""))
        if isinstance(name, str):
            headers["mcp-name"] = _encoded(name)
        if message.method == "tools/call" and isinstance(name, str):
            arguments = message.params.get("arguments")
            for path, field in self._arguments.get(name, {}).items():
                text = _as_text(_value_at(arguments, path))
                if text is not None:
                    headers[f"mcp-param-{field.lower()}"] = _encoded(text)
        return headers


def _marked(schema: Any, path: ArgumentPath) -> Iterator[tuple[ArgumentPath, str]]:
    properties = schema.get("properties") if isinstance(schema, dict) and len(path) < 32 else None
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        field = inner.get("x-mcp-header") if isinstance(inner, dict) else None
        if isinstance(field, str) and _FIELD_NAME.fullmatch(field):
            yield (*path, name), field
        yield from _marked(inner, (*path, name))


def _value_at(arguments: Any, path: ArgumentPath) -> Any:
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, Mapping) else None
    return arguments


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    try:
        return str(value) if isinstance(value, str | int | float) else None
    except ValueError:  # Python writes no number with thousands of digits.
        return None


def _encoded(text: str) -> str:
    """What no header can carry is wrapped in base64, as the specification says."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="
