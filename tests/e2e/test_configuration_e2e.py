"""A configuration that cannot be used stops the start with exit 2 before any reply; one that can is shown on request."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from openai_responses_mcp import __version__
from openai_responses_mcp.domain.policy import SYSTEM_POLICY
from tests.e2e.client import COMMAND, KEY, WAIT_SECONDS, answer_in, environment, line, request
from tests.e2e.conftest import Start
from tests.stand_in.server import StandInThread

PING = line(request(1, "ping"))


def run(home: Path, *options: str, **variables: str) -> "subprocess.CompletedProcess[str]":
    """The command with a message waiting on its stdin, run to its end."""
    return subprocess.run(
        [*COMMAND, *options],
        input=PING.decode(),
        capture_output=True,
        env=environment(home, **variables),
        encoding="utf-8",
        timeout=WAIT_SECONDS,
    )


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
    [told] = done.stderr.splitlines()
    assert (done.returncode, done.stdout) == (2, "")
    assert told.startswith(f"openai-responses-mcp: {yaml}:{place or ''}")
    assert problem in told
    assert KEY not in told


def test_every_problem_is_told_on_a_line_of_its_own(tmp_path: Path, yaml: Path) -> None:
    yaml.write_text("request:\n  max_retries: -1\n  store: 1\nspeed: high\n")
    done = run(tmp_path, "--stdio", "--config", str(yaml), MAX_CITATIONS="many")
    assert (done.returncode, done.stdout) == (2, "")
    assert [told.removeprefix("openai-responses-mcp: ").split(" must")[0] for told in done.stderr.splitlines()] == [
        f"{yaml}:2: request.max_retries",
        f"{yaml}:3: request.store",
        f"{yaml}:4: unknown key speed",
        "MAX_CITATIONS",
    ]


def test_a_directory_is_no_configuration_file(tmp_path: Path) -> None:
    done = run(tmp_path, "--stdio", "--config", str(tmp_path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f"openai-responses-mcp: {tmp_path}: is a directory, not a file\n"


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("OPENAI_API_TIMEOUT", "soon", "a whole number of at least 1"),
        ("OPENAI_API_TIMEOUT", "0", "a whole number of at least 1"),
    ],
)
def test_a_variable_that_cannot_be_used_stops_the_start(tmp_path: Path, name: str, value: str, wanted: str) -> None:
    done = run(tmp_path, "--stdio", **{name: value})
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == f'openai-responses-mcp: {name} must be {wanted} (found "{value}")\n'


def test_a_missing_file_is_skipped_with_a_warning(tmp_path: Path, yaml: Path) -> None:
    done = run(tmp_path, "--stdio", "--config", str(yaml))
    assert done.returncode == 0
    assert json.loads(done.stdout) == {"jsonrpc": "2.0", "id": 1, "result": {}}
    assert done.stderr == (
        f"openai-responses-mcp: WARNING: --config {yaml}: there is no such file, so the settings in it are not used\n"
    )


def test_the_configuration_is_shown_and_nothing_is_served(tmp_path: Path, yaml: Path) -> None:
    yaml.write_text("server: {debug: false}\nopenai: {api_key_env: MY_KEY}\n")
    variables = {"MODEL_QUICK": "gpt-5-mini", "MAX_CITATIONS": "", "MY_KEY": "0123456789abcdef"}
    done = run(tmp_path, "--show-config", "--config", str(yaml), "--model", "o3", **variables)
    shown = json.loads(done.stderr)
    assert (done.returncode, done.stdout) == (0, "")
    assert shown["version"] == __version__
    assert shown["sources"] == {
        "defaults": True,
        "yaml": str(yaml),
        "env": ["MODEL_QUICK"],
        "cli": ["--config", "--model"],
    }
    assert shown["effective"]["openai"] == {"api_key_env": "MY_KEY", "base_url": "https://api.openai.com/v1"}
    assert shown["effective"]["model_profiles"]["answer"]["model"] == "o3"
    assert shown["effective"]["model_profiles"]["answer_quick"]["model"] == "gpt-5-mini"
    assert "0123456789abcdef" not in done.stderr


def test_the_configuration_is_shown_and_then_served(tmp_path: Path) -> None:
    done = run(tmp_path, "--show-config", "--stdio")
    assert done.returncode == 0
    assert json.loads(done.stderr)["sources"] == {"defaults": True, "yaml": None, "env": [], "cli": []}
    assert json.loads(done.stdout)["id"] == 1


def test_a_summary_is_told_at_the_start_when_asked_for(tmp_path: Path, yaml: Path) -> None:
    yaml.write_text("server: {show_config_on_start: true, tools: [answer, iris]}")
    done = run(tmp_path, "--stdio", "--config", str(yaml))
    [told] = done.stderr.splitlines()
    assert done.returncode == 0
    assert told == (
        f"openai-responses-mcp: version={__version__} config={yaml} model=gpt-5.2 tools=answer,iris"
        " timeout_ms=300000 max_retries=3 debug=off"
    )


def test_flags_win_over_variables_and_variables_over_the_file(start: Start, rehearsal: StandInThread) -> None:
    config = "model_profiles: {answer: {model: gpt-file, verbosity: high, reasoning_effort: low}}"
    server = start("--model", "gpt-5-flag", config=config, MODEL_ANSWER="gpt-variable", ANSWER_EFFORT="high")
    assert answer_in(server.ask("Why?"))["model"] == "gpt-5-flag"
    [asked] = rehearsal.server.requests
    assert asked.json["reasoning"] == {"effort": "high"}
    assert asked.json["text"] == {"verbosity": "high"}


def test_a_policy_of_ones_own_joins_the_built_in_one(start: Start, rehearsal: StandInThread, tmp_path: Path) -> None:
    (tmp_path / "policy.md").write_text("Answer in verse.\n", encoding="utf-8")
    server = start(config='policy: {system: {source: file, path: "~/policy.md", merge: append}}')
    assert "result" in server.ask("Why?")
    [asked] = rehearsal.server.requests
    assert asked.json["instructions"].strip() == f"{SYSTEM_POLICY.rstrip()}\n\nAnswer in verse."


def test_retired_keys_are_warned_of_once_each_and_ignored(tmp_path: Path, yaml: Path) -> None:
    yaml.write_text("responses: {}\npolicy: {requery_attempts: 2}\nserver: {transport: stdio}\n")
    done = run(tmp_path, "--stdio", "--config", str(yaml), REQUERY_ATTEMPTS="2")
    assert done.returncode == 0
    assert json.loads(done.stdout)["id"] == 1
    assert len(done.stderr.splitlines()) == 4
    assert all(told.startswith("openai-responses-mcp: WARNING: ") for told in done.stderr.splitlines())


def test_a_home_without_a_configuration_is_enough(tmp_path: Path) -> None:
    assert os.listdir(tmp_path) == []
    done = run(tmp_path, "--stdio", OPENAI_API_KEY="")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["result"] == {}
