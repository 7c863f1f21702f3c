"""What the gateway needs from outside: a connection to a server, and a memory for approved definitions."""

from collections.abc import Mapping
from typing import Protocol

from openai_responses_mcp.agents.json_values import JsonObject


class McpClient(Protocol):
    """A connection to one server, opened when it is needed and opened again after it broke.

    Raises `AGENTS-E-MCP-UNREACHABLE` where no connection can be had and `AGENTS-E-MCP-SCHEMA` where the list cannot be
    read. A call fails with `AGENTS-E-MCP-EXEC`; its `reason` is `broken` when it is not known whether the tool ran, and
    `rejected` when the server answered with an error.
    """

    async def list_tools(self) -> list[JsonObject]:
        """The entries of `tools/list`, whole."""
        ...

    async def call_tool(self, name: str, args: JsonObject) -> object: ...

    async def close(self) -> None: ...


class DefinitionPins(Protocol):
    """Remembers the definition that a tool had when it was let through. Raises `AgentsError`."""

    async def known(self) -> Mapping[str, str]:
        """The last pin of each tool that has one."""
        ...

    async def put(self, tool: str, pin: str) -> None: ...
