"""`guard doctor` on the files of clients: what is wrong with a guarded entry before, and when, a client starts it."""

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.cli import main as program
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from openai_responses_mcp.guard.doctor import main

PYTHON = sys.executable
SERVER = str(Path(__file__).parent / "small_server.py")


class Machine:
    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home, self._capsys = home, capsys
        self.environ = {"HOME": str(home), "PATH": os.environ["PATH"], "XDG_STATE_HOME": str(home / "state")}
        self.policy = home / "policy.yaml"
        self.policy.write_text("version: 1\nprofile: balanced\n")

    def entry(self, *options: str, server: tuple[str, ...] = (PYTHON, SERVER), **more: Any) -> dict[str, Any]:
        words = ["-m", "openai-responses-mcp", "guard", "--name", "files", *options, "--", *server]
        return {"command": PYTHON, "args": words, **more}

    def put(self, file: str, text: str) -> None:
        (self.home / file).parent.mkdir(parents=True, exist_ok=True)
        (self.home / file).write_text(text)

    def cursor(self, **servers: Any) -> None:
        self.put(".cursor/mcp.json", json.dumps({"mcpServers": servers}))

    def doctor(self, *words: str, code: int = 0) -> list[str]:
        assert main(words, self.environ, str(self.home / "project")) == code
        *lines, last = self._capsys.readouterr().out.splitlines()
        assert last.startswith("No problems found." if code == 0 else "1 problem found.")
        return lines


@pytest.fixture
def machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Machine:
    return Machine(tmp_path, capsys)


def test_without_a_guarded_server_it_says_how_to_guard_them(machine: Machine) -> None:
    machine.cursor(files={"command": "npx", "args": ["server"]}, off=machine.entry(disabled=True))
    assert machine.doctor() == ["--    guarded servers: none; openai-responses-mcp guard setup guards them"]


def test_an_entry_that_is_well_says_what_was_checked(machine: Machine) -> None:
    machine.cursor(files=machine.entry("--policy", str(machine.policy)))
    (line,) = machine.doctor()
    file = machine.home / ".cursor/mcp.json"
    assert line == (
        f"ok    Cursor, files in {file}: the policy {machine.policy} can be read; the store is made with the first call"
    )


@pytest.mark.parametrize(
    ("options", "more", "problem"),
    [
        (["--policy", "{home}/broken.yaml"], {}, "broken.yaml:2"),
        (["--policy", "policy.yaml"], {}, "is looked for where the client starts: write its whole path"),
        (["--polici", "x"], {}, "the guard does not start: unknown option --polici"),
        (["--store", "sqlite:///{home}/no/folder/x.db"], {}, "cannot be made: {home}/no/folder is not a folder"),
        (["--store", "mysql://x"], {}, "the store cannot be used"),
        ([], {"env": {"AGENTS_STORE": "sqlite:///${HOME}/broken.yaml"}}, "store names broken.yaml"),
        ([], {"server": ("no-such-command",)}, "the command no-such-command cannot be found: install it"),
    ],
)
def test_what_is_wrong_is_said(machine: Machine, options: list[str], more: dict[str, Any], problem: str) -> None:
    home = str(machine.home)
    (machine.home / "broken.yaml").write_text("version: 1\nprofil: fast\n")
    machine.cursor(files=machine.entry(*(one.replace("{home}", home) for one in options), **more))
    (line,) = machine.doctor(code=1)
    assert line.startswith(f"FAIL  Cursor, files in {home}")
    assert problem.replace("{home}", home) in line


def test_the_clients_own_command_has_to_exist_too(machine: Machine) -> None:
    machine.cursor(files={"command": "/gone/openai-responses-mcp", "args": ["guard", "--", PYTHON]})
    assert "the command /gone/openai-responses-mcp cannot be found" in machine.doctor(code=1)[0]


