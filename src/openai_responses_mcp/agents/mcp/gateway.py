"""MCP servers behind the gate: their configuration, the rules for their tools, and calls.

Nothing that a server sends is trusted. Its list is checked as a whole before any of it is used. Each tool is pinned by a
hash of its whole entry, so that a change after the approval is noticed. A failed call is retried only if the user listed
the tool as repeatable.
"""

import asyncio
import logging
import shlex
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Protocol, cast
from urllib.parse import urlsplit

from openai_responses_mcp.adapters.remote.wire import is_loopback
from openai_responses_mcp.agents.providers.settings import DEFAULT_TIMEOUT_MS
from openai_responses_mcp.gate.calls import is_risk_level
from openai_responses_mcp.gate.definitions import McpCapability, check_arguments, checked_capabilities, schema_error
from openai_responses_mcp.gate.errors import LONGEST_ID, AgentsError
from openai_responses_mcp.gate.json_values import JsonObject, JsonValue
from openai_responses_mcp.gate.schema.checking import SchemaChecker

MOST_REPETITIONS = 2
FIRST_PAUSE_SECONDS = 0.5

_logger = logging.getLogger("openai_responses_mcp.agents")

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class McpServerConfig:
    """A server to start with a `command`, or to reach at a `url`. Headers and variables may hold secrets."""

    name: str
    command: tuple[str, ...] = ()
    url: str = field(default="", repr=False)
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    env: Mapping[str, str] = field(default_factory=dict, repr=False)
    cwd: str | None = None
    timeout_ms: int = DEFAULT_TIMEOUT_MS

    @property
    def timeout_seconds(self) -> float:
        return self.timeout_ms / 1000


@dataclass(frozen=True, slots=True)
class McpServerHandle:
    server_id: str
    capabilities: tuple[McpCapability, ...]


@dataclass(frozen=True, slots=True)
class McpRules:
    """The user's rules for a server's tools: whether to ask, how risky they are, which may be retried."""

    require_approval: bool = True
    risk_levels: Mapping[str, int] = field(default_factory=dict)
    repeatable: Iterable[str] = frozenset()

    def __post_init__(self) -> None:
        levels: object = self.risk_levels
        repeatable: object = self.repeatable
        if type(self.require_approval) is not bool:
            raise schema_error("require_approval must be True or False")
        if not isinstance(levels, Mapping) or not all(map(is_risk_level, levels.values())):
            raise schema_error("risk_levels must give each tool a whole number from 1 to 5")
        if isinstance(repeatable, str) or not all(isinstance(name, str) for name in self.repeatable):
            raise schema_error("repeatable must be a list of names of tools")
        object.__setattr__(self, "repeatable", frozenset(self.repeatable))

    def risk_of(self, tool: str) -> int | None:
        return self.risk_levels.get(tool, self.risk_levels.get("*"))


class McpClient(Protocol):
    """A connection to one server, opened on first use and reopened after it broke.

    Raises `AGENTS-E-MCP-UNREACHABLE` if it cannot connect and `AGENTS-E-MCP-SCHEMA` if the list cannot be read. A call
    fails with `AGENTS-E-MCP-EXEC`. Its `reason` is `broken` if it is not known whether the tool ran, and `rejected` if
    the server answered with an error.
    """

    async def list_tools(self) -> list[JsonObject]:
        """The complete entries of `tools/list`."""
        ...

    async def call_tool(self, name: str, args: JsonObject) -> object: ...

    async def close(self) -> None: ...


