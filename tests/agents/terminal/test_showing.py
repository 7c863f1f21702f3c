"""What a person sees before they decide: everything, at any width, and nothing that plays tricks."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from typing import Any

import pytest
from agents import FunctionTool

from openai_responses_mcp.agents import Agent, create_runner
from openai_responses_mcp.agents.gate.models import GateDecision
from openai_responses_mcp.agents.terminal.command_line import main
from openai_responses_mcp.agents.terminal.output import json_of, writable
from openai_responses_mcp.agents.terminal.tables import sheet, table
from openai_responses_mcp.agents.testing import ScriptedCall, ScriptedModel
from tests.agents.fakes import FakeJudge

TRICKS = {
    "command": "ls\x1b[2K\r\x1b[1A",
    "direction": "abc\u202edcba\u2066",
    "invisible": "rm\u200b \u3164\U000e0041-rf",
    "long": "x" * 10_000 + " END-OF-IT",
    "lines": "one\nreason\n  all is fine\n\n\ntwo",
    "japanese": "東京" * 60,
    "not a number": float("nan"),
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


def on_a_terminal(arguments: list[str], columns: int) -> str:
    ours, theirs = pty.openpty()
    code = f"from openai_responses_mcp.agents.terminal.command_line import main; raise SystemExit(main({arguments!r}))"
    environ = {**os.environ, "COLUMNS": str(columns), "PYTHONIOENCODING": "utf-8"}
    shown = b""
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stdin=theirs, env=environ) as process:
        os.close(theirs)
        while chunk := _read(ours):
            shown += chunk
        process.wait(30)
    os.close(ours)
    return shown.decode().replace("\r\n", "\n")


def _read(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, 100_000)
    except OSError:  # the other side has closed its end
        return b""


def wide(text: str) -> int:
    return sum(2 if letter in "東京" else 1 for letter in text)


def test_a_request_is_shown_whole_at_80_columns(sqlite_url: str) -> None:
    request = asked(sqlite_url, TRICKS, "because\x1b[2J\nstatus\n  approved")
    shown = on_a_terminal(["approvals", "show", request.approval_id, "--store", sqlite_url], 80)
    lines = shown.splitlines()
    assert max(map(wide, lines)) <= 80
    assert "".join(shown.split("\n")).isprintable()
    facts = read_back(lines)
    assert facts["tool_description"] == "Run a command.\nWith care."
    assert "".join(facts["reason"].split("\n")) == (
        "because\\x1b[2Jstatus  approved; risk 3 needs a human under the profile balanced"
    )
    assert facts["status"] == "pending"
    assert list(facts)[-1] == "arguments"
    joined = json.loads(facts["arguments"].replace("\n", ""))
    assert joined == {**TRICKS, "not a number": "NaN"}
    assert "END-OF-IT" in shown.replace("\n  ", "")
    assert '"command": "rm -rf /"' in shown


def read_back(lines: list[str]) -> dict[str, str]:
    """Names stand at the margin, and everything else behind them."""
    facts: dict[str, list[str]] = {}
    for line in lines:
        if line.startswith("  "):
            facts[list(facts)[-1]].append(line[2:])
        else:
            facts[line] = []
    return {name: "\n".join(text) for name, text in facts.items()}


def test_a_request_as_json_is_valid_and_hides_nothing(sqlite_url: str, capsys: pytest.CaptureFixture[str]) -> None:
    request = asked(sqlite_url, TRICKS)
    assert main(["approvals", "show", request.approval_id, "--store", sqlite_url, "--json"]) == 0
    written = capsys.readouterr().out

    def refuse(word: str) -> Any:
        raise AssertionError(word)

    facts = json.loads(written, parse_constant=refuse)
    assert facts["arguments"] == {**TRICKS, "not a number": "NaN"}
    assert (facts["reason"], facts["tool_description"]) == (
        "look at it; risk 3 needs a human under the profile balanced",
        "Run a command.\nWith care.",
    )
    assert written.replace("\n", "").isprintable()
    assert "東京" in written


@pytest.mark.parametrize(("arguments", "shown"), [("[1]", [1]), ('{"command": ', '{"command": ')])
def test_arguments_that_are_no_object_are_shown_as_they_stand(
    arguments: str, shown: object, sqlite_url: str, capsys: pytest.CaptureFixture[str]
) -> None:
    request = asked(sqlite_url, arguments)
    assert main(["approvals", "show", request.approval_id, "--store", sqlite_url]) == 0
    assert list(json.loads(capsys.readouterr().out)["arguments"].values()) == [shown]


# ---------------------------------------------------------------------------------------------------------------------


def test_a_sheet_wraps_between_letters_and_loses_nothing() -> None:
    assert sheet([("a", "東京 x" * 3), ("b", "")], 14) == "a\n  東京 x東京 x\n  東京 x\nb\n  \n"
    assert sheet([("a", "x" * 13)], 1) == f"a\n  {'x' * 12}\n  x\n"


def test_a_table_stays_on_its_lines() -> None:
    assert table(("A", "B"), [("one\ntwo", "\u202ex")], 40).splitlines() == ["A         B", "one\\ntwo  \\u202ex"]
    assert table(("A", "B"), [("a", "東" * 20)], 20).splitlines()[1] == f"a  {'東' * 8}…"


def test_a_table_shows_texts_of_every_script_as_an_answer_does() -> None:
    cell = "東京\u3000大阪 10\u00a0km 1\u202f000 👩\u200d💻 می\u200cخواهم"
    assert table(("A", "B"), [("x", cell)], 80).splitlines()[1] == f"x  {cell}"
    assert table(("A", "B"), [("a\tb", "\x1b[2J\u2066")], 80).splitlines()[1] == "a\\tb  \\x1b[2J\\u2066"


@pytest.mark.parametrize("encoding", ["utf-8", "ascii", "cp1252"])
def test_json_is_valid_in_every_encoding(encoding: str) -> None:
    value = {"a": "é東😀\u202e\ud83d", "n": [float("nan"), float("inf"), 1.5, None, True], "t": ("x",)}
    written = json_of(value, encoding)
    written.encode(encoding)
    assert json.loads(written) == {"a": value["a"], "n": ["nan", "inf", 1.5, None, True], "t": ["x"]}


def test_a_text_can_be_written_to_any_terminal() -> None:
    assert writable("é東", "ascii") == "\\xe9\\u6771"
    assert writable("é東", "utf-8") == "é東"
