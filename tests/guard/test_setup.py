"""`guard setup` on the files of clients: what is rewritten, what stays, and that it can be undone."""

import io
import json
import shutil
import stat
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.commands.doctor.clients import CLIENTS, with_comments
from openai_responses_mcp.guard.client_files import CannotRewrite, entries_in
from openai_responses_mcp.guard.rewriting import rewritten, with_entry_text
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

    def policy(self, name: str) -> str:
        (self.home / name).write_text("version: 1\n")
        return str(self.home / name)

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
    assert [servers["remote"]["command"], *servers["remote"]["args"]] == [
        *own,
        *("guard", "--name", "remote", "--url", "https://mcp.example/mcp"),
    ]
    assert "If remote asks for a login: openai-responses-mcp guard login --url https://mcp.example/mcp" in said
    left = {name: servers[name] for name in ("off", "answers", "mine", "odd")}
    assert left == {name: with_comments(CURSOR)["mcpServers"][name] for name in left}
    for name, why in [("off", "disabled"), ("answers", "own server"), ("mine", "guarded already")]:
        assert any(name in line and why in line for line in said.splitlines()), name
    codex = tomllib.loads(machine.codex.read_text())["mcp_servers"]
    assert codex["files"]["args"][-3:] == ["npx", "-y", "@modelcontextprotocol/server-filesystem"]
    assert codex["with blank"]["args"][-1] == "server"
    assert codex["off"] == {"command": "x", "enabled": False}


@pytest.mark.parametrize(
    ("client", "file", "section"),
    [
        ("claude-code", ".claude.json", "mcpServers"),
        ("claude-desktop", ".config/Claude/claude_desktop_config.json", "mcpServers"),
        ("vscode", ".config/Code/User/mcp.json", "servers"),
        ("gemini", ".gemini/settings.json", "mcpServers"),
    ],
)
def test_every_client_is_guarded_in_the_users_own_file_and_undone(
    machine: Machine, client: str, file: str, section: str
) -> None:
    path = machine.home / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(before := json.dumps({"other": 1, section: {"memory": {"command": "npx", "args": ["memory"]}}}))
    machine.setup(client, "--yes")
    guarded = json.loads(path.read_text())[section]["memory"]
    assert guarded["args"][-6:] == ["guard", "--name", "memory", "--", "npx", "memory"]
    assert (machine.cursor.read_text(), machine.codex.read_text()) == (CURSOR, CODEX)
    machine.setup("--undo", "--yes")
    assert path.read_text() == before


def test_comments_order_and_mode_of_a_file_stay_and_undo_gives_it_back(machine: Machine) -> None:
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
    said = machine.setup("--undo", "--yes")
    assert (machine.cursor.read_text(), machine.codex.read_text()) == (CURSOR, CODEX)
    assert "No longer guarded: files, git, bare, remote" in said
    assert "Nothing to change." in machine.setup("--undo", "--yes")


def test_undo_works_where_other_entries_have_changed_since(machine: Machine) -> None:
    machine.setup("--yes")
    text = machine.cursor.read_text().replace('"off": {"command": "x"', '"off": {"command": "y"')
    machine.cursor.write_text(text.replace('"mcp-server-git"', '"another-server"'))
    said = machine.setup("--undo", "--yes")
    servers = machine.servers()
    assert [servers["files"]["command"], *servers["files"]["args"]][:2] == ["npx", "-y"]
    assert servers["remote"] == {"url": "https://mcp.example/mcp"}
    assert servers["off"]["command"] == "y"
    assert servers["git"]["args"][-1] == "another-server"
    assert "git in" in said
    assert "it has changed since" in said
    assert servers["mine"]["args"] == ["guard", "--name", "mine", "--", "x"]


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
    assert said.endswith(
        f"To guard: x (1 in {machine.cursor})\nNothing was written. To write it, leave out --dry-run.\n"
    )
    assert secret not in said
    machine.setup("cursor", "--yes")
    assert f"To guard no longer: x (1 in {machine.cursor})\n" in machine.setup("--undo", "--dry-run")


