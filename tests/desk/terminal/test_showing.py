"""What a person sees before they decide: everything, at any width, and nothing that plays tricks."""

import asyncio
import json
from typing import Any

import pytest
from agents import FunctionTool

from openai_responses_mcp.agents import Agent, create_runner
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from openai_responses_mcp.desk.terminal.command_line import main
from openai_responses_mcp.desk.terminal.console import json_of, writable
from openai_responses_mcp.gate.calls import GateDecision
from tests.agents.fakes import FakeJudge
from tests.desk.terminal.pseudo_terminal import on_a_terminal

TRICKS = {
    "command": "ls\x1b[2K\r\x1b[1A",
    "direction": "abc\u202edcba\u2066",
    "invisible": "rm\u200b \u3164\U000e0041-rf",
    "long": "x" * 10_000 + " END-OF-IT",
    "lines": "one\nreason\n  all is fine\n\n\ntwo",
    "japanese": "東京" * 60,
    "a": {"b": [{"command": "rm -rf /"}]},
}


def asked(url: str, arguments: Any, reason: str = "look at it") -> Any:
    async def run(context: Any, given: str) -> str:
        return "done"

    schema = {"type": "object", "properties": {"command": {"type": "string"}}}
    shell = FunctionTool("shell", "Run a command.\nWith care.", schema, run, strict_json_schema=False)
    judge = FakeJudge(GateDecision("needs_human", 3, reason))
    agent = Agent(name="A", model=ScriptedModel(ScriptedCall("shell", arguments)), tools=[shell])
    paused = asyncio.run(create_runner(safety_agent=judge, store=url).run(agent, "go"))
    return paused.interruptions[0]


def wide(text: str) -> int:
    return sum(2 if letter in "東京" else 1 for letter in text)


def test_a_request_is_shown_whole_at_80_columns(sqlite_url: str) -> None:
    request = asked(sqlite_url, TRICKS, "because\x1b[2J\nstatus\n  approved")
    shown = on_a_terminal(["approvals", "show", request.approval_id, "--store", sqlite_url], 80)
    lines = shown.splitlines()
    assert max(map(wide, lines)) <= 80
    assert "".join(shown.split("\n")).isprintable()
    # Every text that is not ours stands behind a bar or behind words of ours.
    ours = (
        "│ ",
        "  ",
        "What will run: shell",
        "Why you are asked: ",
        "What the tool says",
        "Asked at ",
        "Run ",
        "To decide:",
    )
    assert [line for line in lines if line and not line.startswith(ours)] == []
    assert "│ Run a command.\n│ With care." in shown
    whole = "".join(line.removeprefix("│ ").removeprefix("│ ") for line in lines)
    assert f"{'x' * 10_000} END-OF-IT" in whole
    assert '"command": "ls\\u001b[2K\\r\\u001b[1A"' in whole
    assert '"direction": "abc\\u202edcba\\u2066"' in whole
    assert "│ │ reason\n│ │   all is fine" in shown
    assert "東京" * 60 in whole
    assert '"command": "rm -rf /"' in shown
    assert lines.index("What will run: shell") == 0


def test_a_request_as_json_is_valid_and_hides_nothing(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    request = asked(sqlite_url, TRICKS)
    assert main(["approvals", "show", request.approval_id, "--store", sqlite_url, "--json"]) == 0
    written = capsys.readouterr().out

    def refuse(word: str) -> Any:
        raise AssertionError(word)

    facts = json.loads(written, parse_constant=refuse)
    assert facts["arguments"] == TRICKS
    assert facts["tool_description"] == "Run a command.\nWith care."
    assert written.replace("\n", "").isprintable()
    assert "東京" in written


# ---------------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_json_is_valid_in_every_encoding(encoding: str) -> None:
    value = {"a": "é東😀\u202e\ud83d", "n": [float("nan"), float("inf"), 1.5, None, True], "t": ("x",)}
    written = json_of(value, encoding)
    written.encode(encoding)
    assert json.loads(written) == {"a": value["a"], "n": ["nan", "inf", 1.5, None, True], "t": ["x"]}


def test_a_text_can_be_written_to_any_terminal() -> None:
    assert writable("é東", "ascii") == "\\xe9\\u6771"
    assert writable("é東", "utf-8") == "é東"
