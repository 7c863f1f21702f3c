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
    return PolicyRules(source, paths or FakePaths(), own_files=["~/policy.yaml", "/var/guard.db"], own_folder="/state")


def decided(rules: PolicyRules, **args: Any) -> str | None:
    ruling = rules.ruling(WRITE, args)
    return ruling.decide if ruling else None


def test_the_first_rule_that_fits_decides() -> None:
    rules = rules_of(
        {"tools": ["files/read"], "decide": "deny"},
        {"tools": ["files/*"], "when": {"path": "./*"}, "decide": "ask"},
        {"tools": ["files/*"], "decide": "allow"},
    )
    asked = rules.ruling(WRITE, {"path": "/opt/a"})
    allowed = rules.ruling(WRITE, {"path": "/etc/a"})
    assert asked is not None
    assert allowed is not None
    assert (asked.decide, allowed.decide) == ("ask", "allow")


def test_without_a_rule_that_fits_there_is_no_ruling() -> None:
    assert rules_of({"tools": ["other/*"], "decide": "deny"}).ruling(WRITE, {}) is None
    assert rules_of().ruling(WRITE, {}) is None


@pytest.mark.parametrize(
    ("rule", "ruling"),
    [
        ({"decide": "allow"}, Ruling("allow", None, 1)),
        ({"decide": "ask"}, Ruling("ask", None, 1)),
        ({"decide": "deny"}, Ruling("deny", None, 1)),
        ({"risk": 4}, Ruling(None, 4, 1)),
        ({"decide": "deny", "reason": "not here"}, Ruling("deny", None, 1, "not here")),
    ],
)
def test_a_ruling_says_which_rule_it_comes_from(rule: dict[str, object], ruling: Ruling) -> None:
    assert rules_of({"tools": ["files/*"], **rule}).ruling(WRITE, {}) == ruling


def test_a_link_that_is_put_where_a_glob_begins_changes_nothing() -> None:
    paths = FakePaths()
    rules = rules_of({"tools": ["*"], "when": {"path": "~/notes/**"}, "decide": "allow"}, paths=paths)
    assert rules.policy.rules
    paths.links["/path/to/notes"] = "/etc"
    assert rules.ruling(WRITE, {"path": "~/notes/passwd"}) is None


def test_a_new_policy_is_in_force_with_the_next_call() -> None:
    source = FakePolicySource()
    rules = PolicyRules(source, FakePaths())
    assert rules.ruling(WRITE, {}) is None
    source.policy = a_policy(rules=[{"tools": ["*"], "decide": "deny"}])
    ruling = rules.ruling(WRITE, {})
    assert ruling is not None
    assert ruling.decide == "deny"


def test_doubt_never_lets_a_call_through() -> None:
    for said, found in (
        ({"decide": "allow"}, None),
        ({"decide": "ask"}, "ask"),
        ({"decide": "deny"}, "deny"),
        ({"risk": 1}, "ask"),
        ({"risk": 5}, "ask"),
    ):
        rules = rules_of({"tools": ["files/*"], "when": {"path": "/opt/**"}, **said})
        assert decided(rules, path="secret/x.txt") == found
    assert decided(rules, path="/etc/a") is None


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


def test_a_link_that_is_put_where_relative_paths_begin_changes_nothing() -> None:
    paths = FakePaths()
    rules = rules_of(
        {"tools": ["*"], "when": {"path": "in/**"}, "decide": "allow"}, paths=paths, relative_to={"files": "~/notes"}
    )
    paths.links["/path/to/notes"] = "/etc"
    assert decided(rules, path="in/a") is None


def test_claims_are_those_of_the_definition() -> None:
    rules = rules_of({"tools": ["files/*"], "claims": "reads", "decide": "allow"})
    reading = ToolDescription("files/read", "mcp", annotations={"readOnlyHint": True})
    assert rules.ruling(reading, {}) is not None
    assert rules.ruling(WRITE, {}) is None


def test_rules_may_use_the_name_that_a_server_had_before(caplog: pytest.LogCaptureFixture) -> None:
    source = FakePolicySource(*a_policy(rules=[{"tools": ["npx/*"], "decide": "deny"}]).rules)
    rules = PolicyRules(source, FakePaths(), former_names={"server-filesystem": "npx"})
    for _ in range(2):
        assert rules.ruling(ToolDescription("server-filesystem/read", "mcp"), {}) is not None
    assert rules.ruling(ToolDescription("other/read", "mcp"), {}) is None
    (warning,) = caplog.messages
    assert "rule 1 fits server-filesystem/read by the name that its server had before" in warning


