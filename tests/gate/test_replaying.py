"""What a policy would have decided about calls in the log, and where the log hides too much."""

import itertools
from typing import Any

from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.calls import GateDecision, ToolDescription
from openai_responses_mcp.gate.policy.fitting import Fit
from openai_responses_mcp.gate.policy.rules import PROFILES, Policy, PolicyProfile
from openai_responses_mcp.gate.policy.ruling import PolicyRules, ruling_by
from openai_responses_mcp.gate.reasons import Decision
from openai_responses_mcp.gate.replaying import decided_otherwise, is_masked, recorded_calls, replay
from openai_responses_mcp.gate.safety_gate import decide
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.agents.fake_policy import FakePaths, FakePolicySource
from tests.gate.policy.reading import a_policy

THRESHOLD = "risk 3 needs a human under the profile balanced"


def a_log(decision: str = "needs_human", reason: str = THRESHOLD, risk: int = 3, **args: Any) -> ExecutionLog:
    return ExecutionLog("r", "c", "decision", decision, "2026", "files/write", "mcp", risk, reason, args)


def rules_of(policy: Policy) -> PolicyRules:
    source = FakePolicySource()
    source.policy = policy
    return PolicyRules(source, FakePaths())


def otherwise(log: ExecutionLog, *rules: Any, **said: Any) -> tuple[Decision | None, str] | None:
    policy = a_policy(rules=list(rules), **said)
    profile = policy.scoped(PROFILES[policy.profile_name()])
    found = decided_otherwise(log, rules_of(policy), profile, {})
    return None if found is None else (found.decision, found.reason)


ALLOW = {"tools": ["files/*"], "decide": "allow"}
ASK = {"tools": ["files/*"], "decide": "ask"}
DENY = {"tools": ["files/*"], "decide": "deny"}


def test_a_policy_that_says_the_same_changes_nothing() -> None:
    assert otherwise(a_log()) is None
    assert otherwise(a_log(), ASK) is None


def test_a_call_is_decided_again() -> None:
    cases: list[tuple[list[Any], Any, Any]] = [
        ([ALLOW], {}, ("allow", "the policy file allows it (policy rule 1)")),
        ([DENY], {}, ("deny", "the policy file refuses it (policy rule 1)")),
        ([{"tools": ["*"], "risk": 5}], {}, ("deny", "risk 5 is refused by the profile balanced")),
        (
            [{"tools": ["*"], "risk": 1}],
            {"profile": "strict", "scopes": ["mcp:*"]},
            ("allow", "risk 1 runs alone under the profile strict"),
        ),
        ([], {"scopes": []}, ("deny", "mcp:files/write is outside the scopes of the profile balanced")),
        ([{"tools": ["other/*"], "decide": "ask"}, DENY], {}, ("deny", "the policy file refuses it (policy rule 2)")),
    ]
    for rules, said, found in cases:
        assert otherwise(a_log(), *rules, **said) == found


def test_the_arguments_of_the_log_are_looked_at() -> None:
    rule = {**DENY, "when": {"path": "/etc/**"}}
    assert otherwise(a_log(path="/tmp/x"), rule) is None
    assert otherwise(a_log(path="/tmp/../etc/x"), rule) is not None


def test_doubtful_paths_and_claims_count_as_in_the_guard() -> None:
    refused = otherwise(a_log(path="x"), {**DENY, "when": {"path": "/etc/**"}})
    assert refused is not None
    assert refused[0] == "deny"
    assert otherwise(a_log(path="x"), {**ALLOW, "when": {"path": "./**"}}) is None
    reads = a_policy(rules=[{**ALLOW, "claims": "reads"}])
    profile = PROFILES["balanced"]
    assert decided_otherwise(a_log(), rules_of(reads), profile, {}) is None
    assert decided_otherwise(a_log(), rules_of(reads), profile, {"readOnlyHint": True}) is not None


