"""`guard setup` on the files of clients: what is rewritten, what stays, and that it can be undone."""

import json
import stat
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.commands.doctor.client_setups import CLIENTS, with_comments
from openai_responses_mcp.guard.client_files import Place, entries_in, rewritten
from openai_responses_mcp.guard.setup import main, own_command

CURSOR = """{
  // what I use every day
  "mcpServers": {
    "files": {
      "command": "npx", /* from npm */
      "args": [
        "-y",
        "@modelcontextprotocol/server-filesystem",
        "/path/to/notes",
      ],
      "env": {"API_TOKEN": "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"}
    },
    "git": {"command": "uvx", "args": ["mcp-server-git"]},
    "bare": { "command": "server" },
    "off": {"command": "x", "args": [], "disabled": true},
    "remote": {"url": "https://mcp.example/mcp"},
    "answers": {"command": "uvx", "args": ["openai-responses-mcp", "--stdio"]},
    "mine": {"command": "openai-responses-mcp", "args": ["guard", "--name", "mine", "--", "x"]},
    "odd": {"command": "x", "args": "not a list"},
  },
}
"""
CODEX = """# my servers
model = "gpt-5"

[mcp_servers.files]  # notes
command = "npx"
args = [
  "-y", # always
  "@modelcontextprotocol/server-filesystem",
]

[mcp_servers.files.env]
TOKEN = "x"

[mcp_servers."with blank"]
command = 'server'

[mcp_servers.off]
command = "x"
enabled = false
"""


