import json
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.commands.doctor.clients import CLIENTS, Client, command_line, entry_for, files_of
from openai_responses_mcp.commands.doctor.entries import SetupFinding, examine_file

ROOT = Path(__file__).parents[3]
KEY = "OPENAI_API_KEY"
CLAUDE_CODE, CODEX, CLAUDE_DESKTOP, CURSOR, VS_CODE, GEMINI = CLIENTS
FILLED_IN = {
    "Claude Code": "${OPENAI_API_KEY}",
    "Cursor": "${env:OPENAI_API_KEY}",
    "VS Code": "${input:openai-api-key}",
    "Gemini CLI": "$OPENAI_API_KEY",
}


def by_name(client: Client) -> str:
    return client.name


def find_uvx(name: str) -> str | None:
    return "/bin/uvx" if name == "uvx" else None


def find_all(name: str) -> str | None:
    return name


def entry(**changes: Any) -> dict[str, Any]:
    """What stands in the documentation, but for the changes; None takes a key away."""
    usual = {"command": "uvx", "args": ["openai-responses-mcp", "--stdio"], "env": {KEY: "${OPENAI_API_KEY}"}}
    return {name: value for name, value in (usual | changes).items() if value is not None}


def examined(
    client: Client, *entries: dict[str, Any], find: Any = find_uvx, key_variable: str = KEY, is_shared: bool = False
) -> list[tuple[str, str]]:
    """Level and text of each finding, without its place."""
    named = {f"e{number}": one for number, one in enumerate(entries)}
    # JSON holds all that is needed here, and its arrays, strings and inline tables are TOML once `:` is `=`.
    text = json.dumps({client.section: named})
    if client is CODEX:
        text = "\n".join(_toml(name, one) for name, one in named.items())
    findings = shown_of(examine_file(client, "FILE", text, key_variable, find, is_shared=is_shared))
    return [(level, text.partition(" in FILE")[2].removeprefix(": ")) for level, text in findings]


def shown_of(findings: list[SetupFinding]) -> list[tuple[str, str]]:
    """What is right is only shown if nothing is wrong."""
    return [(one.level, one.text) for one in findings if one.level != "ok"] or [
        (one.level, one.text) for one in findings
    ]


def _toml(name: str, one: dict[str, Any]) -> str:
    lines = [f"{key} = {_toml_value(value)}" for key, value in one.items()]
    return "\n".join([f"[mcp_servers.{name}]", *lines])


def _toml_value(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key} = {_toml_value(inner)}" for key, inner in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(_toml_value, value)) + "]"
    return json.dumps(value)


# Where files are


def test_files_are_looked_for_at_home_and_in_the_working_folder() -> None:
    files = {client.name: files_of(client, {"HOME": "/users/u"}, "/project", "linux") for client in CLIENTS}
    assert files == {
        "Claude Code": ("/users/u/.claude.json", "/project/.mcp.json"),
        "Codex": ("/users/u/.codex/config.toml", "/project/.codex/config.toml"),
        "Claude Desktop": ("/users/u/.config/Claude/claude_desktop_config.json",),
        "Cursor": ("/users/u/.cursor/mcp.json", "/project/.cursor/mcp.json"),
        "VS Code": ("/project/.vscode/mcp.json", "/users/u/.config/Code/User/mcp.json"),
        "Gemini CLI": ("/users/u/.gemini/settings.json", "/project/.gemini/settings.json"),
    }


@pytest.mark.parametrize(
    ("platform", "environ", "place"),
    [
        ("darwin", {"HOME": "/Users/u"}, "/Users/u/Library/Application Support/Claude"),
        ("win32", {"USERPROFILE": "/u", "HOME": "/other", "APPDATA": "/roaming"}, "/roaming/Claude"),
        ("win32", {"HOME": "/u"}, "/u/AppData/Roaming/Claude"),
    ],
)
def test_each_system_has_its_place_for_claude_desktop(platform: str, environ: dict[str, str], place: str) -> None:
    assert files_of(CLAUDE_DESKTOP, environ, "/project", platform) == (f"{place}/claude_desktop_config.json",)


# How to add an entry


def how_to_add(client: Client) -> str:
    make = command_line if client.adding else entry_for
    return make(client, ["openai-responses-mcp"], KEY)


@pytest.mark.parametrize("client", CLIENTS, ids=by_name)
def test_the_lines_to_add_are_those_of_the_readme(client: Client) -> None:
    assert how_to_add(client) in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize("client", [CLAUDE_DESKTOP, CURSOR], ids=by_name)
def test_a_snippet_as_it_stands_lacks_the_key_and_nothing_else(client: Client) -> None:
    ((level, text),) = shown_of(examine_file(client, "FILE", how_to_add(client), KEY, find_all))
    assert (level, text[:58]) == ("FAIL", f"openai-responses in FILE: env has no key yet ({KEY}): "[:58])


# Which entries are ours


