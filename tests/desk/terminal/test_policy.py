"""A person checks a policy file, and tries it on the log."""

import asyncio
import json
from pathlib import Path

import pytest

from openai_responses_mcp.desk.terminal.command_line import main
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.definitions import pin_of
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.desk.terminal.pseudo_terminal import on_a_terminal

ROOT = Path(__file__).parents[3]

Said = pytest.CaptureFixture[str]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "policy.yaml"


def test_the_example_is_fine(capsys: Said) -> None:
    example = str(ROOT / "config" / "policy.yaml.example")
    assert main(["policy", "check", example]) == 0
    assert capsys.readouterr().out == f"{example}: 9 rules, no problems\n"


def test_problems_are_printed_one_per_line(file: Path, capsys: Said) -> None:
    file.write_text("version: 2\nrules:\n- {tools: [a/b], decide: no}\n")
    assert main(["policy", "check", str(file)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{file}:1: version is 1, the only version there is",
        f"{file}:3: rule 1: decide is allow, ask or deny",
    ]


def test_rules_that_never_apply_or_come_too_late_are_named(file: Path, capsys: Said) -> None:
    file.write_text(
        "version: 1\nrules:\n- {tools: ['a/*'], when: {p: x}, decide: allow}\n- {tools: ['*/delete_*'], decide: deny}\n"
        "- {tools: ['*'], decide: ask}\n- {tools: [a/b], decide: deny}\n"
    )
    assert main(["policy", "check", str(file)]) == 1
    never = f"{file}:6: rule 4 can never apply: rule 3 always comes first"
    late = f"{file}:4: rule 2 may come too late: rule 1 (allow) stands before it and decides some of its calls"
    assert {never, late} <= set(capsys.readouterr().out.splitlines())


def test_with_a_store_names_that_it_does_not_know_are_named(file: Path, sqlite_url: str, capsys: Said) -> None:
    pins = open_stores(sqlite_url).pins
    assert pins is not None
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    asyncio.run(pins.put("files/write_file", pin_of({"name": "write_file", "inputSchema": schema})))
    file.write_text(
        "version: 1\nrules:\n- {tools: [files/write_fil], decide: deny}\n- {tools: ['files/*'], when: {pth: x}, decide: ask}\n"
    )
    assert main(["policy", "check", str(file)]) == 0
    capsys.readouterr()
    assert main(["policy", "check", str(file), "--store", sqlite_url]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{file}:3: rule 1: no tool of files is known as write_fil (did you mean files/write_file?)",
        f"{file}:4: rule 2: no argument is called pth (did you mean path?)",
    ]


@pytest.fixture
def log(sqlite_url: str) -> str:
    """Three calls that needed a human, one of them with a masked argument."""
    logs = open_stores(sqlite_url).logs
    why = "risk 3 needs a human under the profile balanced"
    for number, args in enumerate(({"path": "/tmp/a"}, {"path": "/etc/a"}, {"path": "***"})):
        moment, tool = "2026-11-16T09:00:00.5", ("files/write", "mcp", 3)
        record = ExecutionLog("run-1", f"c-{number}", "decision", "needs_human", moment, *tool, why, args)
        asyncio.run(logs.append(record))
    return sqlite_url


POLICY = "version: 1\nrules: [{tools: ['files/*'], when: {path: /etc/**}, decide: deny}]\n"


def test_calls_that_would_be_decided_otherwise_are_listed(
    file: Path, log: str, capsys: Said, monkeypatch: pytest.MonkeyPatch
) -> None:
    file.write_text(POLICY)
    monkeypatch.setenv("AGENTS_STORE", log)
    assert main(["policy", "test", str(file), "--json"]) == 1
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


def test_people_get_a_table(file: Path, log: str, capsys: Said) -> None:
    file.write_text(POLICY)
    assert main(["policy", "test", str(file), "--store", log]) == 1
    piped = capsys.readouterr().out.splitlines()
    lines = on_a_terminal(["policy", "test", str(file), "--store", log]).splitlines()
    assert lines == piped
    assert lines[0].split() == ["NO", "TIME", "TOOL", "WAS", "WITH", "THE", "FILE", "WHY"]
    assert lines[1].split()[3:6] == ["files/write", "asked", "deny"]
    assert lines[3] == "1 of 3 recorded calls would be decided otherwise; for 1 the log does not show enough"
    narrow = on_a_terminal(["policy", "test", str(file), "--store", log], 60).splitlines()
    assert narrow[3:4] == ["    the policy file refuses it (policy rule 1)"]
    assert max(map(len, narrow[:-1])) <= 60
    file.write_text("version: 1\n")
    assert main(["policy", "test", str(file), "--store", log]) == 0
    assert capsys.readouterr().out == "0 of 3 recorded calls would be decided otherwise\n"


def test_a_file_is_suggested_and_never_written_over_another(file: Path, log: str, capsys: Said) -> None:
    approval = ExecutionLog(
        "run-1", "c-0", "approval", "approved", "2026", "files/write", "mcp", 3, arguments={"path": "/tmp/a"}
    )
    asyncio.run(open_stores(log).logs.append(approval))
    assert main(["policy", "suggest", "--store", log]) == 0
    text = capsys.readouterr().out
    assert 'when: {path: "/tmp/a"}\n    decide: allow' in text
    assert main(["policy", "suggest", "--store", log, "--write", str(file)]) == 0
    assert file.read_text() == text
    said = capsys.readouterr().out
    assert said.startswith(f"Wrote {file}. Try it: openai-responses-mcp policy test {file}\nUse it: ")
    assert f"openai-responses-mcp guard setup --policy {file}\n" in said
    assert main(["policy", "check", str(file)]) == 0
    file.write_text("mine")
    assert main(["policy", "suggest", "--store", log, "--write", str(file)]) == 2
    assert file.read_text() == "mine"
    assert "is there already" in capsys.readouterr().err
    assert main(["policy", "suggest", "--store", log, "--server", "other"]) == 0
    assert capsys.readouterr().out.endswith("rules: []\n")


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
