"""Fault 39: servers that do not start, die, answer garbage, list a tool twice or go silent, and never an unguarded call."""

import asyncio
import logging
import os
from pathlib import Path
from typing import Any

import pytest
from agents import Agent as SdkAgent
from agents import RunConfig
from agents import Runner as SdkRunner
from agents.mcp import MCPServerStdio

from openai_responses_mcp.agents import Agent, AgentsError, Extensions, RunOptions, create_runner
from openai_responses_mcp.agents.mcp.hosted_server import hosted_mcp_tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.gate.reasons import Reason
from tests.agents.fakes import FakeJudge, code_of, within
from tests.agents.mcp.conftest import Host, wild
from tests.agents.mcp.test_hosted_server import call
from tests.stand_in.http_server import HttpServer
from tests.stand_in.http_wire import Reply

UNREACHABLE, SCHEMA, EXEC = "AGENTS-E-MCP-UNREACHABLE", "AGENTS-E-MCP-SCHEMA", "AGENTS-E-MCP-EXEC"
KEY = "made-up-key-in-an-address"
FAST = RunOptions(extensions=Extensions("fast"))


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTS_REQUEST_TIMEOUT_MS", "3000")


async def failure_of(server: Any, *, seconds: float = 30) -> AgentsError:
    with pytest.raises(AgentsError) as caught:
        await call(create_runner(safety_agent=FakeJudge()), server, "wild/echo", {"text": "hi"}, seconds=seconds)
    assert KEY not in f"{caught.value!r} {caught.value.details} {caught.value.__cause__!r} {caught.value.__context__!r}"
    return caught.value


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [
        ("never-starts", UNREACHABLE),
        ("mute", UNREACHABLE),
        ("dies-at-list", UNREACHABLE),
        ("twice", SCHEMA),
        ("bad-list", SCHEMA),
        ("dies", EXEC),
        ("garbage", EXEC),
        ("silent", EXEC),
    ],
)
async def test_a_bad_server_has_a_code(host: Host, tmp_path: Path, behaviour: str, code: str) -> None:
    log = tmp_path / "log"
    failure = await failure_of(host(wild(behaviour, log), name="wild", require_approval=False))
    assert failure.code == code
    assert (log.read_text() if log.exists() else "").count("called") == (1 if code == EXEC else 0)


async def test_an_address_that_is_no_mcp_server_is_unreachable_and_its_keys_are_logged_nowhere(
    host: Host, caplog: pytest.LogCaptureFixture
) -> None:
    async def answer(request: Any) -> Reply:
        return Reply(500, {}, b"down")

    web = HttpServer(answer)
    address = await web.start()
    server = {"url": f"{address}/mcp?key={KEY}", "headers": {"X-Api-Key": KEY, "Authorization": f"Bearer {KEY}"}}
    with caplog.at_level(logging.DEBUG):
        failure = await failure_of(host(server, name="wild", require_approval=False))
    assert failure.code == UNREACHABLE
    assert KEY not in caplog.text
    await web.close()


async def test_a_server_that_babbles_before_it_starts_works_all_the_same(host: Host) -> None:
    server = host(wild("babbles"), name="wild", require_approval=False)
    assert await call(create_runner(safety_agent=FakeJudge()), server, "wild/echo", {"text": "hi"}) == "hi"


async def test_arguments_that_cannot_be_checked_go_to_the_server_and_the_record_says_so(host: Host) -> None:
    server = host(wild("reference-out"), name="wild", require_approval=False)
    runner = create_runner(safety_agent=FakeJudge())
    assert await call(runner, server, "wild/echo", {"text": "hi"}) == "hi"
    decision = (await runner.get_execution_logs())[0]
    assert decision.reasons[-1] == Reason("schema", "allow", {"why": "a reference leads out of the schema"})
    assert decision.reason.endswith("its schema cannot be checked here, so the server checks the arguments")


async def test_a_plain_server_of_the_sdk_has_the_same_codes() -> None:
    command = wild("twice")
    async with MCPServerStdio({"command": command[0], "args": command[1:]}, name="wild") as twice:
        assert (await failure_of(twice)).code == SCHEMA
    assert (await failure_of(MCPServerStdio({"command": command[0]}, name="wild"))).code == SCHEMA