def test_clients_servers_and_a_policy_can_be_named(machine: Machine) -> None:
    machine.setup("cursor", "--server", "git", "--policy", machine.policy("rules.yaml"), "--yes")
    args = machine.servers()["git"]["args"]
    assert args[args.index("--policy") + 1] == str(machine.home / "rules.yaml")
    assert machine.servers()["files"]["command"] == "npx"
    assert machine.codex.read_text() == CODEX


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("kursor", "unknown client kursor: did you mean cursor? (claude-code, claude-desktop,"),
        ("--server fils", "unknown server fils: did you mean files?"),
        ("--undo --server files", "unknown server files ("),
    ],
)
def test_a_misspelt_word_gets_the_nearest_one(
    machine: Machine, line: str, problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as caught:
        machine.setup(*line.split(), "--yes")
    assert caught.value.code == 2
    assert capsys.readouterr().err.startswith(f"openai-responses-mcp guard setup: {problem}")
    assert machine.cursor.read_text() == CURSOR


def test_a_policy_is_given_to_the_guards_that_are_there_and_all_of_it_is_undone(machine: Machine) -> None:
    machine.setup("--yes")
    guarded = machine.servers()["git"]["args"]
    first, second = machine.policy("first.yaml"), machine.policy("second.yaml")
    said = machine.setup("--policy", first, "--dry-run")
    assert "Left alone: mine in" in said
    assert machine.servers()["git"]["args"] == guarded
    for policy in (first, second):
        said = machine.setup("--policy", policy, "--yes")
        assert f'"--policy", "{policy}"' in said
        at = guarded.index("--name") + 2
        assert machine.servers()["git"]["args"] == [*guarded[:at], "--policy", policy, *guarded[at:]]
        assert machine.servers()["remote"]["args"][-4:] == ["--policy", policy, "--url", "https://mcp.example/mcp"]
        assert "--policy" not in machine.servers()["mine"]["args"]
        assert tomllib.loads(machine.codex.read_text())["mcp_servers"]["files"]["args"].count(policy) == 1
        assert "Nothing to change." in machine.setup("--policy", policy, "--yes")
    machine.setup("--undo", "--yes")
    assert (machine.cursor.read_text(), machine.codex.read_text()) == (CURSOR, CODEX)


def test_a_guard_with_another_policy_is_undone_also_where_the_file_has_changed_since(machine: Machine) -> None:
    machine.setup("cursor", "--yes")
    machine.setup("cursor", "--server", "git", "--policy", machine.policy("rules.yaml"), "--yes")
    machine.cursor.write_text(machine.cursor.read_text().replace("every day", "every night"))
    machine.setup("cursor", "--server", "remote", "--policy", machine.policy("rules.yaml"), "--yes")
    machine.setup("cursor", "--undo", "--yes")
    assert machine.servers()["git"] == {"command": "uvx", "args": ["mcp-server-git"]}
    assert machine.servers()["remote"] == {"url": "https://mcp.example/mcp"}


def test_a_policy_that_no_guard_could_read_is_not_written_anywhere(machine: Machine) -> None:
    before = machine.cursor.read_text()
    (machine.home / "broken.yaml").write_text("version: 1\nrulez: []\n")
    assert "unknown key (did you mean rules?)" in machine.setup(
        "--policy", str(machine.home / "broken.yaml"), "--yes", code=2
    )
    assert "no.yaml" in machine.setup("--policy", str(machine.home / "no.yaml"), "--yes", code=2)
    assert machine.cursor.read_text() == before


def test_a_policy_is_not_written_where_the_guard_is_not_installed(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openai_responses_mcp.desk.opening", None)
    assert 'this needs the extra "guard"' in machine.setup("--policy", machine.policy("rules.yaml"), "--yes", code=2)


def test_servers_of_a_folder_are_guarded_only_when_asked_for(machine: Machine) -> None:
    project = machine.home / "project"
    (project / ".cursor").mkdir(parents=True)
    (project / ".cursor/mcp.json").write_text('{"mcpServers": {"p": {"command": "p"}}}')
    section = {"mcpServers": {"c": {"command": "c", "args": []}}}
    (machine.home / ".claude.json").write_text(json.dumps({"projects": {str(project): section}}, indent=2))
    said = machine.setup("claude-code", "--yes")
    assert f"Left alone: c in {machine.home / '.claude.json'}: it belongs to a project: cd {project} && openai" in said
    machine.setup("cursor", "claude-code", "--project", "--yes")
    assert machine.setup("claude-code", "--yes") == "Nothing to change.\n"
    assert machine.cursor.read_text() == CURSOR
    assert json.loads((project / ".cursor/mcp.json").read_text())["mcpServers"]["p"]["args"][-1] == "p"
    claude = json.loads((machine.home / ".claude.json").read_text())["projects"][str(project)]["mcpServers"]
    assert claude["c"]["args"][-1] == "c"
    policy = machine.policy("rules.yaml")
    said = machine.setup("claude-code", "--policy", policy, "--yes")
    assert f"cd {project} && openai-responses-mcp guard setup --project --policy {policy}\n" in said
    machine.setup("--undo", "--yes")
    assert json.loads((machine.home / ".claude.json").read_text())["projects"][str(project)] == section


def test_a_guard_that_was_written_or_changed_by_hand_is_named_where_it_lacks_the_policy(machine: Machine) -> None:
    machine.setup("cursor", "--yes")
    machine.cursor.write_text(machine.cursor.read_text().replace("mcp-server-git", "mcp-server-hg"))
    by_hand = {"mcpServers": {"c": {"command": "openai-responses-mcp", "args": ["guard", "--", "c"]}}}
    (machine.home / ".claude.json").write_text(json.dumps({"projects": {"/path/to/x": by_hand}}))
    said = machine.setup("cursor", "claude-code", "--policy", machine.policy("rules.yaml"), "--yes")
    why = "it was guarded or changed by hand: write --policy into its command, before --"
    assert f"Left alone: git in {machine.cursor}: {why}" in said
    assert f"Left alone: c in {machine.home / '.claude.json'}: {why}" in said


@pytest.mark.parametrize(
    ("text", "why"),
    [("{\n nothing", "line 2"), (" " * (16 * 1024 * 1024 + 1), "too large")],
    ids=["broken", "too large"],
)
def test_a_file_that_cannot_be_read_is_named_and_the_others_are_guarded(machine: Machine, text: str, why: str) -> None:
    machine.cursor.write_text(text)
    said = machine.setup("--yes")
    reason = said.partition(f"{machine.cursor}: it cannot be read (")[2].partition(")\n")[0]
    assert why in reason
    assert machine.cursor.read_text() == text
    assert "guard" in machine.codex.read_text()


REMOTE = """{
  "mcpServers": {
    "keyed": {
      "type": "http", // new
      "url": "https://mcp.example/mcp",
      "headers": {
        "Authorization": "Bearer ${env:TOKEN}", /* from the environment */
        "X-Custom": "plain secret of mine"
      },
      "timeout": 30
    },
    "short": {"url": "http://localhost:9/mcp", "headers": {}},
    "sse": {"type": "sse", "url": "https://mcp.example/sse"},
    "plain": {"url": "http://mcp.example/mcp"},
    "filled": {"url": "https://${env:HOST}/mcp"},
    "oauth": {"url": "https://mcp.example/mcp", "auth": {"CLIENT_ID": "x"}},
    "twice": {"url": "https://mcp.example/mcp", "headers": {"X-A": "1", "X_A": "2"}},
    "numbers": {"url": "https://mcp.example/mcp", "headers": {"X-A": 1}},
    "bad": {"url": "https://mcp.example/mcp", "headers": {"X A": "1"}},
    "both": {"url": "https://mcp.example/mcp", "httpUrl": "https://mcp.example/mcp"},
    "off": {"url": "https://mcp.example/mcp", "disabled": true}
  }
}
"""
REMOTE_CODEX = """[mcp_servers.figma]
url = "https://mcp.figma.com/mcp" # design
bearer_token_env_var = "FIGMA_TOKEN"
env_http_headers = { "X-Region" = "FIGMA_REGION" }
tool_timeout_sec = 60

[mcp_servers.bare]
url = "https://mcp.example/mcp"

[mcp_servers.literal]
url = "https://mcp.example/mcp"
http_headers = { "X-Key" = "plain secret of mine" }

[mcp_servers.odd]
url = "https://mcp.example/mcp"
bearer_token_env_var = 5
"""


def test_an_entry_with_a_url_gets_the_guard_and_its_headers_stay_in_the_file(machine: Machine) -> None:
    machine.cursor.write_text(REMOTE)
    machine.codex.write_text(REMOTE_CODEX)
    said = machine.setup("--yes")
    own = list(own_command(machine.environ))
    assert "plain secret of mine" not in said
    servers = machine.servers()
    assert servers["keyed"] == {
        "type": "stdio",
        "command": own[0],
        "args": [
            *own[1:],
            *("guard", "--name", "keyed", "--url", "https://mcp.example/mcp"),
            *("--header-env", "Authorization=MCP_HEADER_AUTHORIZATION"),
            *("--header-env", "X-Custom=MCP_HEADER_X_CUSTOM"),
        ],
        "env": {"MCP_HEADER_AUTHORIZATION": "Bearer ${env:TOKEN}", "MCP_HEADER_X_CUSTOM": "plain secret of mine"},
        "timeout": 30,
    }
    assert "/* from the environment */" in machine.cursor.read_text()
    assert servers["short"]["args"][-1] == "http://localhost:9/mcp"
    left = ["sse", "plain", "filled", "oauth", "twice", "numbers", "bad", "both", "off"]
    assert {name: servers[name] for name in left} == {name: with_comments(REMOTE)["mcpServers"][name] for name in left}
    whys = ["SSE", "https://", "filled in", "auth", "headers", "headers", "headers", "safely", "disabled"]
    for name, why in zip(left, whys, strict=True):
        assert any(line.startswith(f"Left alone: {name} in") and why in line for line in said.splitlines()), name
    codex = tomllib.loads(machine.codex.read_text())["mcp_servers"]
    assert codex["figma"]["env_vars"] == ["FIGMA_REGION", "FIGMA_TOKEN"]
    assert codex["figma"]["args"][-4:] == [
        *("--header-env", "X-Region=FIGMA_REGION"),
        *("--header-env", "Authorization=Bearer FIGMA_TOKEN"),
    ]
    assert codex["figma"]["tool_timeout_sec"] == 60
    assert "# design" in machine.codex.read_text()
    assert codex["literal"] == tomllib.loads(REMOTE_CODEX)["mcp_servers"]["literal"]
    assert codex["odd"]["bearer_token_env_var"] == 5
    assert "Nothing to change." in machine.setup("--yes")
    # The header's value is not shown either when the policy changes or when all is undone.
    said = machine.setup("--policy", machine.policy("rules.yaml"), "--yes")
    assert "rules.yaml" in said
    assert "plain secret of mine" not in said
    said = machine.setup("--undo", "--yes")
    assert "plain secret of mine" not in said
    assert (machine.cursor.read_text(), machine.codex.read_text()) == (REMOTE, REMOTE_CODEX)


def test_gemini_takes_a_bare_url_for_the_older_transport(machine: Machine) -> None:
    gemini = machine.home / ".gemini/settings.json"
    gemini.parent.mkdir()
    entries = {"old": {"url": "https://a.example/sse"}, "new": {"httpUrl": "https://a.example/mcp"}}
    gemini.write_text(json.dumps({"mcpServers": entries}))
    machine.setup("gemini", "--yes")
    servers = json.loads(gemini.read_text())["mcpServers"]
    assert servers["old"] == entries["old"]
    assert servers["new"]["args"][-2:] == ["--url", "https://a.example/mcp"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"mcpServers": {"x": {"command": 5}}}', "it has no command"),
        ('{"mcpServers": {"x": {"url": "https://a.example/mcp", "url": "https://a.example/mcp"}}}', "safely"),
        ('{"a": ' + "[" * 120 + "]" * 120 + ', "mcpServers": {"x": {"command": "x"}}}', "safely"),
    ],
)
def test_an_entry_in_an_unusual_form_is_left_alone(machine: Machine, text: str, why: str) -> None:
    machine.cursor.write_text(text)
    said = machine.setup("cursor", "--yes")
    assert "Left alone: x in" in said
    assert why in said
    assert machine.cursor.read_text() == text


