"""The page about the guard: its commands run as written, in order, with the decisions that the page describes.

uv, npx and the client's own command are stand-ins on the PATH.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.adapters.policy_file import LinearPatterns, parse_policy
from openai_responses_mcp.guard.command_line import parse
from tests.desk.terminal.test_for_people import Watching
from tests.e2e.client import Server, request
from tests.tools.docs import markdown
from tests.tools.docs.site import DOCS, read

PAGE = read(DOCS / "guard.md")
SECONDS = 60
FILE_SERVER = """
import json, sys
TEXT = {"type": "string"}
def tool(name, reads, **arguments):
    schema = {"type": "object", "properties": arguments}
    return {"name": name, "inputSchema": schema, "annotations": {"readOnlyHint": reads}}
TOOLS = [tool("read_text_file", True, path=TEXT), tool("list_directory", True, path=TEXT),
         tool("write_file", False, path=TEXT, content=TEXT), tool("move_file", False, source=TEXT, destination=TEXT)]
HELLO = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": {"name": "f", "version": "1"}}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" in asked:
        done = {"content": [{"type": "text", "text": "done"}]}
        result = {"initialize": HELLO, "tools/list": {"tools": TOOLS}}.get(asked["method"], done)
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


def blocks(language: str, page: str = PAGE) -> list[str]:
    return [one.text for one in markdown.blocks(page) if one.language == language]


def in_text(page: str) -> list[str]:
    """The commands between backticks."""
    text = re.sub(r"^```.*?^```", "", page, flags=re.DOTALL | re.MULTILINE)
    return re.findall(r"`(?:openai-responses-mcp )?((?:guard|approvals|policy|log|status) [^`]+)`", text)


COMMANDS = [line for block in blocks("sh") for line in block.splitlines()]


def test_the_rules_on_the_page_are_a_policy() -> None:
    (rules,) = blocks("yaml")
    assert parse_policy("docs/guard.md", rules, LinearPatterns()).problems == ()


def test_the_japanese_page_has_the_same_commands_files_and_sections() -> None:
    page = read(DOCS / "guard.ja.md")
    assert [blocks(language, page) for language in ("sh", "json")] == [blocks(language) for language in ("sh", "json")]
    assert in_text(page) == in_text(PAGE)
    (rules,) = blocks("yaml", page)
    assert parse_policy("docs/guard.ja.md", rules, LinearPatterns()).problems == ()
    assert len(re.findall(r"^#+ ", page, re.MULTILINE)) == len(re.findall(r"^#+ ", PAGE, re.MULTILINE))


