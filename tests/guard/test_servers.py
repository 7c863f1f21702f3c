"""The name of a server without `--name`, and the fingerprint of its command."""

import shlex
from pathlib import Path

import pytest

from openai_responses_mcp.gate.calls import ToolDescription
from openai_responses_mcp.guard.composition import rules_before_start
from openai_responses_mcp.guard.servers import (
    GuardOptions,
    former_names,
    guarded_server,
    name_of,
)


@pytest.mark.parametrize(
    ("command", "name"),
    [
        ("npx -y @modelcontextprotocol/server-filesystem /notes", "server-filesystem"),
        (r"C:\nodejs\npx.CMD -y mcp-server", "mcp-server"),
        ("uvx --from git+https://host/x.git --python 3.12 mcp-server-time[all]==1.2", "mcp-server-time"),
        ("uv run python server.py", "server"),
        ("/usr/bin/python3.12 -u -X dev /srv/files.py --root /", "files"),
        ("python -m mcp_server_fetch", "mcp_server_fetch"),
        ("python3 -c pass", "python3"),
        ("bash -e /srv/notes.sh", "notes"),
        ("bash -lc 'npx -y mcp-server'", "bash"),
        ("deno run -A jsr:@scope/mcp", "mcp"),
        (
            "docker run -i --rm --mount type=bind,src=/a,dst=/b registry.example/github/github-mcp-server:1.2 stdio",
            "github-mcp-server",
        ),
        ("podman container run --rm mcp/fetch", "fetch"),
        ("env TOKEN=x uvx mcp-server-git", "mcp-server-git"),
        ("/opt/x/my.server", "my.server"),
        ("tool.exe", "tool"),
        ("npx -y", "npx"),
    ],
)
def test_a_server_is_called_by_what_is_started(command: str, name: str) -> None:
    assert name_of(shlex.split(command.replace("\\", "\\\\"))) == name


def shown(text: str) -> str:
    return text.replace("secret", "‹secret›")


def test_a_relative_path_means_the_file_of_this_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fingerprints = set()
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.py").touch()
        monkeypatch.chdir(tmp_path / folder)
        here = guarded_server("a", ["python3", "a.py"], shown)
        assert here == guarded_server("a", ["python3", str(tmp_path / folder / "a.py")], shown)
        assert here == guarded_server("a", ["python3", "./a.py"], shown)
        fingerprints.add(here.fingerprint)
    assert len(fingerprints) == 2


def test_a_command_without_local_files_is_the_same_server_in_any_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = ["npx", "-y", "@scope/server"]
    before = guarded_server("x", command, shown)
    monkeypatch.chdir(tmp_path)
    assert guarded_server("x", command, shown) == before


def test_arguments_are_not_run_together_and_secrets_are_not_kept() -> None:
    assert (
        guarded_server("x", ["a", "b c"], shown).fingerprint != guarded_server("x", ["a", "b", "c"], shown).fingerprint
    )
    assert guarded_server("x", ["a", "--key=secret"], shown).command == "a --key=‹secret›"


def test_a_rule_that_names_the_launcher_still_applies_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    policy = tmp_path / "policy.yaml"
    policy.write_text("version: 1\nrules:\n  - {tools: ['npx/delete_*'], decide: deny}\n")
    options = GuardOptions(("npx", "-y", "@scope/server-files"), "server-files", str(policy))
    rules = rules_before_start(options, {"XDG_STATE_HOME": str(tmp_path)})
    assert rules is not None
    ruling = rules.ruling(ToolDescription("server-files/delete_all", "mcp"), {})
    assert ruling is not None
    assert ruling.decide == "deny"
    assert "write the new name" in caplog.text


def test_only_a_server_without_a_name_of_its_own_had_that_of_its_launcher() -> None:
    command = ("/usr/bin/python3", "a.py")
    assert former_names(GuardOptions(command, "a")) == {"a": "python3"}
    assert former_names(GuardOptions(command, "files")) == {}
    assert former_names(GuardOptions(("server-files",), "server-files")) == {}
    assert former_names(GuardOptions(("https://a.example/mcp",), "a.example", url="https://a.example/mcp")) == {}
