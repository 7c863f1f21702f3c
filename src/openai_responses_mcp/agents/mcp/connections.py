"""Connections to MCP servers, made with the SDK.

A connection lives in its own task, because the SDK requires the task that opened it to close it. It belongs to one event
loop and is closed when that loop ends. It is opened for the first call, closed when a call breaks, and opened again for
the next one.
"""

import asyncio
import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

from agents import AgentBase, RunContextWrapper
from agents.mcp import MCPServer, MCPServerStreamableHttp
from mcp import MCPError
from mcp_types import CallToolResult
from mcp_types import Tool as McpTool
from pydantic import ValidationError

from openai_responses_mcp.agents.mcp.gateway import McpClient, McpServerConfig
from openai_responses_mcp.agents.mcp.stdio_server import StdioServer, why_no_answer
from openai_responses_mcp.domain.masking import MASK
from openai_responses_mcp.gate.definitions import schema_error
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject

LONGEST_MESSAGE = 500


def server_for(config: McpServerConfig) -> MCPServer:
    """The SDK's object for a server, without retries and without a cache."""
    if config.url:
        hide_query(config.url)
        timeouts = {"timeout": config.timeout_seconds, "sse_read_timeout": config.timeout_seconds}
        return MCPServerStreamableHttp(
            {"url": config.url, "headers": dict(config.headers), **timeouts},  # type: ignore[typeddict-item]
            name=config.name,
            client_session_timeout_seconds=config.timeout_seconds,
        )
    params: dict[str, object] = {"command": config.command[0], "args": list(config.command[1:]), "cwd": config.cwd}
    if config.env:
        params["env"] = dict(config.env)
    return StdioServer(
        params,  # type: ignore[arg-type]
        name=config.name,
        client_session_timeout_seconds=config.timeout_seconds,
    )


# ---------------------------------------------------------------------------------------------------------------------
# Connections


class _Connection:
    """One connected server, kept open by a task until it is stopped."""

    def __init__(self, server: MCPServer, timeout_seconds: float) -> None:
        self.server = server
        self._timeout_seconds = timeout_seconds
        self._is_over = asyncio.Event()
        self._ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        # Without this, asyncio warns that the exception was never retrieved.
        self._ready.add_done_callback(lambda ready: ready.exception())
        self._task = asyncio.get_running_loop().create_task(self._keep())

    async def opened(self) -> None:
        """Wait until connected; raises `_Unreachable`. A cancelled caller does not stop the connecting."""
        await asyncio.shield(self._ready)

    async def close(self) -> None:
        self._is_over.set()
        if not self._ready.done():
            self._task.cancel()
        await asyncio.wait({self._task})

    async def _keep(self) -> None:
        try:
            async with asyncio.timeout(self._timeout_seconds):
                await self.server.connect()  # type: ignore[no-untyped-call]
        except asyncio.CancelledError:
            self._ready.set_exception(_Unreachable("it was closed"))
            await self._clean_up()
            raise
        except BaseException as exc:  # transports raise groups of several errors
            self._ready.set_exception(_Unreachable(cause_in(exc)))
            await self._clean_up()
            return
        self._ready.set_result(None)
        try:
            await self._is_over.wait()
        finally:
            await self._clean_up()

    async def _clean_up(self) -> None:
        with suppress(Exception):  # closing fails when the server is gone already
            await self.server.cleanup()  # type: ignore[no-untyped-call]


class _Unreachable(Exception):
    """The text says why, without the address, which may hold a key."""


