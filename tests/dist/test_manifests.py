"""The manifests on disk are those that would be written, and say what pyproject.toml and the settings say."""

import json
import re
import subprocess
import sys
import tomllib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from openai_responses_mcp import __version__
from openai_responses_mcp.commands.doctor.clients import CLIENTS
from openai_responses_mcp.commands.doctor.entries import examine_file
from openai_responses_mcp.config.loading import VARIABLES
from openai_responses_mcp.config.settings import OpenAISettings, Settings
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


def test_there_is_no_other_file() -> None:
    tracked = {path.relative_to(ROOT).as_posix() for path in (ROOT / "config" / "dist").rglob("*") if path.is_file()}
    assert tracked - {path for path in tracked if "__pycache__" in path} == {
        path for path in FILES if path.startswith("config/dist/")
    } | {"config/dist/README.md"}


# Versions


def _versions(node: Any) -> Iterator[str]:
    if isinstance(node, dict):
        yield from (value for name, value in node.items() if name == "version")
    for inner in node.values() if isinstance(node, dict) else node if isinstance(node, list) else ():
        yield from _versions(inner)


def test_every_version_and_requirement_is_that_of_the_package() -> None:
    for path, text in FILES.items():
        required = re.findall(rf"{PROJECT['name']}==([^\"]+)", text)
        assert {*_versions(DOCUMENTS.get(path)), *required} <= {__version__}, path


def test_where_a_version_belongs_there_is_one() -> None:
    without = {path for path, document in DOCUMENTS.items() if not list(_versions(document))}
    entries = {path for path in ENTRIES.values() if path.endswith("mcp.json")}
    assert without == entries | {".agents/plugins/marketplace.json"}
    assert all(f"=={__version__}" in FILES[path] for path in entries)
    assert f'image.version="{__version__}"' in FILES["config/dist/Dockerfile"]


# Texts


@pytest.mark.parametrize(
    ("field", "value"), [("name", PROJECT["name"]), ("description", PROJECT["description"]), ("license", "MIT")]
)
def test_names_and_texts_are_those_of_the_package(field: str, value: str) -> None:
    plugins = [document for path, document in DOCUMENTS.items() if path.endswith("plugin.json")]
    assert len(plugins) == 3
    assert [document[field] for document in (BUNDLE, *plugins)] == [value] * 4


def test_the_registry_gets_the_name_of_this_repository() -> None:
    owner = urlsplit(PROJECT["urls"]["Repository"]).path.split("/")[1]
    assert SERVER["name"] == f"io.github.{owner}/{PROJECT['name']}"
    assert SERVER["repository"]["url"] == PROJECT["urls"]["Repository"]


# Commands


@pytest.mark.parametrize("client", ENTRIES)
def test_every_client_gets_the_same_command(client: str) -> None:
    entry = DOCUMENTS[ENTRIES[client]]["mcpServers"]["openai-responses"]
    assert (entry["command"], entry["args"]) == ("uvx", [f"openai-responses-mcp=={__version__}", "--stdio"])


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


def test_the_registry_gets_the_same_argument() -> None:
    (package,) = SERVER["packages"]
    assert (package["registryType"], package["identifier"], package["runtimeHint"]) == ("pypi", PROJECT["name"], "uvx")
    assert [argument["value"] for argument in package["packageArguments"]] == ["--stdio"]


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


# Variables


def test_the_registry_lists_every_variable_and_no_other() -> None:
    (package,) = SERVER["packages"]
    listed = [variable["name"] for variable in package["environmentVariables"]]
    assert listed == [OpenAISettings().api_key_env, *VARIABLES, "DEBUG"]


def test_only_the_key_is_required_and_a_secret() -> None:
    (package,) = SERVER["packages"]
    key, *others = package["environmentVariables"]
    assert (key["isRequired"], key["isSecret"]) == (True, True)
    assert not any({"isRequired", "isSecret"} & variable.keys() for variable in others)


def test_what_a_variable_may_be_and_is_without_it_comes_from_the_settings() -> None:
    (package,) = SERVER["packages"]
    listed = {variable["name"]: variable for variable in package["environmentVariables"]}
    defaults = Settings()
    assert listed["OPENAI_API_TIMEOUT"]["placeholder"] == str(defaults.request.timeout_ms)
    assert listed["OPENAI_API_TIMEOUT"]["format"] == "number"
    assert listed["ANSWER_VERBOSITY"]["choices"] == ["low", "medium", "high"]
    assert "placeholder" not in listed["MODEL_QUICK"]
    # A default would become the value of the variable and override the user's file.
    assert not any("default" in variable or "value" in variable for variable in listed.values())


def test_the_key_has_the_same_name_everywhere_and_nowhere_a_value() -> None:
    key = OpenAISettings().api_key_env
    entries = [DOCUMENTS[path]["mcpServers"]["openai-responses"] for path in ENTRIES.values()]
    entries.append(BUNDLE["server"]["mcp_config"])
    assert [list(entry.get("env", {}) or entry["env_vars"]) for entry in entries] == [[key]] * 5
    assert all(value.startswith("$") for entry in entries for value in entry.get("env", {}).values())
    (setting,) = DOCUMENTS["config/dist/gemini/gemini-extension.json"]["settings"]
    assert (setting["envVar"], setting["sensitive"]) == (key, True)
    assert BUNDLE["user_config"]["openai_api_key"]["sensitive"] is True


def test_the_bundle_names_the_tools_that_are_on() -> None:
    assert [tool["name"] for tool in BUNDLE["tools"]] == list(Settings().server.tools)


# The registry's schema


def test_the_registry_would_take_the_entry() -> None:
    REGISTRY.validate(SERVER)


# The container image


def test_the_image_runs_without_root_and_installs_by_hash() -> None:
    recipe = FILES["config/dist/Dockerfile"]
    last = recipe.rsplit("\nFROM ", 1)[1]
    assert re.search(r"^USER [1-9]", last, re.MULTILINE)
    assert re.findall(r'^(?:ENTRYPOINT|CMD) \["(.*)"\]', last, re.MULTILINE) == [PROJECT["name"], "--stdio"]
    installs = re.findall(r"pip install (.*?)(?: \\)?$", recipe, re.MULTILINE)
    assert all("--require-hashes" in words or "--no-deps" in words for words in installs)
    assert all("-slim" in base for base in re.findall(r"^FROM (\S+)", recipe, re.MULTILINE))


def test_what_the_image_copies_is_not_ignored() -> None:
    copied = re.findall(r"^COPY (?!--from)(.*) \S+$", FILES["config/dist/Dockerfile"], re.MULTILINE)
    kept = {line[1:] for line in FILES["config/dist/Dockerfile.dockerignore"].splitlines() if line.startswith("!")}
    sources = {word.split("/")[0] for words in copied for word in words.split()}
    assert sources == kept
    assert all((ROOT / source).exists() for source in sources)
