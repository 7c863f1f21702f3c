"""The policy in force, applied to calls."""

from typing import Any

import pytest

from openai_responses_mcp.gate.calls import ToolDescription
from openai_responses_mcp.gate.policy.ruling import PolicyRules, Ruling
from openai_responses_mcp.gate.reasons import OWN_FILE
from tests.agents.fake_policy import FakePaths, FakePolicySource
from tests.gate.policy.reading import a_policy

WRITE = ToolDescription("files/write", "mcp", directory="/opt")


def rules_of(*rules: object, paths: FakePaths | None = None, **said: Any) -> PolicyRules:
    source = FakePolicySource()
    source.policy = a_policy(rules=list(rules), **said)
    own_files = ["~/policy.yaml", "/var/guard.db", "notes.db"]
    return PolicyRules(source, paths or FakePaths(), own_files=own_files, own_folder="state")


def decided(rules: PolicyRules, **args: Any) -> str | None:
    ruling = rules.ruling(WRITE, args)
    return ruling.decide if ruling else None


def test_the_first_rule_that_fits_decides() -> None:
    rules = rules_of(
        {"tools": ["files/read"], "decide": "deny"},
        {"tools": ["files/*"], "when": {"path": "./*"}, "decide": "ask"},
        {"tools": ["files/*"], "decide": "allow"},
    )
    assert (decided(rules, path="/opt/a"), decided(rules, path="/etc/a")) == ("ask", "allow")
    assert rules_of({"tools": ["other/*"], "decide": "deny"}).ruling(WRITE, {}) is None


def test_a_ruling_says_which_rule_it_comes_from() -> None:
    cases: list[tuple[dict[str, object], Ruling]] = [
        ({"decide": "allow"}, Ruling("allow", None, 1, "", in_doubt=False)),
        ({"risk": 4}, Ruling(None, 4, 1)),
        ({"decide": "deny", "reason": "not here"}, Ruling("deny", None, 1, "not here")),
    ]
    for rule, ruling in cases:
        assert rules_of({"tools": ["files/*"], **rule}).ruling(WRITE, {}) == ruling


def test_a_link_that_is_put_where_a_glob_begins_changes_nothing() -> None:
    paths, source = FakePaths(), FakePolicySource()
    rules = PolicyRules(source, paths)
    source.policy = a_policy(rules=[{"tools": ["*"], "when": {"path": ["~/notes/**", "in/**"]}, "decide": "allow"}])
    assert rules.policy.rules
    paths.links |= {"/path/to/notes": "/etc", "/srv/in": "/etc"}
    assert rules.ruling(WRITE, {"path": "~/notes/passwd"}) is None
    assert rules.ruling(ToolDescription("files/write", "mcp"), {"path": "/srv/in/passwd"}) is None


def test_doubt_never_lets_a_call_through() -> None:
    for said, found in (
        ({"decide": "allow"}, Ruling(None, None, 0, would_allow=1)),
        ({"decide": "ask"}, Ruling("ask", None, 1, in_doubt=True)),
        ({"decide": "deny"}, Ruling("deny", None, 1, in_doubt=True)),
        ({"risk": 1}, Ruling("ask", None, 1, in_doubt=True)),
    ):
        rules = rules_of({"tools": ["files/*"], "when": {"path": "/opt/**"}, **said})
        assert rules.ruling(WRITE, {"path": "secret/x.txt"}) == found
    assert decided(rules, path="/etc/a") is None


def test_the_first_rule_that_would_allow_a_clear_path_is_named() -> None:
    notes, rest = {"tools": ["*"], "when": {"path": "/opt/**"}, "decide": "allow"}, {"tools": ["*"], "decide": "ask"}
    rules = rules_of(notes, notes, rest)
    assert rules.ruling(WRITE, {"path": "a.md"}) == Ruling("ask", None, 3, would_allow=1)
    assert rules.ruling(WRITE, {"path": "/etc/a"}) == Ruling("ask", None, 3, would_allow=0)


def test_relative_paths_are_clear_once_the_file_says_where_they_begin() -> None:
    rule = {"tools": ["*"], "when": {"path": ["private/**", "~/notes/private/**"]}, "decide": "deny"}
    rules = rules_of(rule, {"tools": ["*"], "decide": "allow"}, relative_to={"files": "~/notes"})
    assert decided(rules, path="private/a") == "deny"
    assert decided(rules, path="/path/to/notes/private/a") == "deny"
    assert decided(rules, path="a.md") == "allow"
    other = rules.ruling(ToolDescription("other/write", "mcp"), {"path": "a.md"})
    assert other is not None
    assert other.decide == "deny"


def test_relative_paths_are_in_doubt_again_once_the_client_has_sent_roots() -> None:
    rules = rules_of({"tools": ["*"], "when": {"path": "./**"}, "decide": "allow"}, relative_to={"files": "~/notes"})
    rules.doubt_relative_paths("other")
    assert decided(rules, path="a.md") == "allow"
    rules.doubt_relative_paths("files")
    assert decided(rules, path="a.md") is None
    assert decided(rules, path="~/notes/a.md") == "allow"


