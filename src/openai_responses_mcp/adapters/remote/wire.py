"""The wire to a remote MCP server, without I/O: its address and the headers of a request.

Imports nothing slow: the command line checks `--url` with it.
"""

import base64
import binascii
import ipaddress
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from openai_responses_mcp.domain.jsonrpc import Notification, Request

SESSION, VERSION = "mcp-session-id", "mcp-protocol-version"

REVISION_KEY = "io.modelcontextprotocol/protocolVersion"
# Method -> the parameter that the header Mcp-Name repeats. For tasks, servers do not require it.
NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
TASK_NAMES = dict.fromkeys(("tasks/get", "tasks/cancel", "tasks/update", "tasks/result"), "taskId")

_PLAIN = re.compile(r"[\x20-\x7e]*")
_WRAPPED = re.compile(r"=\?base64\?(.*)\?=")
_FIELD_NAME = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]{1,128}")
_MOST_TOOLS = 10_000

ArgumentPath = tuple[str, ...]


class RemoteFault(Exception):
    """The exchange failed; the text is for the user. `status` is that of the response, 0 if there was none."""

    def __init__(self, text: str, status: int = 0) -> None:
        super().__init__(text)
        self.status = status


# ---------------------------------------------------------------------------------------------------------------------
# The address


class WrongAddress(Exception):
    """What is wrong with the URL: the text has no subject, and never repeats the URL."""


class RemoteAddress(NamedTuple):
    """`host` names the server in messages: the host name, with the port if the URL has one."""

    url: str
    name: str
    host: str
    is_loopback: bool


def remote_address(url: str) -> RemoteAddress:
    """Raises `WrongAddress`."""
    if not url.isascii() or not url.isprintable() or " " in url:
        raise WrongAddress("contains characters that are not allowed in a URL")
    try:
        parts = urlsplit(url)
        name, port = parts.hostname or "", parts.port
    except ValueError:
        raise WrongAddress("is not a URL") from None
    if parts.scheme not in ("http", "https") or not name:
        raise WrongAddress("is the whole address of an MCP server, such as https://example.com/mcp")
    if parts.username is not None or parts.password is not None:
        raise WrongAddress("contains a user name or a password; give them with --header-env")
    if parts.fragment:
        raise WrongAddress("has a part after #, which is never sent to a server")
    is_here = is_loopback(name)
    if parts.scheme == "http" and not is_here:
        raise WrongAddress("has to begin with https://; http:// is for servers on this machine only")
    return RemoteAddress(url, name, name if port is None else f"{name}:{port}", is_here)


def is_loopback(host: str) -> bool:
    """Takes IPv6 addresses with and without brackets."""
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return host == "localhost"


# ---------------------------------------------------------------------------------------------------------------------
# Headers. From 2026-07-28 on they repeat parts of the body: the revision, the method, the name of the tool, and the
# arguments that the tool's schema marks with `x-mcp-header`. The older revisions have a session instead.


def revision_of(message: Request | Notification) -> str:
    """The revision that the message itself names; empty in the older eras, where it is agreed on once."""
    meta = message.params.get("_meta")
    revision = meta.get(REVISION_KEY) if isinstance(meta, dict) else None
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
                marked = dict(_header_arguments(tool.get("inputSchema"), ()))
                if marked and len(self._arguments) < _MOST_TOOLS:
                    self._arguments[name] = marked
                else:
                    self._arguments.pop(name, None)

    def of(self, message: Request | Notification, revision: str) -> dict[str, str]:
        headers = {VERSION: revision, "mcp-method": _encoded(message.method)}
        name = message.params.get({**NAMES, **TASK_NAMES}.get(message.method, ""))
        if isinstance(name, str):
            headers["mcp-name"] = _encoded(name)
        texts = self._texts(message) if isinstance(message, Request) else {}
        return {**headers, **{field: _encoded(text) for field, text in texts.items() if text is not None}}

    def differing(self, request: Request, headers: Sequence[tuple[str, str]]) -> str | None:
        """The first argument header that differs from the body. Tools that were not listed have no such headers."""
        for field, text in self._texts(request).items():
            given = [decoded(value) for name, value in headers if name == field]
            if given != ([] if text is None else [text]):
                return field
        return None

    def _texts(self, request: Request) -> dict[str, str | None]:
        """By header, the text of the argument that it repeats; None if the call does not have this argument."""
        marked = self._arguments.get(str(request.params.get("name")), {}) if request.method == "tools/call" else {}
        arguments = request.params.get("arguments")
        return {f"mcp-param-{field.lower()}": _as_text(_value_at(arguments, path)) for path, field in marked.items()}


def _header_arguments(schema: Any, path: ArgumentPath) -> Iterator[tuple[ArgumentPath, str]]:
    properties = schema.get("properties") if isinstance(schema, dict) and len(path) < 32 else None
    for name, inner in properties.items() if isinstance(properties, dict) else ():
        field = inner.get("x-mcp-header") if isinstance(inner, dict) else None
        if isinstance(field, str) and _FIELD_NAME.fullmatch(field):
            yield (*path, name), field
        yield from _header_arguments(inner, (*path, name))


def _value_at(arguments: Any, path: ArgumentPath) -> Any:
    for key in path:
        arguments = arguments.get(key) if isinstance(arguments, Mapping) else None
    return arguments


def _as_text(value: Any) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    try:
        return str(value) if isinstance(value, str | int | float) else None
    except ValueError:  # Python refuses to write numbers with thousands of digits.
        return None


def _encoded(text: str) -> str:
    """Wrap text in base64 if it is not valid in a header, as the specification says."""
    if _PLAIN.fullmatch(text) and text == text.strip() and not _WRAPPED.fullmatch(text):
        return text
    return f"=?base64?{base64.b64encode(text.encode('utf-8', 'surrogatepass')).decode()}?="


def decoded(value: str) -> str | None:
    """The reverse of `_encoded`; None if the base64 is invalid."""
    wrapped = _WRAPPED.fullmatch(value)
    if wrapped is None:
        return value
    try:
        return base64.b64decode(wrapped[1], validate=True).decode()
    except (binascii.Error, ValueError):
        return None