@pytest.mark.parametrize(
    "text",
    [
        'mcp_servers = { x = { command = "x" } }\n',
        'a = """\n[mcp_servers . ]\n"""\n[mcp_servers]\nx = { url = "https://a.example/mcp" }\n',
        '[mcp_servers.x]\n"command" = "x"\n',
        'a = """\n[mcp_servers.x]\ncommand = "y"\n"""\n[mcp_servers.x]\ncommand = "x"\n',
        '[mcp_servers.x]\ncommand = "x"\n"args" = ["a"]\n',
    ],
)
def test_toml_that_cannot_be_changed_safely_is_left_alone(machine: Machine, text: str) -> None:
    machine.codex.write_text(text)
    said = machine.setup("codex", "--yes")
    assert "Left alone: x in" in said
    assert machine.codex.read_text() == text


def test_a_text_without_the_command_is_not_rewritten() -> None:
    cases: list[str] = ["{", "{1: 2}", '{"a" 1}', '{"a": }', "[1", '{"mcpServers": {"x": {}}}']
    for text in cases:
        cursor = next(one for one in CLIENTS if one.name == "Cursor")
        with pytest.raises(CannotRewrite):
            rewritten(cursor, text, ("mcpServers", "x"), ("guard",))


def test_text_that_looks_like_arguments_is_not_changed(machine: Machine) -> None:
    machine.codex.write_text('[mcp_servers.x]\ncommand = "x"\nb = """\nargs = [\n"""\n')
    machine.setup("codex", "--yes")
    entry = tomllib.loads(machine.codex.read_text())["mcp_servers"]["x"]
    assert entry["args"][-2:] == ["--", "x"]
    assert entry["b"] == "args = [\n"