@pytest.mark.parametrize(
    ("rules", "is_denied"),
    [
        ([{"tools": ["files/*"], "decide": "deny"}], True),
        ([{"tools": ["other/*"], "decide": "allow"}, {"tools": ["*"], "decide": "deny"}], True),
        ([{"tools": ["*"], "when": {"a": "x"}, "decide": "deny"}, {"tools": ["*"], "decide": "deny"}], True),
        ([{"tools": ["*"], "when": {"a": "x"}, "decide": "allow"}, {"tools": ["*"], "decide": "deny"}], False),
        ([{"tools": ["*"], "claims": "reads", "decide": "allow"}, {"tools": ["*"], "decide": "deny"}], True),
        ([{"tools": ["*"], "claims": "writes", "decide": "deny"}], True),
        ([{"tools": ["*"], "claims": "reads", "decide": "deny"}], False),
        ([{"tools": ["*"], "when": {"a": "x"}, "decide": "deny"}], False),
        ([{"tools": ["*"], "risk": 5}, {"tools": ["*"], "decide": "deny"}], False),
        ([], False),
    ],
)
def test_a_tool_may_be_denied_whatever_its_arguments(rules: list[Any], is_denied: bool) -> None:
    assert rules_of(*rules).denies_always(WRITE) is is_denied


@pytest.mark.parametrize(
    ("args", "is_own"),
    [
        ({"path": "~/policy.yaml"}, True),
        ({"path": "/path/to/policy.yaml"}, True),
        ({"path": "/path/to/link"}, True),
        ({"path": "/path/to/POLICY.YAML"}, True),
        ({"path": "policy.yaml"}, True),
        ({"path": "../x/policy.yaml"}, True),
        ({"path": "file:///path/to/policy.yaml"}, True),
        ({"path": "/elsewhere/policy.yaml"}, False),
        ({"path": "/var/guard.db"}, True),
        ({"path": "/var/guard.db-wal"}, True),
        ({"path": "/var/guard.db.txt"}, False),
        # As servers read them that trim, decode, normalise or stop at a NUL.
        ({"path": "./guard.db "}, True),
        ({"path": "'/var/guard.db'\n"}, True),
        ({"path": "/var/x\n/../guard.db"}, True),
        ({"path": "x\n/../guard.db"}, True),
        ({"path": "/var/" + "./" * 3000 + "guard.db"}, True),
        ({"path": "/var/guard.db\0.txt"}, True),
        ({"path": "file:///var/guard.db?x#y"}, True),
        ({"path": "file:///var/guard%2Edb"}, True),
        ({"path": "./guard.db::$DATA"}, True),
        ({"path": "./guard.db."}, True),
        ({"path": "/state/backup/x.json"}, True),
        ({"path": "/state"}, True),
        ({"path": "/stateless"}, False),
        ({"content": "first\nthe file is /var/guard.db\n"}, False),
        ({"content": "word " * 2000 + "/var/guard.db"}, False),
        ({"paths": ["/a", "/var/../var/guard.db"]}, True),
        ({"edit": {"/var/guard.db": 1}}, True),
        ({"path": "/work/project/.mcp.json"}, True),
        ({"path": ".mcp.json"}, True),
        ({"path": "~/.claude.json"}, True),
        ({"path": "~/.cursor/mcp.json"}, True),
        ({"path": "~/.codex/config.toml"}, True),
        ({"path": "~/Library/Application Support/Claude/claude_desktop_config.json"}, True),
        ({"path": "~/other/config.toml"}, False),
        ({"path": "mcp.json"}, False),
        ({"content": "see ~/policy.yaml\n"}, False),
        ({"path": "~/notes/a.md", "n": 5}, False),
    ],
)
def test_paths_to_the_guards_own_files_are_found(args: Any, is_own: bool) -> None:
    rules = rules_of(paths=FakePaths({"/path/to/link": "policy.yaml"}))
    assert (rules.with_doubts(WRITE, args).doubts == (OWN_FILE,)) is is_own