class McpGateway:
    def __init__(
        self,
        open_client: Callable[[McpServerConfig], McpClient],
        schemas: SchemaChecker | None = None,
        *,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self._open = open_client
        self._schemas = schemas or SchemaChecker()
        self._sleep = sleep
        self._clients: dict[str, McpClient] = {}
        self._capabilities: dict[str, Mapping[str, McpCapability]] = {}

    async def register(self, config: McpServerConfig) -> McpServerHandle:
        """Connect and list the tools. Replaces a server of the same name."""
        client = self._open(config)
        try:
            capabilities = await _listed(config.name, client)
        except AgentsError:
            await client.close()
            raise
        await self._forget(config.name)
        self.attach(config.name, client, capabilities)
        return McpServerHandle(config.name, tuple(capabilities))

    def attach(self, server_id: str, client: McpClient, capabilities: Sequence[McpCapability] = ()) -> None:
        """Register a server without connecting; its client connects on first use."""
        self._clients[server_id] = client
        self._capabilities[server_id] = {one.name: one for one in capabilities}

    async def introspect(self, server_id: str) -> list[McpCapability]:
        return await _listed(server_id, self._client(server_id))

    async def call(self, server_id: str, tool: str, args: JsonObject, *, is_repeatable: bool = False) -> object:
        """Call a tool. Only for use behind the gate: nothing but the schema is checked here.

        A repeatable tool is retried up to twice if it is unknown whether the call ran. Arguments that do not fit a known
        schema are not sent.
        """
        client, shown = self._client(server_id), f"{server_id}/{tool}"
        capability = self._capabilities[server_id].get(tool)
        if capability is not None:
            await check_arguments(server_id, capability, args, self._schemas)
        for repetition in range(MOST_REPETITIONS + 1):
            began = time.monotonic()
            try:
                result = await client.call_tool(tool, args)
            except AgentsError as exc:
                _logger.debug("mcp call %s failed after %.0f ms", shown, (time.monotonic() - began) * 1000)
                was_answered = exc.details.get("reason") == "rejected"
                if was_answered or not is_repeatable or repetition == MOST_REPETITIONS:
                    raise
                await self._sleep(FIRST_PAUSE_SECONDS * 2**repetition)
            else:
                _logger.debug("mcp call %s took %.0f ms", shown, (time.monotonic() - began) * 1000)
                return result
        raise AssertionError("the loop above returns or raises")  # pragma: no cover

    async def close(self) -> None:
        for server_id in list(self._clients):
            await self._forget(server_id)

    async def _forget(self, server_id: str) -> None:
        client = self._clients.pop(server_id, None)
        self._capabilities.pop(server_id, None)
        if client is not None:
            await client.close()

    def _client(self, server_id: str) -> McpClient:
        if server_id not in self._clients:
            message = "No MCP server is registered under this id; register it first"
            raise AgentsError("AGENTS-E-MCP-UNREACHABLE", message)
        return self._clients[server_id]


async def _listed(server_id: str, client: McpClient) -> list[McpCapability]:
    # In a thread: a list may be long, and every schema in it is read.
    return await asyncio.to_thread(checked_capabilities, server_id, await client.list_tools())


# ---------------------------------------------------------------------------------------------------------------------
# How a user describes a server

# Programs that start another one, which is named in their arguments.
_LAUNCHERS = frozenset(
    {"npx", "uvx", "bunx", "pipx", "uv", "node", "deno", "docker", "python", "python3", "run", "tool"}
)


def config_from(server: object, name: str | None, timeout_ms: int) -> McpServerConfig:
    """From a command (a text or a list), a URL, or a mapping with `command`, `args`, `env`, `cwd` or `url`, `headers`."""
    given = dict(server) if isinstance(server, Mapping) else _parsed(server)
    unknown = sorted(set(given) - {"command", "args", "env", "cwd", "url", "headers", "name"})
    if unknown:
        known = "command, args, env, cwd, url, headers and name"
        raise schema_error(f"An MCP server is described by {known}, not by {', '.join(unknown)}")
    if bool(given.get("command")) == bool(given.get("url")):
        raise schema_error("An MCP server is described by a command or a url, and not by both")
    url = str(given.get("url") or "")
    if url:
        _check_url(url)
    command = (*_words(given.get("command")), *_words(given.get("args"))) if not url else ()
    return McpServerConfig(
        name=checked_name(name or given.get("name") or (urlsplit(url).netloc.lower() if url else _program_of(command))),
        command=command,
        url=url,
        headers=_texts(given.get("headers"), "headers"),
        env=_texts(given.get("env"), "env"),
        cwd=None if given.get("cwd") is None else str(given["cwd"]),
        timeout_ms=timeout_ms,
    )


def checked_name(name: object) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_ID or "/" in name or not name.isprintable():
        raise schema_error(f"An MCP server's name has 1 to {LONGEST_ID} characters and no slash; give one with name=")
    return name


def _parsed(server: object) -> dict[str, JsonValue]:
    if isinstance(server, str) and urlsplit(server).scheme in ("http", "https"):
        return {"url": server}
    if isinstance(server, str):
        try:
            return {"command": shlex.split(server)}
        except ValueError as exc:
            raise schema_error("The command of an MCP server has a quote that is not closed; give a list") from exc
    if isinstance(server, list | tuple):
        return {"command": server}
    raise schema_error(
        "Describe an MCP server by a command, a URL, a mapping with either, or a server object of the SDK"
    )


def _words(value: JsonValue) -> tuple[str, ...]:
    words = (value,) if isinstance(value, str) else tuple(cast(Iterable[object], value or ()))
    if not all(isinstance(word, str) for word in words):
        raise schema_error("The command of an MCP server is a text or a list of texts")
    return tuple(map(str, words))


def _texts(value: JsonValue, what: str) -> dict[str, str]:
    texts = dict(cast(Mapping[object, object], value or {}))
    if not all(isinstance(name, str) and isinstance(text, str) for name, text in texts.items()):
        raise schema_error(f"The {what} of an MCP server is a mapping from names to texts")
    return {str(name): str(text) for name, text in texts.items()}


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise schema_error("The url of an MCP server cannot be read; check its host and port") from exc
    if not host or parts.scheme not in ("http", "https"):
        raise schema_error("The url of an MCP server must be an https:// address with a host")
    if parts.scheme == "http" and not is_loopback(host):
        raise schema_error("The url of an MCP server must begin with https://; http:// is for this machine only")
    if parts.username is not None or parts.password is not None:
        raise schema_error("The url of an MCP server may not hold a user name or password; use headers")


def _program_of(command: Sequence[str]) -> str:
    """The name of the program that a launcher starts, without folder, extension, scope and version."""
    words = [PurePath(word).name for word in command if not word.startswith("-")]
    program = next((word for word in words if word.partition(".")[0] not in _LAUNCHERS), words[0] if words else "")
    return program.rpartition("@")[0] or program.removesuffix(".exe").removesuffix(".py").removesuffix(".js")
