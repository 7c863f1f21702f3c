"""MCP servers through the gate: real ones, over stdio and HTTP, with approval, risk, pins and names."""

import asyncio
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from agents import Agent as SdkAgent
from agents import handoff
from agents.mcp import MCPServerStdio

from openai_responses_mcp.agents import (
    Agent,
    AgentsError,
    Extensions,
    RequestedToolCall,
    RunOptions,
    create_runner,
    tool,
)
from openai_responses_mcp.agents.mcp.hosted_server import HostedMcpServer, hosted_mcp_tool
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.testing import ScriptedModel
from tests.agents.fakes import FakeJudge, code_of, within
from tests.agents.mcp.conftest import SLOW_START_SECONDS, Host, sdk_command, wild


def asking(tool_name: str, args: dict[str, Any], profile: Any = None) -> RunOptions:
    return RunOptions(extensions=Extensions(profile, tool_calls=(RequestedToolCall(tool_name, args),)))


async def call(
    runner: AgentRunner,
    server: Any,
    name: str,
    args: dict[str, Any],
    *,
    profile: Any = "fast",
    seconds: float = SLOW_START_SECONDS,
) -> Any:
    agent = Agent(name="caller", mcp_servers=[server])
    result = await asyncio.wait_for(runner.run(agent, "", asking(name, args, profile)), seconds)
    while result.interruptions:
        request = result.interruptions[0]
        result = await asyncio.wait_for(runner.approve_and_resume(result.run_id, request.approval_id), seconds)
    return result.tool_calls[0].output


@pytest.fixture
def runner() -> AgentRunner:
    return create_runner(safety_agent=FakeJudge())


# ---------------------------------------------------------------------------------------------------------------------
# Real servers


async def test_a_server_of_the_official_sdk_over_stdio(host: Host, runner: AgentRunner) -> None:
    server = host(sdk_command(), require_approval=False)
    assert await call(runner, server, "sdk_server/add", {"a": 1, "b": 2}, seconds=SLOW_START_SECONDS) == "3"
    failed = await call(runner, server, "sdk_server/fail", {"reason": "no ink"})
    assert failed.startswith("The tool reports a failure")
    assert "no ink" in failed
    last = (await runner.get_execution_logs())[-1]
    assert (last.event, last.decision) == ("outcome", "failed")
    assert "no ink" in last.reason
    picture = await call(runner, server, "sdk_server/picture", {})
    assert [part["type"] for part in picture] == ["image", "text"]


async def test_a_server_of_the_official_sdk_over_http(host: Host, runner: AgentRunner, sdk_url: str) -> None:
    server = host(sdk_url, require_approval=False, name="notes")
    assert await call(runner, server, "notes/add", {"a": 1, "b": 2}) == "3"
    assert await call(runner, server, "notes/add", {"a": 3, "b": 4}) == "7"


@pytest.mark.parametrize("is_connected", [False, True])
async def test_a_server_object_of_the_sdk(host: Host, runner: AgentRunner, is_connected: bool) -> None:
    command = wild()
    given = MCPServerStdio({"command": command[0], "args": command[1:]}, max_retry_attempts=3)
    if is_connected:
        await given.connect()  # type: ignore[no-untyped-call]
    server = host(given, require_approval=False, name="wild")
    assert given.max_retry_attempts == 0
    assert await call(runner, server, "wild/echo", {"text": "hello"}) == "hello"
    await server.close()
    assert (given.session is not None) == is_connected
    await given.cleanup()  # type: ignore[no-untyped-call]


async def test_it_may_be_given_among_the_tools(host: Host) -> None:
    server: Any = host(wild(), name="wild")
    agent = Agent(name="caller", tools=[shout, server], model=ScriptedModel("Hello."))
    assert (agent.tools, agent.mcp_servers) == ([shout], [server])
    result = await within(create_runner(safety_agent=FakeJudge()).run(agent, "Hello"))
    assert agent.model.calls[0].tool_names == ("echo", "shout")  # type: ignore[union-attr]
    assert result.output_text == "Hello."


async def test_one_server_serves_one_event_loop_after_another(runner: AgentRunner) -> None:
    server = hosted_mcp_tool(wild(), require_approval=False, name="wild")

    def once() -> Any:
        return asyncio.run(call(runner, server, "wild/echo", {"text": "again"}))

    assert [await asyncio.to_thread(once) for _ in range(2)] == ["again", "again"]


async def test_two_calls_at_once_share_one_connection(host: Host, tmp_path: Path) -> None:
    server = host(wild("good", tmp_path / "log"), require_approval=False, name="wild")
    await within(asyncio.gather(server.connect(), server.connect()))
    assert (tmp_path / "log").read_text() == "started\n"


# ---------------------------------------------------------------------------------------------------------------------
# Approval and risk


async def test_approval_is_asked_for_by_default(host: Host, runner: AgentRunner, tmp_path: Path) -> None:
    server: Any = host(wild("good", tmp_path / "log"), name="wild", risk_levels={"echo": 1})
    agent = Agent(name="caller", tools=[server])
    result = await within(runner.run(agent, "", asking("wild/echo", {"text": "hi"}, "fast")))
    assert [request.tool_name for request in result.interruptions] == ["wild/echo"]
    assert "called" not in (tmp_path / "log").read_text()
    result = await within(runner.approve_and_resume(result.run_id, result.interruptions[0].approval_id))
    assert result.tool_calls[0].output == "hi"
    assert (tmp_path / "log").read_text().count("called") == 1


