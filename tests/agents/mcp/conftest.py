"""MCP servers for the tests: one that misbehaves on demand, one built with the SDK over stdio and over HTTP."""

import asyncio
import socket
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
import uvicorn

from openai_responses_mcp.agents.mcp.hosted_server import HostedMcpServer, hosted_mcp_tool
from tests.agents.mcp.sdk_server import build

HERE = Path(__file__).parent

# The official SDK takes seconds to import, and does so in a process of its own.
SLOW_START_SECONDS = 30.0

Host = Callable[..., HostedMcpServer]


@pytest.fixture(autouse=True)
def no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")


@pytest.fixture
async def host() -> AsyncIterator[Host]:
    """`hosted_mcp_tool`, closed at the end."""
    async with AsyncExitStack() as stack:

        def start(server: Any, **options: Any) -> HostedMcpServer:
            hosted = hosted_mcp_tool(server, **options)
            stack.push_async_callback(hosted.close)
            return hosted

        yield start


def wild(behaviour: str = "good", file: Path | None = None) -> list[str]:
    """The command of a server with this behaviour."""
    return [sys.executable, str(HERE / "wild_server.py"), behaviour, *([str(file)] if file else [])]


def sdk_command() -> list[str]:
    return [sys.executable, str(HERE / "sdk_server.py")]


@pytest.fixture
async def sdk_url() -> AsyncIterator[str]:
    """The SDK's server over streamable HTTP on loopback."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        listening.listen()
        address = f"http://127.0.0.1:{listening.getsockname()[1]}/mcp"
        config = uvicorn.Config(build().streamable_http_app(), log_level="error", timeout_graceful_shutdown=1)
        server = uvicorn.Server(config)
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        yield address
        server.should_exit = True
        with suppress(asyncio.CancelledError):
            await asyncio.wait_for(serving, 30)