def test_an_entry_that_starts_the_server_is_fine_however_it_does() -> None:
    cases: list[tuple[str, list[str]]] = [
        (r"C:\Program Files\Tools\openai-responses-mcp.exe", ["--stdio"]),
        ("uvx", ["--from", "git+https://example.org/openai-responses-mcp.git@main", "some-script", "--stdio"]),
        ("uv", ["tool", "run", "openai-responses-mcp[agents]", "--stdio"]),
        ("${workspaceFolder}/.venv/bin/python", ["-m", "openai_responses_mcp", "--stdio"]),
        ("bash", ["-lc", "exec openai-responses-mcp --stdio"]),
        ("docker", ["run", "-i", "-e", KEY, "example.org/openai-responses-mcp:0.9", "--stdio"]),
    ]
    for command, arguments in cases:
        assert examined(CLAUDE_CODE, entry(command=command, args=arguments), find=find_all) == [("ok", "")]


def test_entries_of_other_servers_are_none_of_our_business() -> None:
    cases: list[dict[str, Any]] = [
        {"command": "npx", "args": ["@example/server-filesystem", "/users/u/openai-responses-mcp"]},
        {"command": "uvx", "args": ["openai-responses-mcp-extras"]},
        {"command": "uvx", "args": "openai-responses-mcp --stdio"},
        {"command": ["uvx"], "args": [1, None]},
    ]
    for other in cases:
        assert examined(CLAUDE_CODE, other) == []


@pytest.mark.parametrize(
    "text", [" \n", "[]", '{"mcpServers": []}', '{"mcpServers": {"a": null}, "projects": {"/p": 1}}']
)
def test_a_file_of_another_shape_has_no_entries(text: str) -> None:
    assert examine_file(CLAUDE_CODE, "FILE", text, KEY, find_uvx) == []


def test_claude_code_has_entries_for_everywhere_and_for_single_projects() -> None:
    projects = {"/project/a": {"mcpServers": {"asks": entry()}}, "/project/b": {"mcpServers": {}}}
    text = json.dumps({"mcpServers": {"asks": entry()}, "projects": projects})
    assert shown_of(examine_file(CLAUDE_CODE, "FILE", text, KEY, find_uvx)) == [
        ("ok", "asks in FILE"),
        ("ok", "asks (/project/a) in FILE"),
    ]


def test_comments_and_trailing_commas_are_read_where_people_write_them() -> None:
    text = """{
      // which servers
      "servers": {
        "asks": { /* over
          two lines */
          "command": "uvx",
          "args": ["openai-responses-mcp", "--stdio", "//no comment", ",]"], // the end
          "env": {"OPENAI_API_KEY": "${input:key}",},
        }, // the last one
      },
    }"""
    assert shown_of(examine_file(VS_CODE, "FILE", text, KEY, find_uvx)) == [("ok", "asks in FILE")]


@pytest.mark.parametrize(
    ("client", "text", "line"),
    [
        (CLAUDE_CODE, '{\n"a": sk-broken\n}', 2),
        (VS_CODE, '{\n/*\n*/ "a": sk-broken\n}', 3),
        (CODEX, 'a = 1\nb = "sk-broken', 2),
        (CLAUDE_CODE, "[" * 100_000, 1),
    ],
    ids=["JSON", "comments", "TOML", "nesting"],
)
def test_a_broken_file_is_named_with_its_line_and_nothing_of_its_content(client: Client, text: str, line: int) -> None:
    ((level, words),) = shown_of(examine_file(client, "FILE", text, KEY, find_uvx))
    assert level == "warn"
    assert words.startswith(f"FILE:{line}: ")
    assert "sk-broken" not in words


# What is wrong with an entry


def test_a_command_that_cannot_be_found_and_a_missing_option_are_named() -> None:
    (missing, without) = examined(CLAUDE_CODE, entry(command="uvx2", args=["openai-responses-mcp"]))
    assert missing[0] == "FAIL"
    assert "'uvx2' cannot be found" in missing[1]
    assert without == ("FAIL", 'add "--stdio" to args, which is a list')


@pytest.mark.parametrize(("command", "first"), [("npx", "-y"), ("cmd", "/c npx -y"), ("npx.cmd", "-y")])
def test_the_npm_package_of_the_same_name_is_warned_of(command: str, first: str) -> None:
    ((level, text),) = examined(
        CLAUDE_CODE, entry(command=command, args=[first, "openai-responses-mcp@latest", "--stdio"]), find=find_all
    )
    assert (level, "npm package" in text) == ("warn", True)


@pytest.mark.parametrize("client", CLIENTS, ids=by_name)
def test_a_key_that_no_one_hands_on_fails_where_the_client_keeps_its_environment(client: Client) -> None:
    problems = examined(client, entry(env=None))
    if client in (CLAUDE_CODE, CURSOR, VS_CODE):
        assert problems == [("ok", "")]
    else:
        assert [level for level, _ in problems] == ["FAIL"]
        assert f"does not hand {KEY} on by itself" in problems[0][1]


@pytest.mark.parametrize("named", [[KEY], ["PATH", {"name": KEY, "source": "local"}]])
def test_codex_hands_on_what_env_vars_names(named: list[Any]) -> None:
    assert examined(CODEX, entry(env=None, env_vars=named)) == [("ok", "")]