class Home:
    """A user's folder, with stand-ins for what comes from elsewhere."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.notes = folder, folder / "notes"
        self._bin = folder / "bin"
        self._bin.mkdir()
        (folder / "server.py").write_text(FILE_SERVER)
        self._program("npx", f'exec {sys.executable} {folder}/server.py "$@"')
        self._program("uv", 'printf "%s\\n" "$@" > "$HOME/uv.txt"')
        self._program("claude", 'printf "%s\\n" "$@" > "$HOME/claude.txt"')
        self._program("openai-responses-mcp", f'exec {sys.executable} -m openai_responses_mcp "$@"')
        kept = {name: text for name, text in os.environ.items() if not name.startswith(("AGENTS_", "XDG_", "OPENAI_"))}
        self.environ = {**kept, "HOME": str(folder), "LANG": "C.UTF-8", "PATH": f"{self._bin}:{os.environ['PATH']}"}

    def _program(self, name: str, text: str) -> None:
        (self._bin / name).write_text(f"#!/bin/sh\n{text}\n")
        (self._bin / name).chmod(0o755)

    def run(self, line: str, code: int = 0) -> str:
        done = subprocess.run(
            ["sh", "-c", line],
            env=self.environ,
            cwd=self.folder,
            capture_output=True,
            text=True,
            timeout=SECONDS,
            check=False,
        )
        assert done.returncode == code, f"{line}\n{done.stdout}{done.stderr}"
        return done.stdout

    def serve(self, line: str) -> None:
        """Stops once the address is printed."""
        environ = {**self.environ, "BROWSER": "true"}
        serving = subprocess.Popen(["sh", "-c", f"exec {line}"], env=environ, cwd=self.folder, stdout=subprocess.PIPE)
        with serving:
            assert serving.stdout is not None
            assert any(b"http://127.0.0.1:" in one for one in serving.stdout)
            serving.terminate()

    def until_waiting(self) -> None:
        deadline = time.monotonic() + SECONDS
        while self.run("openai-responses-mcp approvals list --json") == "[]\n":
            assert time.monotonic() < deadline

    def entry(self) -> dict[str, Any]:
        text = (self.folder / ".cursor/mcp.json").read_text()
        return dict(json.loads(text)["mcpServers"]["files"])


class Client:
    """Starts the entry as Cursor does, and calls tools."""

    def __init__(self, home: Home) -> None:
        entry = home.entry()
        self._server = Server([entry["command"], *entry["args"]], home.environ)
        self._called = 0
        hello = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}}
        self._server.result_of("initialize", hello)
        self._server.result_of("tools/list")

    def start(self, tool: str, **arguments: Any) -> None:
        self._called += 1
        self._server.send(request(f"call {self._called}", "tools/call", {"name": tool, "arguments": arguments}))

    def text(self) -> str:
        return str(self._server.reply_to(f"call {self._called}", SECONDS)["result"]["content"][0]["text"])

    def close(self) -> None:
        self._server.close()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_every_command_on_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home, left = Home(tmp_path), list(COMMANDS)

    def next_one(beginning: str) -> str:
        line = left.pop(0)
        assert line.startswith(beginning), line
        return line

    # Set up
    home.run(next_one("uv tool install"))
    assert "openai-responses-mcp[guard] @ git+https://" in (tmp_path / "uv.txt").read_text()
    home.run(next_one("mkdir"))
    assert home.notes.is_dir()
    (shown,) = blocks("json")
    (tmp_path / ".cursor").mkdir()
    (tmp_path / ".cursor/mcp.json").write_text(shown.replace("/path/to/notes", str(home.notes)))
    home.run(next_one("openai-responses-mcp guard setup"))
    assert "it starts and has 4 tools: read_text_file" in home.run(next_one("openai-responses-mcp guard doctor"))
    home.run(next_one("claude mcp add"))
    words = (tmp_path / "claude.txt").read_text().split()
    assert parse(words[words.index("guard") + 1 :], {}).name == "files"
    # The first question: one key, and reading asks no more
    client = Client(home)
    client.start("read_text_file", path=str(home.notes / "plan.md"))
    assert next_one("openai-responses-mcp approvals watch") == "openai-responses-mcp approvals watch"
    for name, value in home.environ.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    screen = Watching()
    screen.until("[r] allow every tool of this server")
    screen.press("r")
    screen.until("files/list_directory")
    assert screen.close() == 130
    assert client.text() == "done"
    for number in range(20):
        client.start("read_text_file", path=str(home.notes / f"{number}.md"))
        assert client.text() == "done"
    client.close()
    # From questions to rules
    home.run(next_one("openai-responses-mcp policy suggest"))
    home.run(next_one("openai-responses-mcp policy check"))
    assert "would be decided otherwise" in home.run(next_one("openai-responses-mcp policy test"), code=1)
    home.run(next_one("openai-responses-mcp guard setup --policy"))
    assert "--policy" in home.entry()["args"]
    # What you see where: with the policy in front, what was only ever allowed runs, and the rest is asked about
    client = Client(home)
    client.start("read_text_file", path=str(home.notes / "todo.md"))
    assert client.text() == "done"
    client.start("write_file", path=str(home.notes / "todo.md"), content="milk")
    home.until_waiting()
    short = json.loads(home.run("openai-responses-mcp approvals list --json"))[0]["approval_id"][4:10]
    assert "1 call waits for a decision." in home.run(next_one("openai-responses-mcp approvals list"))
    for verb in ("show", "approve"):
        home.run(next_one(f"openai-responses-mcp approvals {verb}").replace("9f27db", short))
    assert client.text() == "done"
    assert "ran (standing)" in home.run(next_one("openai-responses-mcp log"))
    assert "files/read_text_file" in home.run(next_one("openai-responses-mcp log show"))
    assert "The log is intact" in home.run(next_one("openai-responses-mcp log verify"))
    assert "Guards that run now" in home.run(next_one("openai-responses-mcp status"))
    client.close()
    assert left == []
    # Commands in the text: a name alone is looked up, everything else runs
    for command in in_text(PAGE):
        line = f"openai-responses-mcp {command}".replace("2026-11-01", "2999-01-01")
        if len(command.split()) == 2:
            assert "usage:" in home.run(f"{line} --help").lower()
        elif command.startswith("approvals serve"):
            home.serve(line)
        else:
            home.run(f"{line} --yes" if command.startswith("guard setup") else line)
    assert home.entry()["command"] == "npx"
    assert (tmp_path / "old.jsonl").exists()
