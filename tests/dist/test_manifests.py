"""The manifests on disk are those that would be written, and say what pyproject.toml and the settings say."""

import json
import re
import subprocess
import sys
import tomllib
from base64 import b64decode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from openai_responses_mcp import __version__
from openai_responses_mcp.commands.doctor.clients import CLIENTS
from openai_responses_mcp.commands.doctor.entries import examine_file
from openai_responses_mcp.config.settings import OpenAISettings
from tests.fakes import SLOW_SECONDS
from tests.tools.dist.manifests import files, stale

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
FILES = files()
DOCUMENTS: dict[str, dict[str, Any]] = {
    path: json.loads(text) for path, text in FILES.items() if path.endswith(".json")
}
REGISTRY = Draft202012Validator(json.loads((Path(__file__).parent / "registry_schema.json").read_text("utf-8")))
SERVER = DOCUMENTS["config/dist/server.json"]
BUNDLE = DOCUMENTS["config/dist/mcpb/manifest.json"]
ENTRIES = {
    "Claude Code": "config/dist/claude-code/.mcp.json",
    "Codex": "config/dist/codex/.mcp.json",
    "Cursor": "config/dist/cursor/mcp.json",
    "Gemini CLI": "config/dist/gemini/gemini-extension.json",
}


def test_the_files_are_as_make_manifests_writes_them() -> None:
    assert stale() == []


@pytest.mark.parametrize("client", ENTRIES)
def test_the_doctor_finds_nothing_wrong_with_an_entry(client: str) -> None:
    document = DOCUMENTS[ENTRIES[client]]
    (known,) = (one for one in CLIENTS if one.name == client)
    text = json.dumps({"mcpServers": document["mcpServers"]})
    if client == "Codex":
        (entry,) = document["mcpServers"].values()
        text = "[mcp_servers.openai-responses]\n" + "\n".join(f"{key} = {json.dumps(it)}" for key, it in entry.items())
    findings = examine_file(known, "FILE", text, OpenAISettings().api_key_env, lambda name: name)
    assert [finding.level for finding in findings] == ["ok"]


def test_the_file_of_the_bundle_starts_the_server() -> None:
    command = [sys.executable, str(ROOT / "config" / "dist" / "mcpb" / "server.py"), "--version"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=SLOW_SECONDS, check=True)
    assert __version__ in ended.stdout


@pytest.mark.parametrize("line", [0, 1])
def test_an_install_link_holds_what_the_documentation_says_of_cursor(line: int) -> None:
    link = urlsplit(FILES["config/dist/cursor/install-links.txt"].splitlines()[line])
    query = parse_qs(link.query, strict_parsing=True)
    assert query["name"] == ["openai-responses"]
    entry = json.loads(b64decode(query["config"][0], validate=True))
    page = (ROOT / "docs" / "reference" / "clients.md").read_text("utf-8")
    shown = json.loads(re.findall(r"## Cursor\n.*?```json\n(.*?)```", page, re.DOTALL)[0])
    assert entry["env"] == shown["mcpServers"]["openai-responses"]["env"]
    assert (entry["command"], entry["args"]) == ("uvx", ["openai-responses-mcp", "--stdio"])
    assert (link.scheme, link.netloc) in (("cursor", "anysphere.cursor-deeplink"), ("https", "cursor.com"))


def test_the_registry_would_take_the_entry_which_asks_for_the_key_and_sets_nothing_else() -> None:
    REGISTRY.validate(SERVER)
    (package,) = SERVER["packages"]
    key, *others = package["environmentVariables"]
    assert (key["name"], key["isRequired"], key["isSecret"]) == (OpenAISettings().api_key_env, True, True)
    # A default would become the value of the variable and override the user's file.
    assert not any({"isRequired", "isSecret", "default", "value"} & variable.keys() for variable in others)


def test_no_file_holds_a_value_of_the_key() -> None:
    entries = [DOCUMENTS[path]["mcpServers"]["openai-responses"] for path in ENTRIES.values()]
    entries.append(BUNDLE["server"]["mcp_config"])
    assert all(value.startswith("$") for entry in entries for value in entry.get("env", {}).values())
    (setting,) = DOCUMENTS["config/dist/gemini/gemini-extension.json"]["settings"]
    assert (setting["sensitive"], BUNDLE["user_config"]["openai_api_key"]["sensitive"]) == (True, True)


def test_the_image_runs_without_root_and_installs_by_hash() -> None:
    recipe = FILES["config/dist/Dockerfile"]
    last = recipe.rsplit("\nFROM ", 1)[1]
    assert re.search(r"^USER [1-9]", last, re.MULTILINE)
    assert re.findall(r'^(?:ENTRYPOINT|CMD) \["(.*)"\]', last, re.MULTILINE) == [PROJECT["name"], "--stdio"]
    installs = re.findall(r"pip install (.*?)(?: \\)?$", recipe, re.MULTILINE)
    assert all("--require-hashes" in words or "--no-deps" in words for words in installs)
    assert all("-slim" in base for base in re.findall(r"^FROM (\S+)", recipe, re.MULTILINE))
