"""Registering, introspecting and calling; how servers are written down; retries without a server."""

from collections import deque
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents.adapters.mcp.connections import SdkMcpClient, server_for
from openai_responses_mcp.agents.composition import hosted_mcp_tool
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.mcp.capabilities import MOST_TOOLS
from openai_responses_mcp.agents.mcp.gateway import McpGateway
from openai_responses_mcp.agents.mcp.models import McpRules, McpServerConfig
from openai_responses_mcp.agents.mcp.ports import McpClient
from openai_responses_mcp.agents.mcp.server_config import config_from
from tests.agents.fakes import code_of, within
from tests.agents.mcp.conftest import Host, wild

ENTRY = {"name": "echo", "title": "Echo", "inputSchema": {"type": "object"}}
BROKEN = AgentsError("AGENTS-E-MCP-EXEC", "broke", details={"reason": "broken"})
REJECTED = AgentsError("AGENTS-E-MCP-EXEC", "no", details={"reason": "rejected"})


class FakeMcpClient(McpClient):
    """Lists what it was given, and answers calls with what was enqueued."""

    def __init__(self, entries: Any = (ENTRY,)) -> None:
        self.entries = list(entries)
        self.outcomes: deque[Any] = deque()
        self.calls: list[tuple[str, Mapping[str, Any]]] = []
        self.is_closed = False

    async def list_tools(self) -> list[Mapping[str, Any]]:
        return self.entries

    async def call_tool(self, name: str, args: Mapping[str, Any]) -> Any:
        self.calls.append((name, args))
        outcome = self.outcomes.popleft()
        if isinstance(outcome, AgentsError):
            raise outcome
        return outcome

    async def close(self) -> None:
        self.is_closed = True


def gateway_to(*clients: FakeMcpClient) -> tuple[McpGateway, list[float]]:
    waiting, pauses = deque(clients), list[float]()

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    return McpGateway(lambda config: waiting.popleft(), sleep=sleep), pauses


SERVER = McpServerConfig("notes", ("notes",))


async def test_registering_tells_what_the_server_can_do() -> None:
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


async def test_more_tools_than_anybody_can_look_at_are_refused() -> None:
    many = [{**ENTRY, "name": f"tool{number}"} for number in range(MOST_TOOLS + 1)]
    gateway, _ = gateway_to(FakeMcpClient(many))
    assert await code_of(gateway.register(SERVER)) == "AGENTS-E-MCP-SCHEMA"


@pytest.mark.parametrize(
    "entry",
    [
        {},
        {**ENTRY, "name": 7},
        {**ENTRY, "name": "a\nb"},
        {"name": "echo"},
        {**ENTRY, "inputSchema": {"type": "array"}},
        {**ENTRY, "inputSchema": {"properties": []}},
    ],
)
async def test_an_entry_that_cannot_be_used_spoils_the_list(entry: dict[str, Any]) -> None:
    gateway, _ = gateway_to(FakeMcpClient([{**ENTRY, "name": "fine"}, entry]))
    assert await code_of(gateway.register(SERVER)) == "AGENTS-E-MCP-SCHEMA"


