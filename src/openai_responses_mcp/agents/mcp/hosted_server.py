"""`hosted_mcp_tool`: an MCP server for the SDK that connects on first use, and is only called in guarded runs."""

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NoReturn, cast

from agents import AgentBase, RunContextWrapper
from agents.mcp import MCPServer, MCPServerStdio
from mcp_types import CallToolResult
from mcp_types import Tool as McpTool

from openai_responses_mcp.agents.mcp.connections import ConnectedMcpClient, SdkMcpClient, open_client
from openai_responses_mcp.agents.mcp.gateway import McpGateway, McpRules, checked_name, config_from
from openai_responses_mcp.agents.providers.settings import timeout_ms_from
from openai_responses_mcp.agents.sdk.internals import shown_name
from openai_responses_mcp.agents.sdk.takeover import is_guarded
from openai_responses_mcp.gate.definitions import DefinitionPins, MemoryPins, schema_error
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.sql.own_files import replace_private

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows has no fcntl
    fcntl = None  # type: ignore[assignment]


class HostedMcpServer(MCPServer):
    """A server for an agent's `mcp_servers` or `tools`. It connects on first use."""

    def __init__(
        self,
        name: str,
        client: SdkMcpClient,
        rules: McpRules,
        pins: DefinitionPins | None = None,
        directory: str = "",
    ) -> None:
        super().__init__(require_approval=rules.require_approval, failure_error_function=None)
        self.client = client
        self.rules = rules
        self.given_pins = pins
        self.own_pins = MemoryPins()
        self.directory = directory
        self._name = checked_name(name)
        self._gateway = McpGateway(open_client)
        self._gateway.attach(self._name, client)

    @property
    def name(self) -> str:
        return self._name

    async def connect(self) -> None:
        await self.client.list_tools()

    async def cleanup(self) -> None:
        await self.client.close()

    async def close(self) -> None:
        await self.client.close()

    async def __aenter__(self) -> "HostedMcpServer":
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self.close()

    async def list_tools(
        self, run_context: RunContextWrapper[Any] | None = None, agent: AgentBase[Any] | None = None
    ) -> list[McpTool]:
        return await self.client.list_sdk_tools(run_context, agent)

    async def call_tool(
        self, tool_name: str, arguments: dict[str, Any] | None, meta: dict[str, Any] | None = None
    ) -> CallToolResult:
        if not is_guarded():
            message = f"{self._name} is only called inside a guarded run; run the agent with a runner of create_runner"
            raise AgentsError("AGENTS-E-GATE-DENIED", message)
        is_repeatable = tool_name in self.rules.repeatable
        result = await self._gateway.call(self._name, tool_name, arguments or {}, is_repeatable=is_repeatable)
        return cast(CallToolResult, result)

    async def list_prompts(self) -> NoReturn:
        raise schema_error("Prompts of MCP servers are not offered to agents")

    async def get_prompt(self, name: str, arguments: dict[str, Any] | None = None) -> NoReturn:
        raise schema_error("Prompts of MCP servers are not offered to agents")

    def __repr__(self) -> str:
        return f"<MCP server {self._name}>"


def hosted_mcp_tool(
    server: object,
    *,
    require_approval: bool = True,
    risk_levels: Mapping[str, int] | None = None,
    repeatable: Iterable[str] = (),
    name: str | None = None,
    pins: str | os.PathLike[str] | None = None,
) -> HostedMcpServer:
    """An MCP server for an agent's `mcp_servers` or `tools`, each of its tools behind the gate.

    `server` is a stdio command, an https URL, a mapping with either, or a server object of the SDK. `name` is its name in
    scopes. Approved definitions are kept in the file `pins`, else in the runner's store if that is durable, else in memory.
    """
    rules = McpRules(require_approval, risk_levels or {}, repeatable)
    file = None if pins is None else PinFile(pins)
    timeout_ms = timeout_ms_from(os.environ)
    if not isinstance(server, MCPServer):
        config = config_from(server, name, timeout_ms)
        return HostedMcpServer(config.name, open_client(config), rules, file, config.cwd or "")
    given: Any = server
    shown = name or re.sub(r"[/\s]+", "-", shown_name(server))
    seconds = float(getattr(given, "client_session_timeout_seconds", None) or timeout_ms / 1000)
    if getattr(given, "max_retry_attempts", 0):
        # Only the tools in `repeatable` may be retried.
        given.max_retry_attempts = 0
    is_connected = getattr(given, "session", None) is not None
    opened = (
        ConnectedMcpClient(shown, server, seconds) if is_connected else SdkMcpClient(shown, lambda: server, seconds)
    )
    return HostedMcpServer(shown, opened, rules, file, directory_of(server))


def directory_of(server: MCPServer) -> str:
    """The working directory of a local server; empty if it is this process's own."""
    if isinstance(server, HostedMcpServer):
        return server.directory
    return str(server.params.cwd or "") if isinstance(server, MCPServerStdio) else ""


class PinFile(DefinitionPins):
    """Pinned definitions in a small JSON file that only its owner can read. A write replaces the whole file.

    A writer locks a file beside it while it reads and replaces, so that no process overwrites another's pins.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)

    async def known(self) -> Mapping[str, str]:
        return self._read()

    async def put(self, tool: str, pin: str) -> None:
        try:
            with self._locked():
                pins = self._read()
                if pins.get(tool) != pin:
                    replace_private(self._path, json.dumps({**pins, tool: pin}, indent=0, sort_keys=True))
        except OSError as exc:
            message = f"The pinned definitions cannot be written ({exc.strerror}), so nothing was run; check the folder"
            raise AgentsError("AGENTS-E-MCP-SCHEMA", message) from exc

    @contextmanager
    def _locked(self) -> Iterator[None]:
        descriptor = os.open(f"{self._path}.lock", os.O_RDWR | os.O_CREAT, 0o600)
        try:
            if fcntl is not None:
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)

    def _read(self) -> dict[str, str]:
        try:
            pins = json.loads(self._path.read_text())
            if not isinstance(pins, dict):
                raise ValueError
        except FileNotFoundError:
            return {}
        except (OSError, ValueError) as exc:
            # Without its pins, a changed definition would look like a new one.
            message = f"The pinned definitions in {self._path.name} cannot be read; repair or remove the file"
            raise AgentsError("AGENTS-E-MCP-SCHEMA", message) from exc
        return {str(tool): str(pin) for tool, pin in pins.items()}
