"""A person checks a policy file, and tries it on the log."""

import asyncio
import json
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from openai_responses_mcp.agents.adapters.stores.opening import open_stores
from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.terminal.command_line import main
from tests.agents.fakes import WAIT_SECONDS

ROOT = Path(__file__).parents[3]

Said = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def test_the_example_is_fine(capsys: Said) -> None:
    example = str(ROOT / "config" / "policy.yaml.example")
    assert main(["policy", "check", example]) == 0
    assert capsys.readouterr().out == f"{example}: 8 rules, no problems\n"


def test_problems_are_told_one_per_line(file: Path, capsys: Said) -> None:
    file.write_text("version: 2\nrules:\n- {tools: [a/b], decide: no}\n")
    assert main(["policy", "check", str(file)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{file}:1: version is 1, the only version there is",
        f"{file}:3: rule 1: decide is allow, ask or deny",
    ]


def test_rules_that_never_apply_are_told(file: Path, capsys: Said) -> None:
    file.write_text("version: 1\nrules:\n- {tools: ['*'], decide: ask}\n- {tools: [a/b], decide: deny}\n")
    assert main(["policy", "check", str(file)]) == 1
    assert capsys.readouterr().out == f"{file}:4: rule 2 can never apply: rule 1 always comes first\n"
    assert main(["policy", "check", str(file), "--json"]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "rules": 2,
        "problems": [],
        "never_apply": [f"{file}:4: rule 2 can never apply: rule 1 always comes first"],
    }


def test_one_rule_is_one_rule(file: Path, capsys: Said) -> None:
    file.write_text("version: 1\nrules: [{tools: ['*'], decide: ask}]\n")
    assert main(["policy", "check", str(file)]) == 0
    assert capsys.readouterr().out == f"{file}: 1 rule, no problems\n"


@pytest.fixture
def log(sqlite_url: str) -> str:
    """Three calls that needed a human, one of them with a masked argument."""
    logs = open_stores(sqlite_url).logs
    why = "risk 3 needs a human under the profile balanced"
    for number, args in enumerate(({"path": "/tmp/a"}, {"path": "/etc/a"}, {"path": "***"})):
        record = ExecutionLog(
            "run-1",
            f"c-{number}",
            "decision",
            "needs_human",
            "2026-11-16T09:00:00.5",
            "files/write",
            "mcp",
            3,
            why,
            args,
        )
        asyncio.run(logs.append(record))
    return sqlite_url


POLICY = "version: 1\nrules: [{tools: ['files/*'], when: {path: /etc/**}, decide: deny}]\n"


def test_calls_that_would_be_decided_otherwise_are_told(
    file: Path, log: str, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(POLICY)
    monkeypatch.setenv("AGENTS_STORE", log)
    assert main(["policy", "test", str(file)]) == 1
    assert json.loads(capsys.readouterr().out) == {
        "calls": 3,
        "found": [
            {
                "number": 2,
                "time": "2026-11-16T09:00:00",
                "run_id": "run-1",
                "tool": "mcp:files/write",
                "recorded": "needs_human",
                "with_the_file": "deny",
                "why": "the policy file refuses it (policy rule 1)",
            },
            {
                "number": 3,
                "time": "2026-11-16T09:00:00",
                "run_id": "run-1",
                "tool": "mcp:files/write",
                "recorded": "needs_human",
                "with_the_file": "cannot be told",
                "why": "rule 1 looks at /path, which the log hides",
            },
        ],
    }


def test_a_policy_that_changes_nothing_is_exit_zero(file: Path, log: str, capsys: Said) -> None:
    file.write_text("version: 1\n")
    assert main(["policy", "test", str(file), "--store", log, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"calls": 3, "found": []}


def on_a_terminal(arguments: list[str]) -> list[str]:
    ours, theirs = pty.openpty()
    code = f"from openai_responses_mcp.agents.terminal.command_line import main; raise SystemExit(main({arguments!r}))"
    environ = {**os.environ, "COLUMNS": "200"}
    with subprocess.Popen([sys.executable, "-c", code], stdout=theirs, stdin=theirs, env=environ) as process:
        os.close(theirs)
        process.wait(WAIT_SECONDS * 6)
        shown = os.read(ours, 100_000).decode()
    os.close(ours)
    return shown.splitlines()


def test_on_a_terminal_there_is_a_table(file: Path, log: str) -> None:
    file.write_text(POLICY)
    lines = on_a_terminal(["policy", "test", str(file), "--store", log])
    assert lines[0].split() == ["NO", "TIME", "(UTC)", "RUN", "TOOL", "RECORDED", "WITH", "THE", "FILE", "WHY"]
    assert lines[1].split()[4:6] == ["needs_human", "deny"]
    assert lines[3] == "1 of 3 recorded calls would be decided otherwise; of 1 it cannot be told"
    file.write_text("version: 1\n")
    assert on_a_terminal(["policy", "test", str(file), "--store", log]) == [
        "0 of 3 recorded calls would be decided otherwise"
    ]


def test_what_cannot_be_used_is_exit_two(file: Path, capsys: Said, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AGENTS_STORE", raising=False)
    monkeypatch.setenv("XDG_STATE_HOME", "/nowhere")
    assert main(["policy", "check", str(file)]) == 2
    assert f"{file}: cannot be read" in capsys.readouterr().err
    file.write_text("version: 2\n")
    assert main(["policy", "test", str(file), "--store", "sqlite://"]) == 2
    assert "AGENTS-E-POLICY-INVALID" in capsys.readouterr().err
    file.write_text("version: 1\n")
    assert main(["policy", "test", str(file)]) == 2
    assert "AGENTS_STORE" in capsys.readouterr().err
    assert main(["policy", "test", str(file), "--store", "mysql://x"]) == 2
    assert "AGENTS-E-RUNNER-CONFIG" in capsys.readouterr().err


@pytest.mark.parametrize("arguments", [["policy"], ["policy", "check"], ["policy", "mend", "x"]])
def test_missing_words_are_exit_two(arguments: list[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(arguments)
    assert caught.value.code == 2
