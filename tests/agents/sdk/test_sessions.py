"""Sessions of the SDK over a pause that ends in another process."""

from pathlib import Path
from typing import Any

import agents as sdk
import pytest

from openai_responses_mcp.agents import Agent, RunOptions, create_runner
from openai_responses_mcp.agents.runner import AgentRunner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import ASK, FakeJudge, code_of, within


@sdk.function_tool
def peek() -> str:
    """Look at something."""
    return "seen"


class Process:
    """A runner on the common store, with its agent and its session; all sessions hold the same talk."""

    def __init__(self, store: str, folder: Path, *turns: Any) -> None:
        judge = FakeJudge()
        judge.on("peek", ASK)
        judge.on("Second", ASK)
        self.model = ScriptedModel(*turns)
        self.second = sdk.Agent[Any](name="Second", model=self.model)
        self.agent = Agent(name="First", model=self.model, tools=[peek], handoffs=[self.second])
        self.runner: AgentRunner = create_runner(safety_agent=judge, store=store)
        self.session = sdk.SQLiteSession("the talk", folder / "talks.db")

    def options(self, *, stream: bool = False) -> RunOptions:
        return RunOptions(stream=stream, sdk={"session": self.session})


@pytest.fixture(params=["peek", "transfer_to_second"])
def processes(request: pytest.FixtureRequest, sqlite_url: str, tmp_path: Path) -> tuple[Process, Process]:
    call = ScriptedCall(request.param, {}, "c-1")
    return Process(sqlite_url, tmp_path, "hello", call), Process(sqlite_url, tmp_path, "all good", "you said hello")


def said_by(items: list[Any], role: str) -> list[Any]:
    return [item["content"] for item in items if isinstance(item, dict) and item.get("role") == role]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_session_goes_on_in_another_process(processes: tuple[Process, Process], stream: bool) -> None:
    first, second = processes
    await within(first.runner.run(first.agent, "good morning", first.options()))
    paused = await within(first.runner.run(first.agent, "go", first.options(stream=stream)))
    (request,) = paused.interruptions
    missing = second.runner.approve_and_resume(paused.run_id, request.approval_id, agent=second.agent)
    assert await code_of(missing) == "AGENTS-E-RUNNER-CONFIG"
    result = await within(
        second.runner.approve_and_resume(
            paused.run_id, request.approval_id, agent=second.agent, options=second.options(stream=stream)
        )
    )
    assert result.output_text == "all good"
    assert said_by(second.model.calls[0].input, "user") == ["good morning", "go"]
    await within(second.runner.run(second.agent, "what did I say?", second.options()))
    heard = second.model.calls[1].input
    assert said_by(heard, "user") == ["good morning", "go", "what did I say?"]
    assert [item.get("type") for item in heard].count("function_call") == 1
    assert [item.get("type") for item in heard].count("function_call_output") == 1
    for process in processes:
        process.session.close()
