"""An MCP server built with the official SDK, over stdio when run as a script."""

from typing import Any

from mcp.server.mcpserver import Image, MCPServer
from mcp.server.mcpserver.exceptions import ToolError

PIXEL = b"\x89PNG\r\n\x1a\n"


def build() -> MCPServer[Any]:
    server: MCPServer[Any] = MCPServer("notes", log_level="ERROR")

    @server.tool(title="Add", description="Add two numbers.")
    def add(a: int, b: int) -> int:
        return a + b

    @server.tool(description="Fails with a reason.")
    def fail(reason: str) -> str:
        raise ToolError(reason)

    @server.tool(description="A picture and a word.", structured_output=False)
    def picture() -> list[Any]:
        return [Image(data=PIXEL, format="png"), "a pixel"]

    return server


if __name__ == "__main__":
    build().run("stdio")