def test_an_entry_is_put_back_only_where_nothing_else_changes() -> None:
    cursor = next(one for one in CLIENTS if one.name == "Cursor")
    text = '{"mcpServers": {"x": {"command": "x"}, "y": 1}}'
    for written in ('{"url": ', '{}, "y": {}, "z": {}'):
        with pytest.raises(CannotRewrite):
            with_entry_text(cursor, text, ("mcpServers", "x"), written)


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def test_a_person_who_is_asked_and_does_not_say_yes_changes_nothing(
    machine: Machine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())
    asked: list[str] = []

    def ask(question: str) -> str:
        asked.append(question)
        return ["y", ""][len(asked) % 2]

    for is_written in (False, True):
        assert main(["codex"], machine.environ, ask, str(machine.home)) == 0
        assert ("guard" in machine.codex.read_text()) is is_written
    assert asked == ["Write 1 file? [y/N] "] * 2


def test_a_file_that_changes_meanwhile_or_cannot_be_written_is_left_alone(
    machine: Machine, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "stdin", Terminal())

    def meddle(_: str) -> str:
        machine.codex.write_text("changed = true\n")
        return "y"

    assert main(["codex"], machine.environ, meddle, str(machine.home)) == 1
    assert "it has changed since it was read" in capsys.readouterr().err
    assert machine.codex.read_text() == "changed = true\n"
    machine.codex.write_text(CODEX)

    def take_place(_: str) -> str:
        (machine.home / "state").write_text("no folder")
        return "y"

    assert main(["codex"], machine.environ, take_place, str(machine.home)) == 1
    assert "was not written" in capsys.readouterr().err
    assert machine.codex.read_text() == CODEX


