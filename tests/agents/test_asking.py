"""y/N at the terminal: the question stands right there, and the run goes on with the answer."""

import os
import pty
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents import AgentsError, create_runner
from openai_responses_mcp.agents.asking import TerminalApprover
from openai_responses_mcp.agents.composition import runner_on
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.agents.fake_engine import FakeAgent, FakeCall, FakeEngine, FakeTool
from tests.agents.fakes import FakeJudge, within

PAY = FakeCall("pay", {"amount": 5}, "p-1")


class Person:
    """Types what was enqueued, then is gone."""

    def __init__(self, *typed: str) -> None:
        self.typed = list(typed)
        self.shown = ""

    def read(self, prompt: str) -> str | None:
        self.shown += prompt
        return self.typed.pop(0) if self.typed else None

    def show(self, text: str) -> None:
        self.shown += text


class Counter:
    """A clerk with a tool that needs a human, and the person at the terminal."""

    def __init__(self, person: Person, *turns: Any) -> None:
        self.paid: list[int] = []
        pay = FakeTool("pay", lambda amount: self.paid.append(amount), risk_level=3)
        self.agent = FakeAgent("Clerk", [pay])
        self.engine = FakeEngine(*turns)
        approver = TerminalApprover(person.read, person.show)
        self.runner = runner_on(self.engine, FakeJudge(), open_stores(), 900, approver=approver)

    async def go(self) -> Any:
        return await within(self.runner.run(self.agent, "go"))


async def test_a_yes_lets_the_call_run() -> None:
    person = Person("y")
    counter = Counter(person, PAY, "paid")
    result = await counter.go()
    assert (result.output_text, result.interruptions, counter.paid) == ("paid", [], [5])
    assert 'function pay {"amount": 5}' in person.shown
    assert person.shown.endswith("Let it run? [y/N/s/?] ")


@pytest.mark.parametrize("typed", [["n"], [""], []], ids=["n", "Enter", "end of input"])
async def test_anything_else_is_a_no_that_the_model_gets(typed: list[str]) -> None:
    counter = Counter(Person(*typed), PAY, "as you wish")
    assert (await counter.go()).output_text == "as you wish"
    assert counter.paid == []
    assert "A human refused this call" in str(counter.engine.heard[-1])


async def test_a_question_mark_and_a_typo_say_what_can_be_typed() -> None:
    person = Person("?", "maybe", "y")
    counter = Counter(person, PAY, "paid")
    await counter.go()
    assert person.shown.count("y: run it once.") == 2
    assert counter.paid == [5]


async def test_s_allows_the_tool_for_the_rest_of_the_run() -> None:
    counter = Counter(Person("s"), PAY, FakeCall("pay", {"amount": 6}, "p-2"), "paid")
    assert (await counter.go()).output_text == "paid"
    assert counter.paid == [5, 6]


async def test_calls_of_one_turn_are_asked_about_one_after_another() -> None:
    person = Person("y", "n")
    counter = Counter(person, [PAY, FakeCall("pay", {"amount": 6}, "p-2")], "half of it")
    await counter.go()
    assert counter.paid == [5]
    assert person.shown.count("Let it run?") == 2


def test_without_a_terminal_the_runner_is_not_made() -> None:
    with pytest.raises(AgentsError, match=r"AGENTS-E-RUNNER-CONFIG: .* needs a terminal"):
        create_runner(ask="terminal")


async def test_with_rules_the_judge_may_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\n")
    create_runner(policy_file=file)
    with pytest.raises(AgentsError, match="needs a safety_agent"):
        create_runner()


SCRIPT = """
import asyncio
from openai_responses_mcp.agents import Agent, create_runner, tool
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel

@tool(risk_level=3)
def pay(amount: int) -> str:
    return f"paid {amount}"

agent = Agent(name="Clerk", model=ScriptedModel(ScriptedCall("pay", {"amount": 5}), "done"), tools=[pay])
result = asyncio.run(create_runner(ask="terminal").run(agent, "go"))
print(result.output_text, result.tool_calls[0].output)
"""


@pytest.mark.slow
def test_ctrl_c_at_the_question_ends_the_program() -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, "-c", SCRIPT], stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while b"Let it run? [y/N/s/?]" not in seen:
            seen += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        assert process.wait(30) != 0
    finally:
        process.kill()
        process.wait(30)
        os.close(ours)
