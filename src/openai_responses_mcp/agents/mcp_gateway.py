"""MCP servers below the gate: registering them, asking what they can do, calling their tools.

Everything that a server says is data. Its list is checked as a whole before any of it is used, and each tool is pinned
by a hash of its whole entry, so that a definition which changed after it was approved is seen. A failed call is made
again only where the user said that the tool may be repeated.
"""

import asyncio
import logging
import shlex
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePath
from typing import Any, Protocol
from urllib.parse import urlsplit

from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.hashing import digest
from openai_responses_mcp.agents.models import LONGEST_ID, is_risk_level
from openai_responses_mcp.agents.providers import DEFAULT_TIMEOUT_MS, is_loopback

MOST_REPETITIONS = 2
FIRST_PAUSE_SECONDS = 0.5
MOST_TOOLS = 1_000

# Programs that only start what comes after them.
_LAUNCHERS = frozenset(
    {"npx", "uvx", "bunx", "pipx", "uv", "node", "deno", "docker", "python", "python3", "run", "tool"}
)

_logger = logging.getLogger("openai_responses_mcp.agents")

Sleep = Callable[[float], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class McpServerConfig:
    """A server: a `command` with its arguments, or the `url` of one. Headers and variables may hold secrets."""

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
class McpCapability:
    """One tool of a server; `entry` is all that the server says about it, `pin` the hash of that."""

    name: str
    description: str
    schema: Mapping[str, Any]
    entry: Mapping[str, Any]

    @property
    def pin(self) -> str:
        return digest("mcp-tool", self.entry)


@dataclass(frozen=True, slots=True)
class McpServerHandle:
    server_id: str
    capabilities: tuple[McpCapability, ...]


class McpClient(Protocol):
    """A connection to one server, opened when it is needed and opened again after it broke.

    Raises `AGENTS-E-MCP-UNREACHABLE` where no connection can be had and `AGENTS-E-MCP-SCHEMA` where the list cannot be
    read. A call fails with `AGENTS-E-MCP-EXEC`; its `reason` is `broken` when it is not known whether the tool ran, and
    `rejected` when the server answered with an error.
    """

    async def list_tools(self) -> list[Mapping[str, Any]]:
        """The entries of `tools/list`, whole."""
        ...

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> Any: ...

    async def close(self) -> None: ...


class DefinitionPins(Protocol):
    """Remembers the definition that a tool had when it was let through."""

    def get(self, tool: str) -> str | None: ...

    def put(self, tool: str, pin: str) -> None: ...


class MemoryPins(DefinitionPins):
    """For as long as this process lives."""

    def __init__(self) -> None:
        self._pins: dict[str, str] = {}

    def get(self, tool: str) -> str | None:
        return self._pins.get(tool)

    def put(self, tool: str, pin: str) -> None:
        self._pins[tool] = pin


class McpGateway:
    def __init__(self, open_client: Callable[[McpServerConfig], McpClient], *, sleep: Sleep = asyncio.sleep) -> None:
        self._open = open_client
        self._sleep = sleep
        self._clients: dict[str, McpClient] = {}

    async def register(self, config: McpServerConfig) -> McpServerHandle:
        """Connect and look. A server of the same name takes the place of the one before."""
        client = self._open(config)
        try:
            capabilities = checked_capabilities(config.name, await client.list_tools())
        except AgentsError:
            await client.close()
            raise
        await self._forget(config.name)
        self._clients[config.name] = client
        return McpServerHandle(config.name, tuple(capabilities))

    async def introspect(self, server_id: str) -> list[McpCapability]:
        return checked_capabilities(server_id, await self._client(server_id).list_tools())

    async def call(self, server_id: str, tool: str, args: Mapping[str, Any], *, is_repeatable: bool = False) -> Any:
        """What the tool gave back. Only below the gate: nothing is asked here before the call is made."""
        return await call_with_repetitions(
            self._client(server_id), (server_id, tool), args, is_repeatable=is_repeatable, sleep=self._sleep
        )

    async def close(self) -> None:
        for server_id in list(self._clients):
            await self._forget(server_id)

    async def _forget(self, server_id: str) -> None:
        client = self._clients.pop(server_id, None)
        if client is not None:
            await client.close()

    def _client(self, server_id: str) -> McpClient:
        if server_id not in self._clients:
            raise AgentsError("AGENTS-E-MCP-UNREACHABLE", "No MCP server is registered under this id")
        return self._clients[server_id]


async def call_with_repetitions(
    client: McpClient,
    tool: tuple[str, str],
    args: Mapping[str, Any],
    *,
    is_repeatable: bool,
    sleep: Sleep = asyncio.sleep,
) -> Any:
    """Once, or up to twice more where the tool may be repeated and nobody knows what came of the call."""
    for repetition in range(MOST_REPETITIONS + 1):
        began = time.monotonic()
        try:
            result = await client.call_tool(tool[1], args)
        except AgentsError as exc:
            _logger.debug("mcp call %s/%s failed after %.0f ms", *tool, (time.monotonic() - began) * 1000)
            is_passing = exc.details.get("reason") != "rejected"
            if not (is_repeatable and is_passing) or repetition == MOST_REPETITIONS:
                raise
            await sleep(FIRST_PAUSE_SECONDS * 2**repetition)
        else:
            _logger.debug("mcp call %s/%s took %.0f ms", *tool, (time.monotonic() - began) * 1000)
            return result
    raise AssertionError("the loop above returns or raises")  # pragma: no cover


def checked_capabilities(server_id: str, entries: Sequence[Mapping[str, Any]]) -> list[McpCapability]:
    """All of a server's tools, or `AGENTS-E-MCP-SCHEMA`: a list with one bad entry is not to be trusted."""
    if len(entries) > MOST_TOOLS:
        raise schema_error(f"{server_id} lists more than {MOST_TOOLS} tools")
    capabilities = [_capability(server_id, entry) for entry in entries]
    names = [one.name for one in capabilities]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise schema_error(f"{server_id} lists {', '.join(twice)} twice")
    return capabilities


def schema_error(message: str) -> AgentsError:
    return AgentsError("AGENTS-E-MCP-SCHEMA", message)


def _capability(server_id: str, entry: Mapping[str, Any]) -> McpCapability:
    name, schema = entry.get("name"), entry.get("inputSchema")
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_ID or not name.isprintable():
        raise schema_error(f"{server_id} lists a tool without a usable name")
    if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
        raise schema_error(f"The input schema of {server_id}/{name} is no schema of an object")
    if not isinstance(schema.get("properties", {}), Mapping):
        raise schema_error(f"The input schema of {server_id}/{name} has properties that are none")
    description = entry.get("description") or entry.get("title") or ""
    return McpCapability(name, str(description), schema, entry)


# ---------------------------------------------------------------------------------------------------------------------
# What users write


@dataclass(frozen=True, slots=True)
class McpRules:
    """What the user said about a server's tools: whether to ask, how risky they are, which may be repeated."""

    require_approval: bool = True
    risk_levels: Mapping[str, int] = field(default_factory=dict)
    repeatable: Iterable[str] = frozenset()

    def __post_init__(self) -> None:
        levels: Any = self.risk_levels
        repeatable: Any = self.repeatable
        if type(self.require_approval) is not bool:
            raise schema_error("require_approval is true or false")
        if not isinstance(levels, Mapping) or not all(map(is_risk_level, levels.values())):
            raise schema_error("risk_levels gives each tool a whole number from 1 to 5")
        if isinstance(repeatable, str) or not all(isinstance(name, str) for name in repeatable):
            raise schema_error("repeatable is a list of the names of tools")
        object.__setattr__(self, "repeatable", frozenset(repeatable))

    def risk_of(self, tool: str) -> int | None:
        return self.risk_levels.get(tool, self.risk_levels.get("*"))


def config_from(server: Any, name: str | None, timeout_ms: int) -> McpServerConfig:
    """From a command (a text or a list), a URL, or a mapping with `command`, `args`, `env`, `cwd` or `url`, `headers`."""
    given = dict(server) if isinstance(server, Mapping) else _written(server)
    unknown = sorted(set(given) - {"command", "args", "env", "cwd", "url", "headers", "name"})
    if unknown:
        raise schema_error(f"An MCP server has no {', '.join(unknown)}")
    if bool(given.get("command")) == bool(given.get("url")):
        raise schema_error("An MCP server is a command or a url")
    url = str(given.get("url") or "")
    if url:
        _check_url(url)
    command = (*_words(given.get("command")), *_words(given.get("args"))) if not url else ()
    return McpServerConfig(
        name=checked_name(name or given.get("name") or (_host_of(url) if url else _program_of(command))),
        command=command,
        url=url,
        headers=_texts(given.get("headers"), "headers"),
        env=_texts(given.get("env"), "env"),
        cwd=None if given.get("cwd") is None else str(given["cwd"]),
        timeout_ms=timeout_ms,
    )


def checked_name(name: Any) -> str:
    if not isinstance(name, str) or not 1 <= len(name) <= LONGEST_ID or "/" in name or not name.isprintable():
        raise schema_error(f"An MCP server's name has 1 to {LONGEST_ID} characters and no slash; give one with name=")
    return name


def _written(server: Any) -> dict[str, Any]:
    if isinstance(server, str) and urlsplit(server).scheme in ("http", "https"):
        return {"url": server}
    if isinstance(server, str):
        try:
            return {"command": shlex.split(server)}
        except ValueError as exc:
            raise schema_error("The command of an MCP server has a quote that is not closed") from exc
    if isinstance(server, list | tuple):
        return {"command": server}
    raise schema_error("An MCP server is a command, a URL or a server object of the SDK")


def _words(value: Any) -> tuple[str, ...]:
    words = (value,) if isinstance(value, str) else tuple(value or ())
    if not all(isinstance(word, str) for word in words):
        raise schema_error("The command of an MCP server is made of texts")
    return words


def _texts(value: Any, what: str) -> dict[str, str]:
    texts = dict(value or {})
    if not all(isinstance(name, str) and isinstance(text, str) for name, text in texts.items()):
        raise schema_error(f"The {what} of an MCP server are names and texts")
    return texts


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as exc:
        raise schema_error("The url of an MCP server is no address") from exc
    if not host or parts.scheme not in ("http", "https"):
        raise schema_error("The url of an MCP server is an https:// address with a host")
    if parts.scheme == "http" and not is_loopback(host):
        raise schema_error("The url of an MCP server is an https:// address; http:// is for this machine only")
    if parts.username is not None or parts.password is not None:
        raise schema_error("The url of an MCP server has no user name or password; use headers")


def _host_of(url: str) -> str:
    parts = urlsplit(url)
    return parts.netloc.lower()


def _program_of(command: Sequence[str]) -> str:
    """The program that matters: not the launcher, not its options, without folder, extension, scope and version."""
    words = [PurePath(word).name for word in command if not word.startswith("-")]
    program = next((word for word in words if word.partition(".")[0] not in _LAUNCHERS), words[0] if words else "")
    return program.rpartition("@")[0] or program.removesuffix(".exe").removesuffix(".py").removesuffix(".js")
