"""What `hosted_mcp_tool` gives: a server of the SDK that connects by itself and is called inside guarded runs only."""

import re
from typing import Any, NoReturn, cast

from agents import AgentBase, RunContextWrapper
from agents.mcp import MCPServer, MCPServerStdio
from mcp_types import CallToolResult
from mcp_types import Tool as McpTool

from openai_responses_mcp.adapters.linear_patterns import LinearPatterns
from openai_responses_mcp.agents.mcp.connections import ConnectedMcpClient, SdkMcpClient, open_client
from openai_responses_mcp.agents.mcp.gateway import McpGateway
from openai_responses_mcp.agents.mcp.models import McpRules, checked_name, config_from
from openai_responses_mcp.agents.sdk.internals import shown_name
from openai_responses_mcp.agents.sdk.takeover import is_guarded
from openai_responses_mcp.gate.definitions import DefinitionPins, MemoryPins, schema_error
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.schema.checking import SchemaChecker


class HostedMcpServer(MCPServer):
    """A server of the SDK that connects by itself; put it into an agent's `mcp_servers` or `tools`."""

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
        self._gateway = McpGateway(open_client, SchemaChecker(LinearPatterns()))
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


def hosted_server(
    server: object, name: str | None, rules: McpRules, pins: DefinitionPins | None, timeout_ms: int
) -> HostedMcpServer:
    """From what a user writes to describe a server, or from a server object of the SDK."""
    if not isinstance(server, MCPServer):
        config = config_from(server, name, timeout_ms)
        return HostedMcpServer(config.name, open_client(config), rules, pins, config.cwd or "")
    given: Any = server
    shown = name or re.sub(r"[/\s]+", "-", shown_name(server))
    seconds = float(getattr(given, "client_session_timeout_seconds", None) or timeout_ms / 1000)
    if getattr(given, "max_retry_attempts", 0):
        # Only the tools that the user lists may be repeated.
        given.max_retry_attempts = 0
    is_connected = getattr(given, "session", None) is not None
    make = ConnectedMcpClient(shown, server, seconds) if is_connected else SdkMcpClient(shown, lambda: server, seconds)
    return HostedMcpServer(shown, make, rules, pins, directory_of(server))


def directory_of(server: MCPServer) -> str:
    """Where a server that runs here was started; nothing where that is this process's own directory."""
    if isinstance(server, HostedMcpServer):
        return server.directory
    return str(server.params.cwd or "") if isinstance(server, MCPServerStdio) else ""
