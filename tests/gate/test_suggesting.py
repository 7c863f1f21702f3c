"""From what people decided to a policy file that a person would have written."""

import itertools
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.adapters.policy_file import LinearPatterns, parse_policy
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.calls import ToolDescription
from openai_responses_mcp.gate.policy.checking import looser_rules_first, rules_that_never_apply
from openai_responses_mcp.gate.policy.rules import PROFILES
from openai_responses_mcp.gate.policy.ruling import PolicyRules
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.replaying import decided_otherwise, recorded_calls
from openai_responses_mcp.gate.suggesting import suggest
from tests.agents.fake_policy import FakePaths, FakePolicySource

READS = {"annotations": {"readOnlyHint": True}}
ENTRIES: dict[str, Any] = {
    "files/read": READS,
    "files/list": READS,
    "files/write": {"inputSchema": {"properties": {"path": {}, "content": {}}}},
    "git/log": READS,
    "git/many": {"inputSchema": {"properties": {name: {} for name in "abcdefg"}}},
}
ASKED = "risk 3 needs a human under the profile balanced"


class History:
    """A log, call by call."""

    def __init__(self) -> None:
        self.logs: list[ExecutionLog] = []
        self._numbers = itertools.count(1)

    def call(self, tool: str, answer: str, comment: str = "", /, **args: Any) -> "History":
        number = next(self._numbers)
        decision = {"rule": "deny", "standing": "allow", "failed": "allow", "observed": "allow"}.get(
            answer, "needs_human"
        )
        self._add(number, "decision", decision, tool, args, reason=ASKED)
        if answer in ("approved", "denied", "expired"):
            self._add(number, "approval_requested", "pending", tool, args)
            self._add(number, "approval", answer, tool, args, comment=comment)
        elif answer in ("standing", "failed"):
            self._add(number, "standing_used:2", "allow", tool, args)
            self._add(number, "outcome", "failed" if answer == "failed" else "completed", tool, {})
        return self

    def changed(self, tool: str, before: Any, after: Any) -> "History":
        number = next(self._numbers)
        self._add(number, "decision", "needs_human", tool, before, reason=ASKED)
        self._add(number, "approval", "approved", tool, after)
        return self

    def _add(self, number: int, event: str, decision: str, tool: str, args: Any, **others: Any) -> None:
        risk = 3 if event == "decision" else None
        self.logs.append(
            ExecutionLog("guard_1", f"c{number}", event, decision, "2026", tool, "mcp", risk, arguments=args, **others)
        )

    def text(self, server: str = "") -> str:
        return suggest(self.logs, ENTRIES, FakePaths(), LinearPatterns(), server)


def rules_in(text: str) -> PolicyRules:
    reading = parse_policy("suggested.yaml", text, LinearPatterns())
    assert reading.problems == ()
    source = FakePolicySource()
    source.policy = reading.policy
    return PolicyRules(source, FakePaths())


def test_a_day_becomes_a_file_that_a_person_would_have_written() -> None:
    day = History()
    for name in "abc":
        day.call("files/read", "approved", path=f"~/notes/{name}.md")
        day.call("files/write", "approved", path=f"/path/to/notes/{name}.md", content="x" * 500)
    day.call("files/list", "standing", path="~/notes")
    day.call("files/delete", "denied", "nothing is deleted here", path="~/notes/a.md")
    day.call("files/write", "denied", "no secrets", path="/etc/passwd", content="y")
    day.call("files/move", "expired", path="~/a")
    day.call("files/write", "failed", path=17, content="no such path")
    assert (
        day.text()
        == """\
# Suggested from 9 calls that people have decided. Read it before you use it.
version: 1
profile: balanced

rules:
  # 1 call, denied.
  - tools: ["files/write"]
    when: {path: "/etc/passwd"}
    decide: deny
    reason: "no secrets"
  # 1 call, denied.
  - tools: ["files/delete"]
    decide: deny
    reason: "nothing is deleted here"
  # 4 calls, all allowed. The server says that these tools only read.
  - tools: ["files/read", "files/list"]
    claims: reads
    decide: allow
  # 3 calls, allowed.
  - tools: ["files/write"]
    when: {path: "~/notes/*"}
    decide: allow
  # Everything else stays a question.
  - tools: ["files/*"]
    decide: ask
"""
    )


