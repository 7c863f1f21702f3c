"""Claude Code, Codex and Gemini CLI over HTTP with a token: each takes the server as docs/http.md says, and calls a tool.

`make clients` runs this; it needs the packages in node_modules. The model behind the clients is a stand-in.
"""

import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.clients.model_stand_in import model
from tests.e2e.client import environment
from tests.e2e.http_process import HttpProcess

PROGRAMS = Path(__file__).parent / "node_modules" / ".bin"
TOKEN = "token-of-ann-1234567890"
PROMPT = "What does HTTP 404 mean?"
SECONDS = 120.0


class Desk:
    """A person's folder, with a server over HTTP and a model behind it."""

    def __init__(self, folder: Path, server: HttpProcess, model: str) -> None:
        self.folder = folder
        self.server = server
        self.model = model

    def run(self, *words: str, **variables: str) -> str:
        path = f"{PROGRAMS}{os.pathsep}{os.environ['PATH']}"
        environ = {"PATH": path, "HOME": str(self.folder), "MY_TOKEN": TOKEN, **variables}
        found = subprocess.run(
            words,
            env=environ,
            cwd=self.folder,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=SECONDS,
        )
        assert found.returncode == 0, (words, found.stdout, found.stderr)
        return found.stdout

    def assert_called(self) -> None:
        """By name: the token stood for the person."""
        assert any("tools/call name=answer" in line for line in self.server.complaints)
        assert any("method=tools/call" in line and "caller=ann" in line for line in self.server.complaints)


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    (tmp_path / "config.yaml").write_text("http: {tokens_env: TEAM_TOKENS}")
    environ = environment(tmp_path, TEAM_TOKENS=f"ann:{TOKEN}")
    given = ("--rehearse", "--debug", "--config", str(tmp_path / "config.yaml"))
    with closing(HttpProcess(environ, *given)) as server, model() as address:
        yield Desk(tmp_path, server, address)


def test_claude_code_connects_and_calls(desk: Desk) -> None:
    header = f"Authorization: Bearer {TOKEN}"
    desk.run("claude", "mcp", "add", "--transport", "http", "answers", desk.server.url, "--header", header)
    assert "Connected" in desk.run("claude", "mcp", "list")
    said = desk.run(
        *("claude", "-p", PROMPT, "--allowedTools", "mcp__answers__answer", "--output-format", "json"),
        ANTHROPIC_BASE_URL=desk.model,
        ANTHROPIC_API_KEY="none",
        CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC="1",
    )
    assert json.loads(said)["result"] == "The tool has answered."
    desk.assert_called()


def test_codex_connects_and_calls(desk: Desk) -> None:
    desk.run("codex", "mcp", "add", "answers", "--url", desk.server.url, "--bearer-token-env-var=MY_TOKEN")
    assert "Bearer token" in desk.run("codex", "mcp", "list")
    settings = f'name="stand-in",base_url="{desk.model}/v1",wire_api="responses",env_key="MODEL_KEY"'
    provider = ("-c", "model_provider=stand_in", "-c", f"model_providers.stand_in={{{settings}}}")
    said = desk.run("codex", "exec", "--skip-git-repo-check", "-m", "stand-in", *provider, PROMPT, MODEL_KEY="none")
    assert said.strip() == "The tool has answered."
    desk.assert_called()


def test_gemini_cli_connects_and_calls(desk: Desk) -> None:
    desk.folder.joinpath(".gemini").mkdir()
    chosen = {"security": {"auth": {"selectedType": "gemini-api-key"}}}
    desk.folder.joinpath(".gemini/settings.json").write_text(json.dumps(chosen))
    trusted = {"GEMINI_CLI_TRUST_WORKSPACE": "true"}
    header = f"Authorization: Bearer {TOKEN}"
    words = ("--scope", "user", "--transport", "http", "--header", header, "answers", desk.server.url)
    desk.run("gemini", "mcp", "add", *words, **trusted)
    said = desk.run(
        *("gemini", "-m", "gemini-2.5-flash", "--approval-mode", "yolo", "-p", PROMPT),
        GOOGLE_GEMINI_BASE_URL=desk.model,
        GEMINI_API_KEY="none",
        **trusted,
    )
    assert said.strip() == "The tool has answered."
    desk.assert_called()