@pytest.mark.parametrize(
    ("outcomes", "is_repeatable", "calls", "pauses"),
    [
        (["fine"], True, 1, []),
        ([BROKEN, "fine"], True, 2, [0.5]),
        ([BROKEN, BROKEN, "fine"], True, 3, [0.5, 1.0]),
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


async def test_the_gateway_talks_to_a_real_server() -> None:
    gateway = McpGateway(lambda config: SdkMcpClient(config.name, lambda: server_for(config), config.timeout_seconds))
    handle = await within(gateway.register(McpServerConfig("wild", tuple(wild()))))
    assert [one.name for one in handle.capabilities] == ["echo"]
    result = await within(gateway.call("wild", "echo", {"text": "hi"}))
    assert result.content[0].text == "hi"
    await gateway.close()


# ---------------------------------------------------------------------------------------------------------------------
# Writing a server down


@pytest.mark.parametrize(
    ("server", "name", "command", "url"),
    [
        ("openai-responses-mcp --stdio", "openai-responses-mcp", ("openai-responses-mcp", "--stdio"), ""),
        ("npx -y @scope/server-files@1.2 '/my files'", "server-files", ("npx", "-y", "@scope/server-files@1.2", "/my files"), ""),
        (["python", "-m", "my_server"], "my_server", ("python", "-m", "my_server"), ""),
        (["/usr/bin/python3.11", "/opt/notes.py"], "notes", ("/usr/bin/python3.11", "/opt/notes.py"), ""),
        (["python"], "python", ("python",), ""),
        ({"command": "notes", "args": ["-v"], "name": "mine"}, "mine", ("notes", "-v"), ""),
        ("https://MCP.example.com/mcp", "mcp.example.com", (), "https://MCP.example.com/mcp"),
        ({"url": "http://127.0.0.1:8/mcp", "headers": {"A": "b"}}, "127.0.0.1:8", (), "http://127.0.0.1:8/mcp"),
    ],
)  # fmt: skip
def test_a_server_can_be_written_in_many_ways(server: Any, name: str, command: tuple[str, ...], url: str) -> None:
    config = config_from(server, None, 60_000)
    assert (config.name, config.command, config.url) == (name, command, url)


@pytest.mark.parametrize(
    "server",
    [7, "", [], {}, {"command": "a", "url": "https://b"}, {"comand": "a"}, "a 'b", [7], {"command": "a", "env": {"A": 1}},
     {"url": "https://h", "headers": {"A": 1}}, "http://example.com/mcp", "https://user:pass@h/mcp", "https:///mcp",
     "https://h:port/mcp", {"url": "ftp://h"}, ["-v"]],
)  # fmt: skip
def test_a_server_that_makes_no_sense_is_refused_without_being_shown(server: Any) -> None:
    with pytest.raises(AgentsError) as caught:
        hosted_mcp_tool(server)
    assert caught.value.code == "AGENTS-E-MCP-SCHEMA"
    assert "pass" not in caught.value.message.replace("password", "")


@pytest.mark.parametrize(
    "options",
    [{"require_approval": "never"}, {"risk_levels": {"a": 0}}, {"risk_levels": {"a": "1"}}, {"risk_levels": [1]},
     {"repeatable": "echo"}, {"repeatable": [7]}, {"name": "a/b"}, {"name": "n" * 129}],
)  # fmt: skip
def test_rules_that_make_no_sense_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(AgentsError) as caught:
        hosted_mcp_tool("notes", **options)
    assert caught.value.code == "AGENTS-E-MCP-SCHEMA"


def test_rules_given_as_one_text_are_refused() -> None:
    repeatable: Any = "echo"
    with pytest.raises(AgentsError):
        McpRules(repeatable=repeatable)


def test_nothing_that_is_shown_holds_headers_or_variables() -> None:
    server = {"url": "https://h/mcp?key=secret-1", "headers": {"Authorization": "Bearer secret-2"}, "env": {}}
    config = config_from(server, None, 60_000)
    assert "secret" not in f"{config} {hosted_mcp_tool(server)}"


async def test_variables_reach_a_server_and_the_rest_of_the_environment_does_not(
    host: Host, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "made-up-key")
    command = wild()
    script = tmp_path / "show.py"
    script.write_text(
        f"import os, runpy, sys\nopen({str(tmp_path / 'env')!r}, 'w').write(repr(dict(os.environ)))\nsys.argv = sys.argv[1:]\nrunpy.run_path(sys.argv[0], run_name='__main__')\n"
    )
    server = {
        "command": command[0],
        "args": [str(script), *command[1:]],
        "env": {"ONLY_THIS": "1"},
        "cwd": str(tmp_path),
    }
    await within(host(server, name="wild").connect())
    seen = (tmp_path / "env").read_text()
    assert "ONLY_THIS" in seen
    assert "made-up-key" not in seen


async def test_prompts_are_not_offered(host: Host) -> None:
    server = host(wild(), name="wild")
    assert await code_of(server.list_prompts()) == "AGENTS-E-MCP-SCHEMA"
    assert await code_of(server.get_prompt("a")) == "AGENTS-E-MCP-SCHEMA"


async def test_a_server_can_be_opened_and_closed_by_hand() -> None:
    async with hosted_mcp_tool(wild(), name="wild") as server:
        await within(server.connect())
        assert [tool.name for tool in await within(server.list_tools())] == ["echo"]
    await server.cleanup()