@pytest.mark.parametrize(
    ("calls", "when"),
    [
        # one folder
        ([{"path": "/a/b/c"}, {"path": "/a/b/d"}], '{path: "/a/b/*"}'),
        ([{"path": "/a/b/c"}, {"path": "/a/b/d/e"}], '{path: "/a/b/**"}'),
        ([{"path": "~/notes/a"}, {"path": "/path/to/notes/b"}], '{path: "~/notes/*"}'),
        ([{"paths": ["/a/b/c"]}, {"paths": ["/a/b/d", "/a/b/e/f"]}], '{paths: {every: "/a/b/**"}}'),
        # one value
        ([{"repo": "own/it", "n": 1}, {"repo": "own/it", "n": 1.0}], '{repo: {equals: "own/it"}, n: {equals: 1}}'),
        ([{"text": "y" * 100}], f'{{text: {{equals: "{"y" * 100}"}}}}'),
        ([{"path": f"/a/b/{'c' * 495}"}], f'{{path: "/a/b/{"c" * 495}"}}'),
        ([{"path": "/a/b/[c"}], '{path: {equals: "/a/b/[c"}}'),
        ([{"": "x"}], '{"/": {equals: "x"}}'),
        ([{"/odd name": "x"}], '{"/~1odd name": {equals: "x"}}'),
        # one of few
        ([{"n": number} for number in range(5)], "{n: {in: [0, 1, 2, 3, 4]}}"),
        ([{"path": "x.md"}, {"path": "y.md"}], '{path: {in: ["x.md", "y.md"]}}'),
        # what the calls do not have in common, or what cannot be seen, is left out
        ([{"a": "x", "text": "y" * 101}], '{a: {equals: "x"}}'),
        ([{"a": "x", "b": "\ud800", "\udfff": 1}], '{a: {equals: "x"}}'),
        ([{"a": "x", "text": "two\nlines"}], '{a: {equals: "x"}}'),
        ([{"a": "x", "n": float("inf"), "list": []}], '{a: {equals: "x"}}'),
        ([{"a": "日本\u2028", "b": {"c": 1}}], '{a: {equals: "日本\\U00002028"}}'),
        ([{}], "{content: {missing: true}, path: {missing: true}}"),
        # nothing in common: it stays a question
        ([{"n": number} for number in range(6)], None),
        ([{"paths": ["/a/b/c"]}, {"paths": ["/a/b/d", 5]}], None),
        ([{"key": "***"}], None),
        ([{"path": f"/{number}/x"} for number in range(9)], None),
    ],
)
def test_the_narrowest_condition_covers_the_calls(calls: list[Any], when: str | None) -> None:
    day = History()
    for args in calls:
        day.call("files/write", "approved", **args)
    text = day.text()
    found = [line.strip() for line in text.splitlines() if "when:" in line]
    assert found == ([] if when is None else [f"when: {when}"])
    rules = rules_in(text)
    for args in calls:
        ruling = rules.ruling(ToolDescription("files/write", "mcp"), args)
        assert ruling is not None
        assert ruling.decide == ("ask" if when is None else "allow")


def test_a_tool_without_arguments_is_allowed_as_it_is() -> None:
    text = History().call("clock/now", "approved").text()
    assert '# 1 call, allowed.\n  - tools: ["clock/now"]\n    decide: allow' in text
    assert "allow" not in History().call("clock/now", "approved", key="***").text().replace("allowed", "")


def test_of_many_arguments_that_could_be_given_the_first_few_are_missing() -> None:
    missing = ", ".join(f"{name}: {{missing: true}}" for name in "abcde")
    assert f"when: {{{missing}}}\n" in History().call("git/many", "approved").text()


def test_each_server_has_its_own_rules() -> None:
    text = History().call("files/read", "approved", path="/a").call("git/log", "approved").text()
    for tool in ("files/read", "git/log"):
        assert f'# 1 call, allowed. The server says that these tools only read.\n  - tools: ["{tool}"]' in text
    assert text.endswith('  - tools: ["files/*", "git/*"]\n    decide: ask\n')


@pytest.mark.parametrize("verdict", ["denied", "refused"])
def test_a_reading_tool_that_was_not_only_allowed_keeps_no_other_off_the_list(verdict: str) -> None:
    day = History().call("files/list", "approved", path="/a/b")
    if verdict == "denied":
        day.call("files/read", "approved", path="/a/b/c").call("files/read", "denied", path="/a/b/c")
    else:
        day.changed("files/read", {"path": "/a/b/c"}, {"path": "/a/b/d"})
    assert '  - tools: ["files/list"]\n    claims: reads\n    decide: allow\n' in day.text()


def test_a_server_with_the_name_of_a_kind_of_tool_is_written_as_rules_write_it() -> None:
    text = History().call("function/pay", "approved", x=1).text()
    assert 'tools: ["mcp/function/pay"]' in text
    assert 'tools: ["mcp/function/*"]' in text


