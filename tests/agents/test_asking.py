"""y/N at the terminal: the question stands right there, and the run goes on with the answer."""

import io
import os
import pty
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from openai_responses_mcp.agents import AgentsError, create_runner
from openai_responses_mcp.agents.testing import ScriptedCall
from tests.agents.scenes import PAY, Scene


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


Person = Callable[..., Terminal]


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> Person:
    """Types these lines, then closes the terminal. Returns what the screen shows."""

    def types(*lines: str) -> Terminal:
        screen = Terminal()
        monkeypatch.setattr(sys, "stdin", Terminal("".join(f"{line}\n" for line in lines)))
        monkeypatch.setattr(sys, "stdout", screen)
        return screen

    return types


async def test_a_yes_lets_the_call_run(person: Person) -> None:
    screen = person("y")
    scene = Scene(PAY, "paid", ask="terminal")
    result = await scene.go()
    assert (result.output_text, result.interruptions, scene.ran) == ("paid", [], ["pay 5"])
    assert 'function pay {"amount": 5}' in screen.getvalue()
    assert screen.getvalue().endswith("Let it run? [y/N/s/?] ")


@pytest.mark.parametrize("typed", [[""], []], ids=["Enter", "end of input"])
async def test_anything_else_is_a_no_that_the_model_gets(person: Person, typed: list[str]) -> None:
    person(*typed)
    scene = Scene(PAY, "as you wish", ask="terminal")
    assert (await scene.go()).output_text == "as you wish"
    assert scene.ran == []
    assert "A human refused this call" in str(scene.heard[-1])


async def test_a_question_mark_and_a_typo_say_what_can_be_typed(person: Person) -> None:
    screen = person("?", "maybe", "y")
    scene = Scene(PAY, "paid", ask="terminal")
    await scene.go()
    assert screen.getvalue().count("y: run it once.") == 2
    assert scene.ran == ["pay 5"]


async def test_s_allows_the_tool_for_the_rest_of_the_run(person: Person) -> None:
    person("s")
    scene = Scene(PAY, ScriptedCall("pay", {"amount": 6}, "p-2"), "paid", ask="terminal")
    assert (await scene.go()).output_text == "paid"
    assert scene.ran == ["pay 5", "pay 6"]


async def test_calls_of_one_turn_are_asked_about_one_after_another(person: Person) -> None:
    screen = person("y", "n")
    scene = Scene([PAY, ScriptedCall("pay", {"amount": 6}, "p-2")], "half of it", ask="terminal")
    await scene.go()
    assert scene.ran == ["pay 5"]
    assert screen.getvalue().count("Let it run?") == 2


def test_without_a_terminal_the_runner_is_not_made() -> None:
    with pytest.raises(AgentsError, match=r"AGENTS-E-RUNNER-CONFIG: .* needs a terminal"):
        create_runner(ask="terminal")


async def test_with_rules_the_judge_may_be_left_out(tmp_path: Path) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text("version: 1\n")
    create_runner(policy_file=file)
    with pytest.raises(AgentsError, match="needs a safety_agent"):
        create_runner()


# A shell starts background jobs with SIGINT ignored, and what they start inherits that.
SCRIPT = """
import asyncio, signal
signal.signal(signal.SIGINT, signal.default_int_handler)
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
