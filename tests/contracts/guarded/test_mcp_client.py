"""What every MCP client must do, asked of the fake and of the real one on a real process."""

from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from openai_responses_mcp.agents.mcp.connections import open_client
from openai_responses_mcp.agents.mcp.gateway import McpClient, McpServerConfig
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import BROKEN, REJECTED, FakeMcpClient, within
from tests.agents.mcp.conftest import wild
from tests.agents.mcp.wild_server import ECHO, ERRORS

Make = Callable[[str], McpClient]
OUTCOMES: dict[str, Any] = {"good": "hi", "dies": BROKEN, **dict.fromkeys(ERRORS, REJECTED)}


def fake(behaviour: str) -> McpClient:
    client = FakeMcpClient([ECHO])
    client.outcomes.append(OUTCOMES[behaviour])
    return client


def real(behaviour: str) -> McpClient:
    config = McpServerConfig("wild", tuple(wild(behaviour)), timeout_ms=30_000)
    return open_client(config)


@pytest.fixture(params=[pytest.param(fake, id="fake"), pytest.param(real, id="sdk")])
async def make(request: pytest.FixtureRequest) -> AsyncIterator[Make]:
    made: list[McpClient] = []

    def start(behaviour: str) -> McpClient:
        made.append(request.param(behaviour))
        return made[-1]

    yield start
    for client in made:
        await client.close()


async def reason_of(client: McpClient) -> object:
    with pytest.raises(AgentsError) as caught:
        await within(client.call_tool("echo", {"text": "hi"}))
    assert caught.value.code == "AGENTS-E-MCP-EXEC"
    return caught.value.details["reason"]


async def test_the_list_holds_whole_entries(make: Make) -> None:
    assert await within(make("good").list_tools()) == [ECHO]


async def test_a_call_gives_back_what_the_tool_did(make: Make) -> None:
    assert "hi" in str(await within(make("good").call_tool("echo", {"text": "hi"})))


@pytest.mark.parametrize("behaviour", ERRORS)
async def test_an_error_of_the_server_is_a_rejection(make: Make, behaviour: str) -> None:
    assert await reason_of(make(behaviour)) == "rejected"


async def test_a_call_with_an_unknown_outcome_is_broken(make: Make) -> None:
    assert await reason_of(make("dies")) == "broken"


async def test_closing_twice_is_fine(make: Make) -> None:
    client = make("good")
    await client.close()
    await client.close()