async def test_a_servers_own_hints_do_not_lower_the_risk(host: Host) -> None:
    judge = FakeJudge()
    agent = Agent(name="caller", mcp_servers=[host(wild(), name="wild", require_approval=False)])
    await within(create_runner(safety_agent=judge).run(agent, "", asking("wild/echo", {"text": "hi"}, "fast")))
    assert judge.requests[0].target_tool is not None
    assert judge.requests[0].target_tool.own_risk == 3


# ---------------------------------------------------------------------------------------------------------------------
# Names


@tool
def shout(text: str) -> str:
    """Says it loudly."""
    return text.upper()


@tool
def echo(text: str) -> str:
    """Another echo."""
    return text


async def offered(*servers: HostedMcpServer, tools: Any = (), **options: Any) -> tuple[str, ...]:
    model = ScriptedModel("Hello.")
    agent = Agent(name="caller", model=model, tools=list(tools), mcp_servers=list(servers), **options)
    await within(create_runner(safety_agent=FakeJudge()).run(agent, "Hello"))
    return model.calls[0].tool_names


async def test_a_tool_called_like_one_of_the_agents_own_gets_another_name(host: Host) -> None:
    assert await offered(host(wild(), name="wild"), tools=[echo]) == ("mcp_wild__echo", "echo")


async def test_a_tool_called_like_a_handoff_gets_another_name(host: Host) -> None:
    model = ScriptedModel("Hello.")
    other = SdkAgent(name="other")
    transfers: list[Any] = [handoff(other, tool_name_override="echo"), SdkAgent(name="third")]
    agent = Agent(name="caller", model=model, handoffs=transfers, mcp_servers=[host(wild(), name="wild")])
    await within(create_runner(safety_agent=FakeJudge()).run(agent, "Hello"))
    assert model.calls[0].tool_names == ("mcp_wild__echo",)


async def test_a_name_that_no_model_may_use_is_made_to_fit(host: Host, runner: AgentRunner) -> None:
    server = host(wild("dotted"), name="wild", require_approval=False)
    (name,) = await offered(server)
    assert name.startswith("echo_it_now_")
    assert await call(runner, server, "wild/echo.it/now", {"text": "hi"}) == "hi"


async def test_two_servers_of_one_name_are_refused(host: Host) -> None:
    with pytest.raises(AgentsError) as caught:
        await offered(host(wild(), name="same"), host(wild(), name="same"))
    assert caught.value.code == "AGENTS-E-MCP-SCHEMA"


# ---------------------------------------------------------------------------------------------------------------------
# Pins


async def test_a_changed_definition_asks_a_human_again(host: Host, runner: AgentRunner, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = host(wild("changes", log), name="wild", require_approval=False, risk_levels={"*": 1})
    agent = Agent(name="caller", mcp_servers=[server])
    for _ in range(2):
        assert not (await within(runner.run(agent, "", asking("wild/echo", {"text": "hi"})))).interruptions
    with log.open("a") as file:
        file.write("meta\n")
    changed = await within(runner.run(agent, "", asking("wild/echo", {"text": "hi"})))
    assert len(changed.interruptions) == 1
    assert "has changed since it was approved" in changed.interruptions[0].prompt
    assert changed.interruptions[0].definition_change.startswith('"_meta"')
    await within(runner.approve_and_resume(changed.run_id, changed.interruptions[0].approval_id))
    assert not (await within(runner.run(agent, "", asking("wild/echo", {"text": "hi"})))).interruptions
    assert log.read_text().count("called") == 4


@pytest.mark.parametrize("is_hosted", [True, False])
async def test_pins_in_a_durable_store_outlive_the_process(
    host: Host, tmp_path: Path, sqlite_url: str, is_hosted: bool
) -> None:
    log = tmp_path / "log"
    command = wild("changes", log)

    async def waiting() -> int:
        """How many approvals a call needs in a process of its own: other runner, other server."""
        runner = create_runner(safety_agent=FakeJudge(), store=sqlite_url)
        async with AsyncExitStack() as stack:
            if is_hosted:
                server: Any = host(command, name="wild", require_approval=False, risk_levels={"*": 1})
            else:
                params: Any = {"command": command[0], "args": command[1:]}
                server = await stack.enter_async_context(MCPServerStdio(params, name="wild"))
            agent = Agent(name="a", mcp_servers=[server])
            result = await within(runner.run(agent, "", asking("wild/echo", {"text": "hi"}, "fast")))
            for request in result.interruptions:
                await within(runner.approve_and_resume(result.run_id, request.approval_id))
            return len(result.interruptions)

    assert [await waiting(), await waiting()] == [0, 0]
    with log.open("a") as file:
        file.write("description\n")
    assert [await waiting(), await waiting()] == [1, 0]


async def test_pins_that_cannot_be_read_or_written_stop_the_call(
    host: Host, runner: AgentRunner, tmp_path: Path
) -> None:
    log, pins = tmp_path / "log", tmp_path / "pins.json"
    for written in ("{", "[]", None):
        if written is None:
            pins.unlink()
            pins.mkdir()
        else:
            pins.write_text(written)
        server = host(wild("good", log), name="wild", require_approval=False, pins=pins)
        with pytest.raises(AgentsError) as caught:
            await call(runner, server, "wild/echo", {"text": "hi"})
        assert caught.value.code == "AGENTS-E-MCP-SCHEMA"
    unwritable = host(wild("good", log), name="wild", require_approval=False, pins=tmp_path / "no" / "pins.json")
    with pytest.raises(AgentsError) as caught:
        await call(runner, unwritable, "wild/echo", {"text": "hi"})
    assert caught.value.code == "AGENTS-E-MCP-SCHEMA"
    assert "called" not in log.read_text()


# ---------------------------------------------------------------------------------------------------------------------
# Connections


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