def test_an_entry_with_a_url_needs_its_variables_and_no_command(machine: Machine) -> None:
    words = ["-m", "openai-responses-mcp", "guard", "--url", "https://mcp.example/mcp", "--header-env", "X-Key=MY_KEY"]
    machine.cursor(files={"command": PYTHON, "args": words})
    assert "the variable MY_KEY of --header-env is not set" in machine.doctor(code=1)[0]
    machine.cursor(files={"command": PYTHON, "args": words, "env": {"MY_KEY": "a key"}})
    assert machine.doctor()[0].startswith("ok    Cursor, files in")


def test_a_store_that_is_there_is_opened(machine: Machine) -> None:
    store = f"sqlite:///{machine.home}/x.db"
    machine.cursor(files=machine.entry("--store", store))
    assert f"the store {machine.home}/x.db is made with the first call" in machine.doctor()[0]
    (machine.home / "x.db").touch()
    assert "There is no store at this address" in machine.doctor(code=1)[0]


async def test_a_store_that_cannot_be_written_is_a_problem(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    store = f"sqlite:///{machine.home}/x.db"
    await open_stores(store).approvals.list_pending()
    machine.cursor(files=machine.entry("--store", store))
    assert "the store can be opened" in (await asyncio.to_thread(machine.doctor))[0]
    # For root, only a disk can be read-only.
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    (line,) = await asyncio.to_thread(machine.doctor, code=1)
    assert line.endswith("the store cannot be used: the file or its folder is read-only")


def test_every_client_and_every_folder_is_looked_at(machine: Machine) -> None:
    machine.put(".claude.json", json.dumps({"projects": {"/src": {"mcpServers": {"git": machine.entry()}}}}))
    machine.put("project/.cursor/mcp.json", json.dumps({"mcpServers": {"here": machine.entry()}}))
    machine.put(".codex/config.toml", "[mcp_servers.x\n")
    lines = machine.doctor(code=1)
    assert [line.partition(" in ")[0] for line in lines if line.startswith("ok")] == [
        "ok    Claude Code, git",
        "ok    Cursor, here",
    ]
    assert any(line.startswith("FAIL  Codex: ") and "config.toml cannot be read" in line for line in lines)
    assert len(machine.doctor("cursor", "--server", "here")) == 1


def test_a_client_that_is_not_known_is_wrong_usage(machine: Machine, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        program(["guard", "doctor", "cursr"], machine.environ)
    assert "unknown client cursr: did you mean cursor? (claude-code" in capsys.readouterr().err


def test_with_start_it_is_started_and_its_tools_are_listed(machine: Machine) -> None:
    machine.cursor(files=_as_module(machine.entry()))
    (line,) = machine.doctor("--start")
    assert "; it starts and has 9 tools: echo, fail, write_note" in line


def test_an_entry_that_does_not_start_says_its_last_words(machine: Machine) -> None:
    dying = (PYTHON, "-c", "import sys; sys.exit('no token given')")
    machine.cursor(files=_as_module(machine.entry(server=dying)))
    (line,) = machine.doctor("--start", code=1)
    assert "it was started, and " in line
    assert "no token given" in line


def _as_module(entry: dict[str, Any]) -> dict[str, Any]:
    """Python finds the module only by its own name; an entry is ours by either."""
    return {**entry, "args": ["-m", "openai_responses_mcp", *entry["args"][2:]]}


def test_the_doctor_speaks_japanese_where_the_terminal_does(
    machine: Machine, capsys: pytest.CaptureFixture[str]
) -> None:
    machine.environ["LANG"] = "ja_JP.UTF-8"
    machine.cursor(files=machine.entry("--policy", str(machine.policy)), gone=machine.entry(server=("no-such",)))
    assert main([], machine.environ, str(machine.home / "project")) == 1
    said = capsys.readouterr().out
    assert f"ok    Cursor の files ({machine.home}/.cursor/mcp.json): ポリシー {machine.policy} を読めます。" in said
    assert "1 件の問題があります。まずこれから: Cursor の gone" in said
