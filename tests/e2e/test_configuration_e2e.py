"""A configuration that cannot be used stops the start with exit 2 before any reply; one that can is shown on request."""

import json
import subprocess
from pathlib import Path

import pytest

from openai_responses_mcp import __version__
from tests.e2e import client
from tests.e2e.client import KEY, environment, line, request

PING = line(request(1, "ping"))


def run(home: Path, *options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """The command with a message waiting on its stdin, run to its end."""
    return client.run(environment(home, **variables), *options, input=PING.decode(), encoding="utf-8")


@pytest.fixture
def yaml(tmp_path: Path) -> Path:
    return tmp_path / "config.yaml"


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        ("server: [", 1, "YAML"),
        ("server:\n  debgu: true", 2, "unknown key server.debgu (did you mean server.debug?)"),
    ],
)
def test_a_file_that_cannot_be_used_stops_the_start(
    tmp_path: Path, yaml: Path, text: str, place: int, problem: str
) -> None:
    yaml.write_text(text)
    done = run(tmp_path, "--stdio", "--config", str(yaml))
    [error_line] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert error_line.startswith(f"openai-responses-mcp: {yaml}:{place or ''}")
    assert problem in error_line
    assert KEY not in error_line


def test_the_configuration_is_shown_and_then_served(tmp_path: Path) -> None:
    done = run(tmp_path, "--show-config", "--stdio")
    assert done.returncode == 0
    assert json.loads(done.stderr)["sources"] == {"defaults": True, "yaml": None, "env": [], "cli": []}
    assert json.loads(done.stdout)["id"] == 1


def test_a_summary_is_shown_at_the_start_if_configured(tmp_path: Path, yaml: Path) -> None:
    yaml.write_text("server: {show_config_on_start: true, tools: [answer, iris]}")
    done = run(tmp_path, "--stdio", "--config", str(yaml))
    [error_line] = done.stderr.splitlines()
    assert done.returncode == 0
    assert error_line == (
        f"openai-responses-mcp: version={__version__} config={yaml} model=gpt-5.2 tools=answer,iris"
        " timeout_ms=300000 max_retries=3 debug=off"
    )
