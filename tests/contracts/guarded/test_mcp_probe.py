"""What every server that a doctor asks must do, asked of the fake and of a hosted server on a real process."""

from collections.abc import AsyncIterator, Callable

import pytest

from openai_responses_mcp.agents.doctor import McpProbe
from openai_responses_mcp.agents.mcp.hosted_server import hosted_mcp_tool
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import FakeMcpProbe, code_of, within
from tests.agents.mcp.conftest import wild

Make = Callable[[str], McpProbe]
GONE = AgentsError("AGENTS-E-MCP-UNREACHABLE", "gone")


@pytest.fixture(params=["fake", "hosted"])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    if request.param == "fake":
        yield lambda behaviour: FakeMcpProbe("wild", [{"name": "echo"}] if behaviour == "good" else GONE)
        return
    started = [(name, hosted_mcp_tool(command, name="wild")) for name, command in COMMANDS.items()]
    servers = dict(started)
    yield lambda behaviour: servers[behaviour]
    for server in servers.values():
        await server.close()


COMMANDS = {"good": wild("good"), "gone": ["/no/such/command"]}


async def test_a_server_has_a_name_and_lists_its_tools(make: Make) -> None:
    server = make("good")
    assert server.name == "wild"
    assert len(await within(server.list_tools())) == 1


async def test_a_server_that_is_not_there_says_so(make: Make) -> None:
    assert await code_of(make("gone").list_tools()) == "AGENTS-E-MCP-UNREACHABLE"
