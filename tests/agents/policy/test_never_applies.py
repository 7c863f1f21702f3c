"""Rules that can never apply are found, and no others."""

from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from openai_responses_mcp.agents.policy.glob_cover import is_covered
from openai_responses_mcp.agents.policy.never_applies import rules_that_never_apply
from tests.agents.fake_policy import FakePaths
from tests.agents.policy.reading import a_policy


def never(*rules: dict[str, Any]) -> dict[int, str]:
    policy = a_policy(rules=[{"decide": "allow", **rule} if "risk" not in rule else rule for rule in rules])
    return {rule.number: reason for rule, reason in rules_that_never_apply(policy, FakePaths())}


ALL = {"tools": ["*"]}
READ = {"tools": ["files/read_*"]}


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        ([READ, ALL], {}),
        ([ALL, READ], {2: "rule 1 always comes first"}),
        ([{"tools": ["*/*"]}, ALL], {2: "rule 1 always comes first"}),
        ([READ, {"tools": ["files/*"]}], {}),
        ([READ, {"tools": ["files/read_a", "files/write"]}], {}),
        ([READ, {"tools": ["files/read_a", "files/read_b"], "risk": 3}], {2: "rule 1 always comes first"}),
        (
            [{"tools": ["files/[a-m]*"]}, {"tools": ["x/*"]}, {"tools": ["files/[!a-m]*"]}, {"tools": ["files/?*"]}],
            {4: "rules 1, 3 together always come first"},
        ),
        ([{"tools": ["files/[a-m]*"]}, {"tools": ["files/[n-z]*"]}, {"tools": ["files/?*"]}], {}),
        # with a when
        ([{**ALL, "when": {"a": "x"}}, READ], {}),
        ([READ, {**READ, "when": {"a": "x"}}], {2: "rule 1 always comes first"}),
        ([{**ALL, "when": {"a": "x"}}, {**READ, "when": {"a": "x", "b": "y"}}], {2: "rule 1 always comes first"}),
        ([{**ALL, "when": {"a": "x", "b": "y"}}, {**READ, "when": {"a": "x"}}], {}),
        ([{**ALL, "when": {"a": {"equals": 1}}}, {**ALL, "when": {"a": {"equals": True}}}], {}),
        # a doubtful path is let past rules that allow and stopped by one that denies
        ([{**ALL, "when": {"a": "/x/*"}}, {**ALL, "when": {"a": "/x/*"}, "decide": "deny"}], {}),
        (
            [{**ALL, "when": {"a": "x"}}, {**ALL, "when": {"a": "x"}, "decide": "deny"}],
            {2: "rule 1 always comes first"},
        ),
        (
            [{**ALL, "when": {"a": "/x/*"}, "decide": "deny"}, {**ALL, "when": {"a": "/x/*"}}],
            {2: "rule 1 always comes first"},
        ),
        # what no argument can be
        (
            [{**ALL, "when": {"a": {"equals": 5, "at_most": 3}}}],
            {1: "no value of /a can fit all that its when asks for"},
        ),
        ([{**ALL, "when": {"/a/b": {"in": [5, "x"], "at_most": 5}}}], {}),
        (
            [{**ALL, "when": {"/a/b": {"in": [7, "x"], "at_most": 5}}}],
            {1: "no value of /a/b can fit all that its when asks for"},
        ),
        (
            [{**ALL, "when": {"a": {"matches": "5", "at_most": 5}}}],
            {1: "no value of /a can fit all that its when asks for"},
        ),
        ([{**ALL, "when": {"a": {"at_most": 5}}}, {**ALL, "when": {"a": {"matches": "5"}}}], {}),
        ([{**ALL, "when": {"a": {"equals": float("nan")}}}], {1: "no value of /a can fit all that its when asks for"}),
    ],
)
def test_rules_that_never_apply_are_named_with_the_reason(rules: list[Any], found: dict[int, str]) -> None:
    assert never(*rules) == found


def test_what_would_take_too_long_to_tell_is_not_told() -> None:
    glob = "*a" + "?" * 14
    assert not is_covered([glob], [f"{glob}x", f"*{glob}"[:-1] + "?*", "b*"])
    assert not is_covered(["*"], ["*a" + "?" * 13, "*b" + "?" * 13, "*[!ab]" + "?" * 13, *("?" * n for n in range(14))])


GLOBS = st.text(alphabet="ab*?[]!-", max_size=5)
TEXTS = ["".join(letters) for length in range(5) for letters in product("abc!-[]", repeat=length)]


@settings(max_examples=300, deadline=None)
@given(GLOBS, st.lists(GLOBS, max_size=3))
def test_a_cover_leaves_no_text_out(glob: str, cover: list[str]) -> None:
    uncovered = [text for text in TEXTS if fnmatchcase(text, glob) and not any(fnmatchcase(text, one) for one in cover)]
    if is_covered([glob], cover):
        assert uncovered == []
