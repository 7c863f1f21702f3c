"""The policy in force, applied to calls."""

import pytest

from openai_responses_mcp.agents.calls import ToolDescription
from openai_responses_mcp.agents.policy.ruling import PolicyRules, Ruling
from tests.agents.fake_policy import FakePaths, FakePolicySource
from tests.agents.policy.reading import a_policy

WRITE = ToolDescription("files/write", "mcp", directory="/opt")


def rules_of(*rules: object, paths: FakePaths | None = None) -> PolicyRules:
    return PolicyRules(FakePolicySource(*a_policy(rules=list(rules)).rules), paths or FakePaths())


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
        ({"decide": "allow"}, Ruling("allow", None, "the policy file allows it (policy rule 1)")),
        ({"decide": "ask"}, Ruling("ask", None, "the policy file asks for a human (policy rule 1)")),
        ({"decide": "deny"}, Ruling("deny", None, "the policy file refuses it (policy rule 1)")),
        ({"risk": 4}, Ruling(None, 4, "the policy file sets the risk (policy rule 1)")),
        ({"decide": "deny", "reason": "not here"}, Ruling("deny", None, "not here (policy rule 1)")),
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
