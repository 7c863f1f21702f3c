import json
import shlex
import tomllib
from pathlib import Path

import pytest

from openai_responses_mcp.commands.doctor.clients import CLIENTS, Client, maybe_how_to_add, own_command
from openai_responses_mcp.commands.doctor.entries import examine_file
from openai_responses_mcp.domain.extras import REPOSITORY

KEY = "OPENAI_API_KEY"
CLAUDE_CODE, CODEX, CLAUDE_DESKTOP, CURSOR, VS_CODE, GEMINI = CLIENTS
OWN = ("/opt/my venv/bin/openai-responses-mcp",)


def by_name(client: Client) -> str:
    return client.name


def nowhere(name: str) -> str | None:
    return None


def everywhere(name: str) -> str | None:
    return name


# What starts this program


def test_a_link_on_the_path_is_shown_in_place_of_the_file_that_it_leads_to(tmp_path: Path) -> None:
    script, link, other = tmp_path / "openai-responses-mcp", tmp_path / "link", tmp_path / "other"
    script.touch()
    other.touch()
    link.symlink_to(script)
    python = str(tmp_path / "python")
    assert own_command(lambda name: str(link), python, "linux") == (str(link),)
    assert own_command(lambda name: str(other), python, "linux") == (str(script),)


def test_an_installed_program_is_started_by_its_whole_path(tmp_path: Path) -> None:
    (tmp_path / "openai-responses-mcp").touch()
    assert own_command(nowhere, str(tmp_path / "python"), "linux") == (str(tmp_path / "openai-responses-mcp"),)
    (tmp_path / "openai-responses-mcp.exe").touch()
    assert own_command(nowhere, str(tmp_path / "python.exe"), "win32") == (str(tmp_path / "openai-responses-mcp.exe"),)


def test_without_a_script_python_starts_it(tmp_path: Path) -> None:
    python = str(tmp_path / "python")
    assert own_command(nowhere, python) == (python, "-m", "openai_responses_mcp")


def test_a_program_run_by_uvx_is_added_as_a_uvx_command() -> None:
    command = own_command(nowhere, "/somewhere/.cache/uv/archive-v0/x1/bin/python")
    assert command == ("uvx", "--from", REPOSITORY, "openai-responses-mcp")
    gemini = maybe_how_to_add(GEMINI, "/nowhere/file", KEY, command, everywhere, "/home/u")
    assert gemini is not None
    assert gemini.paste.endswith(f" openai-responses uvx -- --from {REPOSITORY} openai-responses-mcp --stdio")


# How to set a client up


@pytest.mark.parametrize("client", [CLAUDE_CODE, CODEX, VS_CODE, GEMINI], ids=by_name)
def test_a_client_with_a_command_is_set_up_with_it(client: Client) -> None:
    how = maybe_how_to_add(client, "/nowhere/file", "MY_KEY", OWN, everywhere, "/home/u")
    assert how is not None
    assert how.words == "run:"
    program, *words = shlex.split(how.paste)
    assert program == client.adding.partition(" ")[0]
    assert "MY_KEY" in how.paste
    assert KEY not in how.paste
    assert "uvx" not in how.paste
    if client is VS_CODE:
        assert json.loads(words[-1])["command"] == OWN[0]
    else:
        assert OWN[0] in words
        assert words[-1] == "--stdio"


@pytest.mark.parametrize("client", CLIENTS, ids=by_name)
def test_a_client_without_its_command_is_set_up_in_its_file(client: Client, tmp_path: Path) -> None:
    path = tmp_path / ".client" / "file"
    path.parent.mkdir()
    how = maybe_how_to_add(client, str(path), KEY, OWN, nowhere, str(tmp_path))
    assert how is not None
    assert how.words == f"put {'at the top of' if client is CODEX else 'into'} {path}:"
    snippet = how.paste
    parsed = tomllib.loads(f"{snippet}\n[other.table]") if client is CODEX else json.loads(snippet)
    assert parsed[client.section]["openai-responses"]["command"] == OWN[0]
    # All that is left to do is to put the key in.
    output = examine_file(client, "FILE", snippet, KEY, everywhere)
    assert [one.level for one in output] == (["ok"] if client is CODEX else ["FAIL"])
    assert client is CODEX or "env has no key yet" in output[0].text


def test_a_client_that_is_not_here_is_not_recommended(tmp_path: Path) -> None:
    assert maybe_how_to_add(CURSOR, str(tmp_path / "no" / "file"), KEY, OWN, nowhere, "/home/u") is None
    # A file in the home folder itself is a sign, the home folder is none.
    assert maybe_how_to_add(CURSOR, str(tmp_path / "file"), KEY, OWN, nowhere, str(tmp_path)) is None
    (tmp_path / "file").touch()
    assert maybe_how_to_add(CURSOR, str(tmp_path / "file"), KEY, OWN, nowhere, str(tmp_path)) is not None