def test_an_entry_that_still_rehearses_fails_and_that_is_all_it_lacks() -> None:
    assert examined(CODEX, entry(args=["openai-responses-mcp", "--stdio", "--rehearse"], env=None)) == [
        ("FAIL", "it still rehearses, and no answer is real: take --rehearse out of args")
    ]


def test_an_option_that_we_do_not_know_is_named() -> None:
    ours = ["openai-responses-mcp", "--stdio", "--confg=a.yaml"]
    assert examined(CLAUDE_CODE, entry(args=["--from", "openai-responses-mcp", "--python=3.12", *ours])) == [
        ("FAIL", "there is no option --confg: take it out of args (see openai-responses-mcp --help)")
    ]


# The guard


def started(how: str, *words: str) -> dict[str, Any]:
    """An entry whose guard is started in this way."""
    command, *arguments = how.split()
    return {"command": command, "args": [*arguments, "agents", "guard", *words]}


def guarded(*words: str) -> dict[str, Any]:
    return started("openai-responses-mcp", *words)


FILES = ("npx", "-y", "@modelcontextprotocol/server-filesystem", "~/notes")
OWN_SERVER = ("uvx", "openai-responses-mcp", "--stdio")


def test_a_server_behind_the_guard_is_fine_and_needs_no_key() -> None:
    cases: list[dict[str, Any]] = [
        guarded("--url", "https://mcp.example/mcp", "--header-env", "Authorization=Bearer TOKEN"),
        guarded("--policy=~/guard.yaml", "--wait", "60", "--observe", *FILES),
        started("python -m openai_responses_mcp", "--", *FILES),
    ]
    for entry in cases:
        assert examined(CODEX, entry, find=find_all) == [("ok", "")]


def test_our_own_server_behind_the_guard_is_checked_like_any_other() -> None:
    assert examined(CODEX, guarded("--", *OWN_SERVER) | {"env_vars": [KEY]}, find=find_all) == [("ok", "")]
    assert examined(CODEX, guarded("--", *OWN_SERVER, "--rehearse"), find=find_all) == [
        ("FAIL", "it still rehearses, and no answer is real: take --rehearse out of args")
    ]
    ((level, words),) = examined(CODEX, guarded("--", *OWN_SERVER), find=find_all)
    assert (level, words.startswith(f"Codex does not hand {KEY} on by itself")) == ("FAIL", True)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (
            ("--nam", "x", "--", "uvx", "x"),
            "the guard has no option --nam: see openai-responses-mcp guard --help",
        ),
        (("--name",), 'there is no server behind the guard: add "--" and the command of the server to args'),
        (("--", "gone", "x"), "the command behind the guard, 'gone', cannot be found: install it"),
    ],
)
def test_a_problem_with_a_guard_is_named(words: tuple[str, ...], problem: str) -> None:
    assert ("FAIL", problem) in examined(CLAUDE_CODE, started("uvx openai-responses-mcp", *words))


# Keys


@pytest.mark.parametrize("client", [CLAUDE_CODE, CURSOR, VS_CODE, GEMINI], ids=by_name)
def test_a_key_that_may_be_elsewhere_was_not_checked(client: Client) -> None:
    value = {GEMINI.name: "$OPENAI_API_KEY", CLAUDE_CODE.name: "${OPENAI_API_KEY}"}.get(
        client.name, "${env:OPENAI_API_KEY}"
    )
    for env in ({KEY: value}, *([None] if client is not GEMINI else [])):
        text = json.dumps({client.section: {"e": entry(env=env)}})
        ((level, words),) = shown_of(examine_file(client, "FILE", text, KEY, find_uvx, is_key_set=False))
        assert level == "warn"
        assert words.endswith(f"{KEY} is not set here, so whether {client.name} has it was not checked")


@pytest.mark.parametrize("value", ["sk-proj-abcdefgh12345678", "gateway-password", 12345678])
def test_a_key_in_the_file_of_a_project_is_warned_of_and_not_shown(value: Any) -> None:
    assert [level for level, _ in examined(CURSOR, entry(env={KEY: value}))] == ["ok"]
    ((level, text),) = examined(CURSOR, entry(env={KEY: value}), is_shared=True)
    assert level == "warn"
    assert "the key itself" in text
    assert str(value) not in text


@pytest.mark.parametrize("value", ["YOUR_KEY", "  "])
def test_a_place_for_the_key_without_the_key_fails(value: str) -> None:
    ((level, text),) = examined(CURSOR, entry(env={KEY: value}))
    assert (level, "no key yet" in text) == ("FAIL", True)


@pytest.mark.parametrize("client", CLIENTS, ids=by_name)
def test_only_what_the_client_fills_in_stands_for_the_key(client: Client) -> None:
    takes = {FILLED_IN.get(client.name)}
    takes |= {"${OPENAI_API_KEY}"} if client is GEMINI else {"${env:OPENAI_API_KEY}"} if client is VS_CODE else set()
    for value in FILLED_IN.values():
        ((level, text),) = examined(client, entry(env={KEY: value}))
        assert level == ("ok" if value in takes else "FAIL"), text