class SdkMcpClient(McpClient):
    """`make_server` returns the server object for a new connection."""

    def __init__(self, name: str, make_server: Callable[[], MCPServer], timeout_seconds: float) -> None:
        self._name = name
        self._make_server = make_server
        self._timeout_seconds = timeout_seconds
        self._connections: WeakKeyDictionary[asyncio.AbstractEventLoop, _Connection] = WeakKeyDictionary()

    async def list_tools(self) -> list[JsonObject]:
        return [entry_of(tool) for tool in await self.list_sdk_tools(None, None)]

    async def list_sdk_tools(
        self, context: RunContextWrapper[Any] | None, agent: AgentBase[Any] | None
    ) -> list[McpTool]:
        try:
            server = await self._server()
            async with asyncio.timeout(self._timeout_seconds):
                return await server.list_tools(context, agent)
        except AgentsError:
            raise
        except ValidationError as exc:
            await self.close()
            message = f"The list of tools from the MCP server {self._name} cannot be read; update or remove the server"
            raise schema_error(message) from exc
        except Exception as exc:  # every transport has its own exceptions, and here they all mean the same
            await self.close()
            raise self._unreachable(cause_in(exc)) from None

    async def call_tool(self, name: str, args: JsonObject) -> CallToolResult:
        server = await self._server()
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await server.call_tool(name, dict(args))
        except MCPError as exc:
            no_answer = why_no_answer(exc)
            if no_answer is None:
                said = exc.message[:LONGEST_MESSAGE]
                raise _failed(f"{self._name}/{name} was refused by its server: {said}", "rejected") from None
            cause = no_answer
        except Exception as exc:  # as in `list_sdk_tools`
            cause = cause_in(exc)
        await self.close()
        message = f"{self._name}/{name} failed: {cause}. It may have run; check before you call it again"
        raise _failed(message, "broken")

    async def close(self) -> None:
        """Close the connection of this event loop, if there is one."""
        connection = self._connections.pop(asyncio.get_running_loop(), None)
        if connection is not None:
            await connection.close()

    async def _server(self) -> MCPServer:
        loop = asyncio.get_running_loop()
        if loop not in self._connections:
            self._connections[loop] = _Connection(self._make_server(), self._timeout_seconds)
        connection = self._connections[loop]
        try:
            await connection.opened()
        except _Unreachable as exc:
            if self._connections.get(loop) is connection:
                del self._connections[loop]
            raise self._unreachable(str(exc)) from None
        return connection.server

    def _unreachable(self, cause: str) -> AgentsError:
        message = (
            f"The MCP server {self._name} cannot be reached ({cause}); check its command or url, and try it by hand"
        )
        return AgentsError("AGENTS-E-MCP-UNREACHABLE", message, details={"server": self._name, "reason": "unreachable"})


def open_client(config: McpServerConfig) -> SdkMcpClient:
    return SdkMcpClient(config.name, lambda: server_for(config), config.timeout_seconds)


class ConnectedMcpClient(SdkMcpClient):
    """For a server that the user has connected and will close."""

    def __init__(self, name: str, server: MCPServer, timeout_seconds: float) -> None:
        super().__init__(name, lambda: server, timeout_seconds)
        self._given = server

    async def _server(self) -> MCPServer:
        return self._given

    async def close(self) -> None:
        return


def _failed(message: str, reason: str) -> AgentsError:
    return AgentsError("AGENTS-E-MCP-EXEC", message, details={"reason": reason})


def cause_in(exc: BaseException) -> str:
    """The first cause, in fixed words: the text of an exception may hold an address with a key in it."""
    while isinstance(exc, BaseExceptionGroup):
        exc = exc.exceptions[0]
    if isinstance(exc, FileNotFoundError):
        return "there is no such command"
    if isinstance(exc, TimeoutError):
        return "no answer in time"
    return _CAUSES.get(type(exc).__name__, "it failed")


# By name, because the exceptions come from several packages that are not imported here.
_CAUSES = {
    "BrokenResourceError": "it closed the connection",
    "ClosedResourceError": "it closed the connection",
    "ConnectError": "no connection",
    "ConnectionRefusedError": "no connection",
    "ConnectTimeout": "no answer in time",
    "HTTPStatusError": "it answered with an HTTP error",
    "MCPError": "it answered with an error",
    "PermissionError": "no permission to start it",
    "ReadTimeout": "no answer in time",
    "RemoteProtocolError": "it closed the connection",
}


def entry_of(tool: McpTool) -> JsonObject:
    return tool.model_dump(mode="json", by_alias=True, exclude_none=True)


# ---------------------------------------------------------------------------------------------------------------------
# Logs of the SDKs: the query of a URL often holds a key, so it is masked

VENDORS = ("httpx2", "mcp.client.streamable_http")


class _QueryFilter(logging.Filter):
    def __init__(self) -> None:
        super().__init__()
        self.queries: set[str] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        message = record.getMessage()
        for query in self.queries:
            if query in message:
                message = message.replace(query, MASK)
                record.msg, record.args = message, ()
        return True


_filter = _QueryFilter()


def hide_query(url: str) -> None:
    query = urlsplit(url).query
    if query:
        _filter.queries.add(query)
        for name in VENDORS:
            # `addFilter` ignores a filter that is already there.
            logging.getLogger(name).addFilter(_filter)
