"""MCP servers below the gate: registering them, asking what they can do, calling their tools.

Everything that a server says is data. Its list is checked as a whole before any of it is used, and each tool is pinned
by a hash of its whole entry, so that a definition which changed after it was approved is seen. A failed call is made
again only where the user said that the tool may be repeated.
"""

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence

from openai_responses_mcp.agents.mcp.models import McpClient, McpServerConfig, McpServerHandle
from openai_responses_mcp.gate.definitions import McpCapability, check_arguments, checked_capabilities
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.schema.checking import SchemaChecker

MOST_REPETITIONS = 2
FIRST_PAUSE_SECONDS = 0.5

_logger = logging.getLogger("openai_responses_mcp.agents")

Sleep = Callable[[float], Awaitable[None]]


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
        """Connect and look. A server of the same name takes the place of the one before."""
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
        """Take in a server without looking; its client connects when it is first asked."""
        self._clients[server_id] = client
        self._capabilities[server_id] = {one.name: one for one in capabilities}

    async def introspect(self, server_id: str) -> list[McpCapability]:
        return await _listed(server_id, self._client(server_id))

    async def call(self, server_id: str, tool: str, args: JsonObject, *, is_repeatable: bool = False) -> object:
        """What the tool gave back. Only for use behind the gate: the call is made without asking anybody.

        The call is made once, or up to twice more if the tool may be repeated and it is not known whether the call ran.
        Where the tool's schema is known, arguments that do not fit it are not sent.
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
                if not (is_repeatable and _is_unknown(exc)) or repetition == MOST_REPETITIONS:
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


def _is_unknown(failure: AgentsError) -> bool:
    """False when the server answered with an error; otherwise the call may or may not have run."""
    return failure.details.get("reason") != "rejected"