def test_undo_without_backups_and_with_files_that_are_gone(machine: Machine) -> None:
    machine.setup("--yes")
    machine.setup("codex", "--undo", "--server", "files", "--yes")
    codex = tomllib.loads(machine.codex.read_text())["mcp_servers"]
    assert codex["files"]["command"] == "npx"
    assert "guard" in codex["with blank"]["args"]
    shutil.rmtree(machine.home / "state/openai-responses-mcp/backups")
    machine.codex.unlink()
    said = machine.setup("--undo", "--yes")
    assert f"{machine.codex}: it cannot be read" in said
    assert "guard" not in [word for name in ("files", "git", "bare") for word in machine.servers()[name]["args"]]
    assert machine.servers()["remote"] == {"url": "https://mcp.example/mcp"}


def test_undo_leaves_a_file_alone_that_cannot_be_read_any_more(machine: Machine) -> None:
    machine.setup("--yes")
    machine.cursor.write_text("{ nothing")
    machine.codex.write_text(machine.codex.read_text().replace("[mcp_servers.files]  # notes", "[mcp_servers . files]"))
    said = machine.setup("--undo", "--yes")
    assert said.count("it has changed since") == 4
    assert machine.cursor.read_text() == "{ nothing"


def test_an_entry_with_a_url_that_was_written_otherwise_stays(machine: Machine) -> None:
    machine.codex.write_text('[mcp_servers.x]\nurl = "https://a.example/mcp"\n')
    machine.setup("codex", "--yes")
    entry = tomllib.loads(machine.codex.read_text())["mcp_servers"]["x"]
    other = f"mcp_servers.x = {{ command = {json.dumps(entry['command'])}, args = {json.dumps(entry['args'])} }}\n"
    machine.codex.write_text(other)
    assert "it has changed since" in machine.setup("codex", "--undo", "--yes")
    assert machine.codex.read_text() == other


