"""A small MCP server for one folder: list, read and write text files. Started by guarded_files.py, over stdio."""

import sys
from pathlib import Path
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

ROOT = Path(sys.argv[1] if len(sys.argv) > 1 else ".").resolve()
LARGEST_FILE_BYTES = 100_000

server: MCPServer[Any] = MCPServer("files", log_level="ERROR")


def inside(name: str) -> Path:
    path = (ROOT / name).resolve()
    if not path.is_relative_to(ROOT):
        raise ToolError("that is outside the folder")
    return path


@server.tool(description="List the files of the folder.")
def list_files() -> str:
    return "\n".join(sorted(path.relative_to(ROOT).as_posix() for path in ROOT.rglob("*") if path.is_file()))


@server.tool(description="Read a text file of the folder.")
def read_file(name: str) -> str:
    path = inside(name)
    if not path.is_file() or path.stat().st_size > LARGEST_FILE_BYTES:
        raise ToolError("there is no such file, or it is too large")
    return path.read_text(encoding="utf-8", errors="replace")


@server.tool(description="Write a text file into the folder.")
def write_file(name: str, text: str) -> str:
    path = inside(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return f"{len(text)} characters written"


if __name__ == "__main__":
    server.run("stdio")