def test_a_replay_keeps_the_reasons_of_other_voices() -> None:
    cases: list[tuple[str, bool]] = [
        (THRESHOLD, True),
        ("mcp:files/write is outside the scopes of the profile strict", True),
        ("a reason of mine (policy rule 2)", True),
        ("the tool asks for approval", False),
        (f"{THRESHOLD}; the tool asks for approval", False),
        ("", False),
    ]
    for reason, is_lifted in cases:
        assert (otherwise(a_log(reason=reason), ALLOW) is not None) is is_lifted
        stricter = otherwise(a_log(reason=reason), DENY)
        assert stricter is not None
        assert stricter[0] == "deny"


def test_a_replay_honours_a_standing_approval_unless_a_rule_refuses() -> None:
    log = a_log("allow", "fine; a standing approval allows it always, with any arguments (sta_1)")
    assert otherwise(log) is None
    refusing = decided_otherwise(log, rules_of(a_policy(rules=[DENY])), PROFILES["balanced"], {})
    assert refusing is not None
    assert (refusing.decision, [one.voice for one in refusing.reasons]) == ("deny", ["rule", "judge"])


def test_every_reason_that_a_policy_replaces_is_known_as_such() -> None:
    tool = ToolDescription("files/write", "mcp")
    outside = PolicyProfile("strict", 1, 5, ())
    rulings = [
        None,
        *(ruling_by(rule, Fit.YES) for rule in a_policy(rules=[ASK, {**DENY, "reason": "not\nhere"}]).rules),
    ]
    for ruling, risk, profile in itertools.product(rulings, range(1, 6), [*PROFILES.values(), outside]):
        decision = decide(tool, GateDecision("allow", risk, ""), profile, ruling=ruling)
        if decision.decision == "deny":
            assert otherwise(a_log("deny", decision.reason), ASK) is not None
        if decision.decision == "needs_human":
            assert otherwise(a_log("needs_human", decision.reason), ALLOW) is not None


def test_a_rule_that_looks_at_a_masked_value_says_so() -> None:
    cases: list[Any] = ["a***b", "say ‹AIza…, 39 characters›", ["***"], {"a": "***"}]
    for value in cases:
        found = otherwise(a_log(key=value), {**DENY, "when": {"key": {"equals": "x"}}})
        assert found == (None, "rule 1 looks at /key, which the log hides")


def test_all_masked_values_that_a_rule_looks_at_are_named() -> None:
    found = otherwise(a_log(key="***", path="***"), {**DENY, "when": {"key": "x", "path": "y"}})
    assert found == (None, "rule 1 looks at /key, /path, which the log hides")
    for value in ("plain", "a * b", 5, None, ["x"], {"a": "‹ open"}):
        assert not is_masked(value)


def test_a_masked_value_that_makes_no_difference_is_no_doubt() -> None:
    hidden = {**ASK, "when": {"key": "x"}}
    assert otherwise(a_log(key="***"), hidden) is None
    assert otherwise(a_log(key="***", path="a"), {**DENY, "when": {"key": "x", "path": "b"}}) is None
    assert otherwise(a_log(key="***"), {"tools": ["other/*"], "when": {"key": "x"}, "decide": "deny"}) is None
    assert otherwise(a_log(key="***"), {**DENY, "when": {"key": "x"}}, DENY) == (
        "deny",
        "the policy file refuses it (policy rule 1)",
    )


def test_only_decisions_on_calls_are_replayed() -> None:
    call = a_log()
    others = [
        ExecutionLog("r", "c", "started", "started", "2026", "files/write", "mcp"),
        ExecutionLog("r", "hosted:function:web_search", "decision", "allow", "2026", "web_search", "function"),
        ExecutionLog("r", "d", "decision", "something", "2026", "files/write", "mcp"),
        ExecutionLog("r", "e", "decision", "allow", "2026", "x", ""),
    ]
    assert recorded_calls([call, *others]) == [call]


async def test_a_log_is_replayed_under_the_stores_profile() -> None:
    stores = open_stores()
    await stores.logs.append(a_log())
    await stores.policies.set_profile(PolicyProfile("balanced", 4, 5, ("mcp:*",)))
    found = await replay(rules_of(a_policy()), stores.policies, stores.logs, {})
    assert found.calls == 1
    assert [one.decision for one in found.found] == ["allow"]