def test_a_client_starts_what_is_installed_and_never_what_uvx_throws_away(tmp_path: Path) -> None:
    kept, passing = tmp_path / "bin", tmp_path / "archive-v0" / "bin"
    for folder in (kept, passing):
        folder.mkdir(parents=True)
        (folder / "openai-responses-mcp").write_text("")
        (folder / "openai-responses-mcp").chmod(0o755)
    assert own_command({"PATH": str(kept)}) == (str(kept / "openai-responses-mcp"),)
    assert own_command({"PATH": str(passing)}) == (sys.executable, "-m", "openai_responses_mcp")
    assert own_command({"PATH": ""}, str(passing / "python"))[0] == "uvx"


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
        text = rewritten(cursor, text, entry.keys, ("guard", "--", *entry.words))
    wanted = {
        name: {"command": "guard", "args": ["--", one["command"], *one.get("args", [])]}
        for name, one in servers.items()
    }
    assert json.loads(text) == {"a": [1, {"b": None}], "mcpServers": wanted}


def test_in_the_users_own_folder_the_users_files_are_found(machine: Machine) -> None:
    assert main(["--dry-run"], machine.environ, None, str(machine.home)) == 0
    assert main(["--yes"], machine.environ, None, str(machine.home)) == 0
    assert "guard" in machine.cursor.read_text()


def test_setup_speaks_japanese_where_the_terminal_does(machine: Machine) -> None:
    machine.environ["LANG"] = "ja_JP.UTF-8"
    said = machine.setup("--yes")
    assert f"変更なし: mine ({machine.cursor}): すでにガードされています" in said
    assert "ガードしました: files, git, bare, remote" in said
