"""Connections to real servers, through the gateway and through `hosted_mcp_tool`."""

from pathlib import Path

import pytest

from openai_responses_mcp.agents.mcp.hosted_server import hosted_mcp_tool
from tests.agents.fakes import code_of, within
from tests.agents.mcp.conftest import Host, wild


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