class Machine:
    def __init__(self, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self.home = home
        self._capsys = capsys
        self.environ = {"HOME": str(home), "PATH": "", "XDG_STATE_HOME": str(home / "state")}
        self.cursor = self._file(".cursor/mcp.json", CURSOR)
        self.codex = self._file(".codex/config.toml", CODEX)

    def _file(self, name: str, text: str) -> Path:
        path = self.home / name
        path.parent.mkdir(parents=True)
        path.write_text(text)
        path.chmod(0o640)
        return path

    def setup(self, *words: str, code: int = 0) -> str:
        assert main(words, self.environ, None, str(self.home / "project")) == code
        said = self._capsys.readouterr()
        return said.out + said.err

    def servers(self) -> dict[str, Any]:
        data: dict[str, Any] = with_comments(self.cursor.read_text())["mcpServers"]
        return data


@pytest.fixture
def machine(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Machine:
    return Machine(tmp_path, capsys)


def test_the_guard_stands_in_front_of_every_server_that_it_can_guard(machine: Machine) -> None:
    said = machine.setup("--yes")
    own = list(own_command(machine.environ))
    servers = machine.servers()
    words = [servers["files"]["command"], *servers["files"]["args"]]
    behind = ["npx", "-y", "@modelcontextprotocol/server-filesystem", "/path/to/notes"]
    assert words == [*own, "guard", "--name", "files", "--", *behind]
    assert servers["bare"]["args"][-2:] == ["--", "server"]
    assert servers["files"]["env"] == {"API_TOKEN": "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"}
    left = {name: servers[name] for name in ("off", "remote", "answers", "mine", "odd")}
    assert left == {name: with_comments(CURSOR)["mcpServers"][name] for name in left}
    for name, why in [("off", "disabled"), ("remote", "URL"), ("answers", "own server"), ("mine", "guarded already")]:
        assert any(name in line and why in line for line in said.splitlines()), name
    codex = tomllib.loads(machine.codex.read_text())["mcp_servers"]
    assert codex["files"]["args"][-3:] == ["npx", "-y", "@modelcontextprotocol/server-filesystem"]
    assert codex["with blank"]["args"][-1] == "server"
    assert codex["off"] == {"command": "x", "enabled": False}


def test_comments_order_and_mode_of_a_file_stay(machine: Machine) -> None:
    machine.setup("--yes")
    text = machine.cursor.read_text()
    assert "// what I use every day" in text
    assert "/* from npm */" in text
    assert list(machine.servers()) == list(with_comments(CURSOR)["mcpServers"])
    assert stat.S_IMODE(machine.cursor.stat().st_mode) == 0o640
    toml = machine.codex.read_text()
    assert toml.startswith("# my servers\nmodel = ")
    assert "[mcp_servers.files]  # notes" in toml
    backups = list((machine.home / "state/openai-responses-mcp/backups").iterdir())
    assert len(backups) == 2
    assert {stat.S_IMODE(one.stat().st_mode) for one in backups} == {0o600}


def test_undo_gives_the_files_back_as_they_were(machine: Machine) -> None:
    machine.setup("--yes")
    said = machine.setup("--undo", "--yes")
    assert (machine.cursor.read_text(), machine.codex.read_text()) == (CURSOR, CODEX)
    assert "No longer guarded: files, git, bare" in said
    assert "Nothing to change." in machine.setup("--undo", "--yes")


def test_undo_works_where_other_entries_have_changed_since(machine: Machine) -> None:
    machine.setup("--yes")
    text = machine.cursor.read_text().replace("https://mcp.example/mcp", "https://other.example/mcp")
    machine.cursor.write_text(text.replace('"mcp-server-git"', '"another-server"'))
    said = machine.setup("--undo", "--yes")
    servers = machine.servers()
    assert [servers["files"]["command"], *servers["files"]["args"]][:2] == ["npx", "-y"]
    assert servers["remote"] == {"url": "https://other.example/mcp"}
    assert servers["git"]["args"][-1] == "another-server"
    assert "git in" in said
    assert "it has changed since" in said
    assert servers["mine"]["args"] == ["guard", "--name", "mine", "--", "x"]


def test_a_second_setup_changes_nothing(machine: Machine) -> None:
    machine.setup("--yes")
    before = machine.cursor.read_bytes()
    assert "Nothing to change." in machine.setup("--yes")
    assert machine.cursor.read_bytes() == before


def test_nothing_is_written_without_a_yes(machine: Machine) -> None:
    assert "--server-filesystem" not in machine.setup("--dry-run")
    said = machine.setup(code=2)
    assert "--yes" in said
    assert (machine.cursor.read_text(), machine.codex.read_text()) == (CURSOR, CODEX)
    assert not (machine.home / "state").exists()


def test_the_diff_shows_no_secret(machine: Machine) -> None:
    secret = "ghp_0123456789abcdefghijklmnopqrstuvwxyzAB"
    machine.cursor.write_text(json.dumps({"mcpServers": {"x": {"command": "x", "args": ["--token", secret]}}}))
    said = machine.setup("cursor", "--dry-run")
    assert "guard" in said
    assert secret not in said


def test_clients_servers_and_a_policy_can_be_named(machine: Machine) -> None:
    machine.setup("cursor", "--server", "git", "--policy", "rules.yaml", "--yes")
    args = machine.servers()["git"]["args"]
    assert args[args.index("--policy") + 1] == str(Path("rules.yaml").absolute())
    assert machine.servers()["files"]["command"] == "npx"
    assert machine.codex.read_text() == CODEX
    with pytest.raises(SystemExit):
        machine.setup("netscape")


def test_servers_of_a_folder_are_guarded_only_when_asked_for(machine: Machine) -> None:
    project = machine.home / "project"
    (project / ".cursor").mkdir(parents=True)
    (project / ".cursor/mcp.json").write_text('{"mcpServers": {"p": {"command": "p"}}}')
    section = {"mcpServers": {"c": {"command": "c", "args": []}}}
    (machine.home / ".claude.json").write_text(json.dumps({"projects": {str(project): section}}, indent=2))
    machine.setup("cursor", "claude-code", "--project", "--yes")
    assert machine.cursor.read_text() == CURSOR
    assert json.loads((project / ".cursor/mcp.json").read_text())["mcpServers"]["p"]["args"][-1] == "p"
    claude = json.loads((machine.home / ".claude.json").read_text())["projects"][str(project)]["mcpServers"]
    assert claude["c"]["args"][-1] == "c"
    machine.setup("--undo", "--yes")
    assert json.loads((machine.home / ".claude.json").read_text())["projects"][str(project)] == section


def test_a_file_that_cannot_be_read_is_named(machine: Machine) -> None:
    machine.cursor.write_text("{ nothing")
    said = machine.setup("--yes")
    assert f"{machine.cursor}: it cannot be read" in said
    assert machine.cursor.read_text() == "{ nothing"
    assert "guard" in machine.codex.read_text()


_TEXT = st.text(max_size=12)


@given(
    st.dictionaries(
        _TEXT,
        st.fixed_dictionaries({"command": _TEXT.filter(str.strip)}, optional={"args": st.lists(_TEXT, max_size=3)}),
        min_size=1,
        max_size=3,
    ),
    st.sampled_from([None, 2]),
    st.booleans(),
)
def test_any_entry_is_rewritten_and_nothing_else_changes(
    servers: dict[str, Any], indent: int | None, is_ascii: bool
) -> None:
    cursor = next(one for one in CLIENTS if one.name == "Cursor")
    text = json.dumps({"a": [1, {"b": None}], "mcpServers": servers}, indent=indent, ensure_ascii=is_ascii)
    for entry in entries_in(cursor, text):
        text = rewritten(cursor, text, {entry.place: ("guard", "--", *entry.words)})
    wanted = {
        name: {"command": "guard", "args": ["--", one["command"], *one.get("args", [])]}
        for name, one in servers.items()
    }
    assert json.loads(text) == {"a": [1, {"b": None}], "mcpServers": wanted}
    assert Place(("mcpServers", "x")).name == "x"
