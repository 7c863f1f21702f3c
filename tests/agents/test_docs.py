"""The page about guarded agents: its code runs, its tables are the code's."""

import json
import os
import pty
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.agents import configure
from openai_responses_mcp.desk.terminal.command_line import main
from openai_responses_mcp.gate.errors import CODES
from openai_responses_mcp.gate.policy.rules import PROFILES

PAGE = (Path(__file__).parents[2] / "docs" / "agents.md").read_text()


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_the_tutorial_runs_from_top_to_bottom(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "tutorial"}
    try:
        for number, block in enumerate(blocks("python"), start=1):
            exec(compile(block, f"block {number} of docs/agents.md", "exec"), names)
    finally:
        configure(None)
    assert number >= 5
    assert main(["log", "--verify", "--json", "--store", "sqlite:///agents.db"]) == 0
    assert json.loads(capsys.readouterr().out)["is_intact"] is True


def test_the_table_of_errors_is_the_codes() -> None:
    rows = re.findall(r"^\| `(AGENTS-E-[A-Z-]+)` \| `(\w+)` \| (.+) \|$", PAGE, re.MULTILINE)
    assert rows == [(code, category, meaning) for code, (category, meaning) in CODES.items()]


def test_the_table_of_profiles_is_the_codes() -> None:
    rows = re.findall(r"^\| `(strict|balanced|fast)`[^|]*\| ([^|]+) \| ([^|]+) \| ([^|]+) \|", PAGE, re.MULTILINE)
    shown = {name: (alone.removeprefix("risk ")[-1], asks, refuses) for name, alone, asks, refuses in rows}
    for name, profile in PROFILES.items():
        last = str(profile.refuse_from - 1)
        asks = f"{profile.allow_up_to + 1}–{last}" if str(profile.allow_up_to + 1) != last else last
        assert shown[name] == (str(profile.allow_up_to), asks, str(profile.refuse_from))


# ---------------------------------------------------------------------------------------------------------------------
# The three examples at the beginning


def in_a_terminal(script: str, folder: Path, typed: bytes) -> str:
    """What a person sees who types this once they are asked."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen([sys.executable, script], cwd=folder, stdin=theirs, stdout=theirs, stderr=theirs)
    os.close(theirs)
    seen = b""
    try:
        while process.poll() is None or b"\n" not in seen:
            part = os.read(ours, 4096)
            if b"?]" in part:
                os.write(ours, typed)
            seen += part
            if not part or b"deleted" in seen:
                break
        assert process.wait(30) == 0
    finally:
        process.kill()
        os.close(ours)
    return seen.decode().replace("\r\n", "\n").strip()


@pytest.mark.slow
def test_the_three_examples_print_what_the_page_says(tmp_path: Path) -> None:
    helper, *examples = blocks("py")
    here, elsewhere, resumed = [text.strip() for text in blocks("text")[:3]]
    (tmp_path / "helper.py").write_text(helper)
    for name, text in zip(("here", "elsewhere", "resumed"), examples, strict=True):
        (tmp_path / f"{name}.py").write_text(text)
    assert in_a_terminal("here.py", tmp_path, b"y\n") == here
    for name, printed in (("elsewhere", elsewhere), ("resumed", resumed)):
        command = [sys.executable, f"{name}.py"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, timeout=30, check=True)
        assert done.stdout.strip() == printed