@pytest.mark.parametrize(
    ("denied", "allowed", "when"),
    [
        ({"mode": "w", "path": "/etc/a"}, [{"mode": "r", "path": "/tmp/x"}], '{path: "/etc/a"}'),
        ({"mode": "w", "path": "/etc/a"}, [{"mode": "r", "path": "/etc/a"}], '{mode: {equals: "w"}}'),
        ({"a": 1, "b": 2}, [{"a": 1, "b": 3}, {"a": 2, "b": 2}], "{a: {equals: 1}, b: {equals: 2}}"),
    ],
)
def test_a_denial_names_the_one_condition_that_no_allowed_call_fits_or_all(
    denied: Any, allowed: Any, when: str
) -> None:
    day = History().call("files/write", "denied", **denied)
    for args in allowed:
        day.call("files/write", "approved", **args)
    assert f"when: {when}\n    decide: deny\n  #" in day.text()


def test_the_reason_of_a_denial_is_the_last_comment_cut_to_what_a_file_can_hold() -> None:
    day = History().call("files/x", "denied", "first", a=1).call("files/x", "denied", "\ud800" + "x" * 500, a=1)
    assert f'reason: "?{"x" * 499}"\n' in day.call("files/x", "denied", " ", a=1).text()


def test_one_server_can_be_chosen() -> None:
    day = History().call("files/read", "approved", path="/a/b/c").call("git/log", "approved")
    assert "git/log" in day.text("git")
    assert "files" not in day.text("git")


def test_a_call_that_no_person_decided_is_not_suggested() -> None:
    day = History().call("files/write", "expired", path="/a/b/c").call("files/read", "observed", path="/a/b/c")
    assert day.text().endswith("rules: []\n")
    assert History().text().endswith("rules: []\n")


def test_a_call_that_a_person_changed_is_not_allowed_as_it_was() -> None:
    day = History().changed("files/write", {"path": "/etc/a"}, {"path": "/tmp/x/a"})
    rules = rules_in(day.text())
    decided = [rules.ruling(ToolDescription("files/write", "mcp"), {"path": path}) for path in ("/etc/a", "/tmp/x/a")]
    assert [one and one.decide for one in decided] == ["ask", "allow"]
    day = History().changed("files/write", {"path": "/a/b/x"}, {"path": "/a/b/c"})
    text = day.call("files/write", "approved", path="/a/b/d").text()
    assert text.startswith("# Suggested from 2 calls that")
    assert "decide: allow" not in text


def test_a_call_both_allowed_and_denied_is_suggested_neither_way() -> None:
    day = History().call("files/write", "approved", path="/a/b/c").call("files/write", "denied", path="/a/b/c")
    assert "allow" not in day.text()
    assert "deny" not in day.text().replace("denied", "")


def test_a_denial_by_a_rule_is_suggested_again() -> None:
    day = History().call("files/read", "approved", path="/a/b/c").call("files/read", "rule", path="/a/x")
    denying = Reason("rule", "deny", {"rule": 1, "text": "not there"})
    day.logs = [replace(log, reasons=(denying,)) if log.decision == "deny" else log for log in day.logs]
    assert 'when: {path: "/a/x"}\n    decide: deny\n    reason: "not there"' in day.text()


def test_only_a_rule_that_denies_is_a_denial_and_any_other_refusal_allows_nothing() -> None:
    asks, judge = Reason("rule", "needs_human", {"rule": 1, "text": "ask"}), Reason("judge", "deny", {"text": "no"})
    for event in ("decision", "observed"):
        day = History().call("files/read", "approved", path="/a/b/c").call("files/read", "rule", path="/a/b/c")
        refused = replace(day.logs[-1], event=event, reasons=(asks, judge))
        day.logs[-1] = refused
        assert "decide: ask" in day.text()
        assert "decide: deny" not in day.text()
        assert "decide: allow" not in day.text()
        day.logs[-1] = replace(refused, reasons=(Reason("rule", "deny", {"rule": 1}),))
        assert "reason:" not in day.text()
    alone = History().call("files/write", "rule", path="/a")
    for reasons, is_denied in (((), False), ((asks, judge), False), ((Reason("rule", "deny", {"rule": 1}),), True)):
        alone.logs[-1] = replace(alone.logs[-1], reasons=reasons)
        assert ("decide: deny" in alone.text()) is is_denied
        assert f"# Suggested from {'1 call' if is_denied else '0 calls'} that" in alone.text()
    assert "reason:" not in alone.text()