def test_a_name_that_differs_from_one_in_a_rule_only_in_case_is_unclear() -> None:
    rules = rules_of({"tools": ["files/*"], "when": {"path": "x"}, "decide": "deny"})
    assert rules.unclear_name(WRITE, {"Path": "x"}) == '"Path" could be taken for "path"'
    assert rules.unclear_name(ToolDescription("other/write", "mcp"), {"Path": "x"}) is None


def test_a_link_that_is_put_where_relative_paths_begin_changes_nothing() -> None:
    paths = FakePaths()
    rules = rules_of(
        {"tools": ["*"], "when": {"path": "in/**"}, "decide": "allow"}, paths=paths, relative_to={"files": "~/notes"}
    )
    paths.links["/path/to/notes"] = "/etc"
    assert decided(rules, path="in/a") is None


def test_rules_may_use_the_name_that_a_server_had_before(caplog: pytest.LogCaptureFixture) -> None:
    rule = {"tools": ["npx/read"], "when": {"path": "/x/**"}, "decide": "deny"}
    rules = PolicyRules(
        FakePolicySource(*a_policy(rules=[rule]).rules), FakePaths(), former_names={"server-filesystem": "npx"}
    )
    for _ in range(2):
        assert rules.ruling(ToolDescription("server-filesystem/read", "mcp"), {"path": "in/doubt"}) is not None
    assert rules.ruling(ToolDescription("other/read", "mcp"), {"path": "/x/a"}) is None
    ((logger, _, warning),) = caplog.record_tuples
    assert logger == "openai_responses_mcp.agents"
    assert "rule 1 fits server-filesystem/read by the name that its server had before" in warning


def test_a_tool_may_be_denied_whatever_its_arguments() -> None:
    cases: list[tuple[list[Any], bool]] = [
        ([{"tools": ["other/*"], "decide": "allow"}, {"tools": ["*"], "decide": "deny"}], True),
        ([{"tools": ["*"], "when": {"a": "x"}, "decide": "allow"}, {"tools": ["*"], "decide": "deny"}], False),
        ([{"tools": ["*"], "claims": "reads", "decide": "allow"}, {"tools": ["*"], "decide": "deny"}], True),
        ([{"tools": ["*"], "claims": "writes", "decide": "deny"}], True),
        ([{"tools": ["*"], "when": {"a": "x"}, "decide": "deny"}], False),
        ([{"tools": ["*"], "risk": 5}, {"tools": ["*"], "decide": "deny"}], False),
        ([], False),
    ]
    for rules, is_denied in cases:
        assert rules_of(*rules).denies_always(WRITE) is is_denied


OWN = [
    *("~/policy.yaml", "/path/to/link", "/path/to/POLICY.YAML", "../x/policy.yaml", "file:///path/to/policy.yaml"),
    *(
        "/srv/notes.db",
        "/srv/state/a/b.json",
        "/srv/state",
        *(f"/var/guard.db{one}" for one in ("-wal", "-shm", "-journal", ".head")),
    ),
    # As servers read them that trim, decode, normalise or stop at a NUL.
    *("'/var/guard.db'\n", "x\n/../guard.db", "/var/" + "./" * 3000 + "guard.db", "/var/guard.db\0.txt"),
    *(
        "file:///var/guard.db?x#y",
        "file:///var/guard%2Edb",
        "./guard.db::$DATA",
        "./guard.db.",
        "file:///var/a b\n/guard.db",
    ),
    # What clients are configured with.
    *(
        "C:\\me\\.cursor\\mcp.json",
        ".cursor/.//mcp.json",
        "/work/project/.mcp.json",
        "~/.claude.json",
        "~/.codex/config.toml",
    ),
    *("a/.claude/settings.json", "a/.claude/settings.local.json", "a/.vscode/mcp.json", "~/.gemini/settings.json"),
    *("~/.config/Code/User/mcp.json", "~/.config/Code/User/settings.json", "a/Claude/claude_desktop_config.json"),
]
OTHERS = [
    *("./guard.dbX", "/elsewhere/policy.yaml", "/srv/stateless", "~/other/config.toml", "mcp.json"),
    *("first\nthe file is /var/guard.db\n", "word " * 2000 + "/var/guard.db"),
]


def test_paths_to_the_guards_own_files_are_found() -> None:
    for path, is_own in (*((path, True) for path in OWN), *((path, False) for path in OTHERS)):
        rules = rules_of(paths=FakePaths({"/path/to/link": "policy.yaml"}))
        for args in ({"path": path}, {"n": 5, "paths": ["/a", path]}, {"edit": {path: 1}}):
            assert (rules.with_doubts(WRITE, args).doubts == (OWN_FILE,)) is is_own
