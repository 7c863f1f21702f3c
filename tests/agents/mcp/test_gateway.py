"""Registering, introspecting and calling; how servers are written down; retries without a server."""

from collections import deque
from typing import Any

import pytest

from openai_responses_mcp.agents.mcp.gateway import McpGateway, McpServerConfig, config_from
from openai_responses_mcp.agents.mcp.hosted_server import hosted_mcp_tool
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.fakes import BROKEN, ENTRY, REJECTED, FakeMcpClient, code_of


def gateway_to(*clients: FakeMcpClient) -> tuple[McpGateway, list[float]]:
    waiting, pauses = deque(clients), list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    return McpGateway(lambda config: waiting.popleft(), sleep=sleep), pauses


SERVER = McpServerConfig("notes", ("notes",))


async def test_registering_lists_the_tools_of_the_server() -> None:
    gateway, _ = gateway_to(FakeMcpClient())
    handle = await gateway.register(SERVER)
    assert handle.server_id == "notes"
    assert [(one.name, one.description, one.schema) for one in handle.capabilities] == [
        ("echo", "Echo", {"type": "object"})
    ]
    assert await gateway.introspect("notes") == list(handle.capabilities)


async def test_a_server_whose_list_is_bad_is_not_registered() -> None:
    client = FakeMcpClient([ENTRY, ENTRY])
    gateway, _ = gateway_to(client)
    assert await code_of(gateway.register(SERVER)) == "AGENTS-E-MCP-SCHEMA"
    assert client.is_closed
    assert await code_of(gateway.introspect("notes")) == "AGENTS-E-MCP-UNREACHABLE"
    assert await code_of(gateway.call("notes", "echo", {})) == "AGENTS-E-MCP-UNREACHABLE"


async def test_a_server_of_the_same_name_takes_the_place_of_the_other() -> None:
    old, new = FakeMcpClient(), FakeMcpClient()
    gateway, _ = gateway_to(old, new)
    await gateway.register(SERVER)
    await gateway.register(SERVER)
    assert (old.is_closed, new.is_closed) == (True, False)
    await gateway.close()
    assert new.is_closed


async def test_a_schema_that_cannot_be_read_does_not_make_a_server_unusable() -> None:
    client = FakeMcpClient([{**ENTRY, "inputSchema": {"properties": []}}])
    client.outcomes.append("fine")
    gateway, _ = gateway_to(client)
    await gateway.register(SERVER)
    assert await gateway.call("notes", "echo", {"text": "x"}) == "fine"


@pytest.mark.parametrize(
    ("outcomes", "is_repeatable", "calls", "pauses"),
    [
        ([BROKEN, "fine"], True, 2, [0.5]),
        ([BROKEN, BROKEN, BROKEN], True, 3, [0.5, 1.0]),
        ([BROKEN], False, 1, []),
        ([REJECTED], True, 1, []),
    ],
)
async def test_a_call_is_repeated_only_where_that_is_safe(
    outcomes: list[Any], is_repeatable: bool, calls: int, pauses: list[float]
) -> None:
    client = FakeMcpClient()
    client.outcomes.extend(outcomes)
    gateway, slept = gateway_to(client)
    await gateway.register(SERVER)
    code = await code_of(gateway.call("notes", "echo", {"a": 1}, is_repeatable=is_repeatable))
    assert code == ("" if outcomes[-1] == "fine" else "AGENTS-E-MCP-EXEC")
    assert (len(client.calls), slept) == (calls, pauses)


async def test_arguments_that_do_not_fit_the_schema_are_not_sent() -> None:
    client = FakeMcpClient([{**ENTRY, "inputSchema": {"type": "object", "required": ["text"]}}])
    client.outcomes.append("fine")
    gateway, _ = gateway_to(client)
    await gateway.register(SERVER)
    with pytest.raises(AgentsError) as caught:
        await gateway.call("notes", "echo", {}, is_repeatable=True)
    assert (caught.value.code, caught.value.details["reason"]) == ("AGENTS-E-MCP-EXEC", "rejected")
    assert client.calls == []
    assert await gateway.call("notes", "echo", {"text": "hi"}) == "fine"


# ---------------------------------------------------------------------------------------------------------------------
# Writing a server down


@pytest.mark.parametrize(
    ("server", "name", "command", "url"),
    [
        ("npx -y @scope/files@1.2 '/my files'", "files", ("npx", "-y", "@scope/files@1.2", "/my files"), ""),
        (["/usr/bin/python3.11", "/opt/notes.py"], "notes", ("/usr/bin/python3.11", "/opt/notes.py"), ""),
        (["python"], "python", ("python",), ""),
        ({"command": "notes", "args": ["-v"], "name": "mine"}, "mine", ("notes", "-v"), ""),
        ("https://MCP.example.com/mcp", "mcp.example.com", (), "https://MCP.example.com/mcp"),
        ({"url": "http://127.0.0.1:8/mcp", "headers": {"A": "b"}}, "127.0.0.1:8", (), "http://127.0.0.1:8/mcp"),
    ],
)
def test_a_server_can_be_written_in_many_ways(server: Any, name: str, command: tuple[str, ...], url: str) -> None:
    config = config_from(server, None, 60_000)
    assert (config.name, config.command, config.url) == (name, command, url)


@pytest.mark.parametrize(
    "server",
    [
        7,
        {"command": "a", "url": "https://b"},
        {"comand": "a"},
        "a 'b",
        [7],
        ["-v"],
        {"command": "a", "env": {"A": 1}},
        "http://example.com/mcp",
        "https://user:pass@h/mcp",
        "https:///mcp",
        "https://h:port/mcp",
    ],
)
def test_a_server_that_makes_no_sense_is_refused_without_being_shown(server: Any) -> None:
    with pytest.raises(AgentsError) as caught:
        hosted_mcp_tool(server)
    assert caught.value.code == "AGENTS-E-MCP-SCHEMA"
    assert "pass" not in caught.value.message.replace("password", "")


@pytest.mark.parametrize(
    "options",
    [{"require_approval": "never"}, {"risk_levels": {"a": 0}}, {"repeatable": "echo"}, {"name": "a/b"}],
)
def test_rules_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(AgentsError) as caught:
        hosted_mcp_tool("notes", **options)
    assert caught.value.code == "AGENTS-E-MCP-SCHEMA"


def test_nothing_that_is_shown_holds_headers_or_variables() -> None:
    server = {"url": "https://h/mcp?key=secret-1", "headers": {"Authorization": "Bearer secret-2"}, "env": {}}
    config = config_from(server, None, 60_000)
    assert "secret" not in f"{config} {hosted_mcp_tool(server)}"