def test_a_rule_says_whether_all_of_its_calls_were_allowed() -> None:
    day = History()
    for name in "ab":
        day.call("files/write", "approved", path=f"~/notes/{name}")
    assert "# 2 calls, all allowed." in day.text()
    assert "# 2 calls, allowed." in day.call("files/write", "denied", path="/etc/a").text()


def test_a_no_to_a_used_up_budget_says_nothing_about_the_tool() -> None:
    day = History().call("files/read", "approved", path="~/a").call("files/read", "denied", path="~/b")
    budget = Reason("budget", "needs_human", {"most": 1, "unit": "calls", "per": "day"})
    for asked in (-3, -6):
        day.logs[asked] = replace(day.logs[asked], reasons=(Reason("profile", "allow"), budget))
    assert "deny" not in day.text()
    assert "1 call, allowed. The server says that these tools only read." in day.text()
    day.logs[-3] = replace(day.logs[-3], reasons=(Reason("tool", "needs_human"), budget))
    assert "decide: deny" in day.text()


def test_a_call_that_could_not_be_decided_on_says_nothing() -> None:
    day = History().call("files/read", "approved", path="/a/b/c").call("files/read", "rule", Path="/a/x")
    failing = Reason("failure", "deny", {"code": "AGENTS-E-GATE-DENIED", "message": "not clear"})
    day.logs = [replace(log, reasons=(failing,)) if log.decision == "deny" else log for log in day.logs]
    assert "claims: reads" in day.text()


def test_names_with_letters_that_stand_for_others_are_names() -> None:
    day = History().call("s*/a[b]", "approved", x=1)
    rules = rules_in(day.text())
    assert rules.ruling(ToolDescription("s*/a[b]", "mcp"), {"x": 1}) is not None
    assert rules.ruling(ToolDescription("sx/ab", "mcp"), {"x": 1}) is None


TOOLS = st.sampled_from(["files/read", "files/write", "files/list", "git/log"])
ANSWERS = st.sampled_from(["approved", "approved", "denied", "expired", "standing", "rule"])
PATHS = st.sampled_from(
    ["/a/b/c", "/a/b/d", "/a/b/e/f", "/a/x", "~/notes/a", "~/notes/../a", "rel", "file:///a/b/c", "***", "/proc/self"]
)
VALUES = PATHS | st.integers(0, 3) | st.booleans() | st.none() | st.text(max_size=4) | st.lists(PATHS, max_size=2)
ARGS = st.dictionaries(st.sampled_from(["path", "mode", "Path", "/x", ""]), VALUES, max_size=3)


@given(st.lists(st.tuples(TOOLS, ANSWERS, st.text(max_size=5), ARGS), max_size=12))
def test_nothing_gets_looser_than_a_person_decided(history: list[tuple[str, str, str, dict[str, Any]]]) -> None:
    day = History()
    for tool, answer, comment, args in history:
        day.call(tool, answer, comment, **args)
    rules = rules_in(day.text())
    for tool, answer, _, args in history:
        annotations = ENTRIES[tool].get("annotations", {})
        ruling = rules.ruling(ToolDescription(tool, "mcp", annotations=annotations), args)
        if answer in ("denied", "rule"):
            assert ruling is None or ruling.decide != "allow"
        elif answer in ("approved", "standing"):
            assert ruling is None or ruling.decide != "deny"
    # As `policy test` sees it.
    answers = {f"c{number}": answer for number, (_, answer, _, _) in enumerate(history, start=1)}
    for log in recorded_calls(day.logs):
        found = decided_otherwise(log, rules, PROFILES["balanced"], ENTRIES[log.tool_name].get("annotations", {}))
        if answers[log.tool_call_id] in ("denied", "rule"):
            assert found is None or found.decision != "allow"
    assert list(looser_rules_first(rules.policy, FakePaths())) == []
    assert list(rules_that_never_apply(rules.policy, FakePaths())) == []


def test_calls_of_tools_that_are_no_servers_are_left_out() -> None:
    day = History().call("pay", "approved", path="/a/b/c").call("a/b", "approved", path="/a/b/c")
    day.logs = [replace(log, tool_kind="function") if log.tool_name == "a/b" else log for log in day.logs]
    assert day.text().endswith("rules: []\n")


def test_a_tool_whose_name_no_rule_can_hold_is_left_out() -> None:
    history = History()
    for _ in range(3):
        history.call(f"files/{'x' * 600}", "approved", text="a").call("files/write", "denied", path="/tmp/x")
    text = history.text()
    assert "files/write" in text
    assert "xxx" not in text