async def test_a_server_that_died_is_started_again_for_the_next_call(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = host(wild("dies-twice", log), name="wild", require_approval=False)
    for _ in range(2):
        assert (await failure_of(server)).code == EXEC
    assert await call(create_runner(safety_agent=FakeJudge()), server, "wild/echo", {"text": "hi"}) == "hi"
    assert log.read_text().count("called") == 3


@pytest.mark.parametrize(
    ("behaviour", "output"),
    [
        ("refuses", "AGENTS-E-MCP-EXEC: wild/echo was refused by its server: text must be short"),
        ("fails", "The tool reports a failure: out of paper"),
    ],
)
async def test_errors_that_a_server_answers_with_go_to_the_model(
    host: Host, tmp_path: Path, behaviour: str, output: str
) -> None:
    log = tmp_path / "log"
    server = host(wild(behaviour, log), name="wild", require_approval=False, repeatable=["echo"])
    model = ScriptedModel([ScriptedCall("echo", {"text": "too long"})], "I see.")
    agent = Agent(name="caller", model=model, mcp_servers=[server], extensions=None)
    runner = create_runner(safety_agent=FakeJudge())
    result = await within(runner.run(agent, "Say it", FAST))
    assert result.output_text == "I see."
    assert str(result.tool_calls[0].output).startswith(output)
    assert log.read_text().count("called") == 1


@pytest.mark.parametrize(("behaviour", "output"), [("structured", '{"said": "雨"}'), ("link", "resource_link")])
async def test_any_result_of_a_tool_reaches_the_model(host: Host, behaviour: str, output: str) -> None:
    server = host(wild(behaviour), name="wild", require_approval=False)
    assert output in await call(create_runner(safety_agent=FakeJudge()), server, "wild/echo", {"text": "hi"})


async def test_outside_a_guarded_run_nothing_is_called(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = host(wild("good", log), name="wild", require_approval=False)
    model = ScriptedModel([ScriptedCall("echo", {"text": "hi"})], "Done.")
    plain = SdkAgent(name="unguarded", model=model, mcp_servers=[server])
    with pytest.raises(Exception, match="AGENTS-E-GATE-DENIED"):
        await within(SdkRunner.run(plain, "Say it", run_config=RunConfig(tracing_disabled=True)))
    assert "called" not in log.read_text()


async def test_arguments_that_are_no_object_do_not_reach_the_server(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "log"
    server = host(wild("good", log), name="wild", require_approval=False)
    model = ScriptedModel([ScriptedCall("echo", "[1]")], "I see.")
    agent = Agent(name="caller", model=model, mcp_servers=[server])
    result = await within(create_runner(safety_agent=FakeJudge()).run(agent, "Say it", FAST))
    assert "not a JSON object" in str(result.tool_calls[0].output)
    assert "called" not in log.read_text()


@pytest.mark.parametrize("is_plain", [False, True])
async def test_arguments_that_do_not_fit_the_schema_do_not_reach_the_server(
    host: Host, tmp_path: Path, is_plain: bool
) -> None:
    log = tmp_path / "log"
    command = wild("good", log)
    params: Any = {"command": command[0], "args": command[1:]}
    async with (
        MCPServerStdio(params, name="wild")
        if is_plain
        else host(command, name="wild", require_approval=False) as server
    ):
        output = await call(create_runner(safety_agent=FakeJudge()), server, "wild/echo", {"text": 7})
    assert output.startswith("AGENTS-E-MCP-EXEC: wild/echo was not called, because its arguments do not fit its schema")
    assert "text: must be string" in output
    assert "called" not in log.read_text()


def test_a_program_that_ends_while_a_server_starts_leaves_no_server_behind(tmp_path: Path) -> None:
    # Reading from a pipe waits for the server to have started, without looking again and again.
    os.mkfifo(tmp_path / "pipe")

    async def give_up() -> int:
        server = hosted_mcp_tool(wild("mute", tmp_path / "pipe"), name="wild")
        waiting = asyncio.create_task(server.connect())
        number = await asyncio.wait_for(asyncio.to_thread((tmp_path / "pipe").read_text), 30)
        waiting.cancel()
        return int(number)

    with pytest.raises(ProcessLookupError):
        os.kill(asyncio.run(give_up()), 0)


async def test_a_server_whose_start_was_cancelled_can_be_closed(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    server = hosted_mcp_tool(wild("mute", tmp_path / "pipe"), name="wild")
    waiting = asyncio.create_task(server.connect())
    number = int(await asyncio.wait_for(asyncio.to_thread((tmp_path / "pipe").read_text), 30))
    waiting.cancel()
    await within(server.close())
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)


async def test_closing_a_server_fails_a_pending_connect(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    server = hosted_mcp_tool(wild("mute", tmp_path / "pipe"), name="wild")
    waiting = asyncio.create_task(code_of(server.connect()))
    await asyncio.wait_for(asyncio.to_thread((tmp_path / "pipe").read_text), 30)
    await within(server.close())
    assert await waiting == UNREACHABLE


async def test_all_who_wait_for_a_server_learn_that_it_cannot_be_reached(host: Host) -> None:
    server = host(wild("never-starts"), name="wild")
    codes = await asyncio.gather(*(code_of(server.connect()) for _ in range(2)))
    assert codes == [UNREACHABLE, UNREACHABLE]


@pytest.mark.parametrize("behaviour", ["children", "stubborn-children", "dies-with-children"])
async def test_the_children_of_a_server_end_with_it(host: Host, tmp_path: Path, behaviour: str) -> None:
    # The child holds the other end of the pipe: reading ends when it does.
    os.mkfifo(tmp_path / "pipe")
    reading = asyncio.create_task(asyncio.to_thread((tmp_path / "pipe").read_text))
    server = host(wild(behaviour, tmp_path / "pipe"), name="wild", require_approval=False)
    if behaviour.startswith("dies"):
        failure = await failure_of(server)
        # Noticed at once, and not when the time for an answer is over.
        assert (failure.code, "the connection broke" in failure.message) == (EXEC, True)
    else:
        assert await call(create_runner(safety_agent=FakeJudge()), server, "wild/echo", {"text": "hi"}) == "hi"
        assert not reading.done()
        await asyncio.wait_for(server.close(), 30)
    assert await asyncio.wait_for(reading, 30) == "here\n"


async def test_a_message_longer_than_any_breaks_the_connection(host: Host, tmp_path: Path) -> None:
    log = tmp_path / "log"
    failure = await failure_of(host(wild("floods", log), name="wild", require_approval=False), seconds=30)
    assert (failure.code, failure.details["reason"]) == (EXEC, "broken")
    assert log.read_text().count("called") == 1


async def test_a_command_that_does_not_exist_is_unreachable(host: Host) -> None:
    failure = await failure_of(host(["there-is-no-such-program"], name="wild"))
    assert (failure.code, "no such command" in failure.message) == (UNREACHABLE, True)
