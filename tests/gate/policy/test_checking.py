"""What is odd about a policy is found, and nothing else."""

from fnmatch import fnmatchcase
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.gate.policy.checking import (
    KnownTools,
    glob_covers,
    globs_overlap,
    looser_rules_first,
    rules_that_never_apply,
    unknown_names,
)
from tests.agents.fake_policy import FakePaths
from tests.gate.policy.reading import a_policy


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
        ([READ, {"tools": ["files/*"]}], {}),
        ([READ, {"tools": ["files/read_a", "files/write"]}], {}),
        ([READ, {"tools": ["files/read_a", "files/read_b"], "risk": 3}], {2: "rule 1 always comes first"}),
        ([{"tools": ["files/[a-m]*"]}, {"tools": ["files/[a-m]*"]}], {2: "rule 1 always comes first"}),
        # with claims
        ([{**READ, "claims": "reads"}, READ], {}),
        ([READ, {**READ, "claims": "reads"}], {2: "rule 1 always comes first"}),
        ([{**READ, "claims": "reads"}, {**READ, "claims": "reads"}], {2: "rule 1 always comes first"}),
        ([{**READ, "claims": "reads"}, {**READ, "claims": "writes"}], {}),
        # with a when
        ([{**ALL, "when": {"a": "x"}}, READ], {}),
        ([READ, {**READ, "when": {"a": "x"}}], {2: "rule 1 always comes first"}),
        ([{**ALL, "when": {"a": "x"}}, {**READ, "when": {"a": "x", "b": "y"}}], {2: "rule 1 always comes first"}),
        ([{**ALL, "when": {"a": "x", "b": "y"}}, {**READ, "when": {"a": "x"}}], {}),
        ([{**ALL, "when": {"a": {"equals": 1}}}, {**ALL, "when": {"a": {"equals": True}}}], {}),
        # a doubtful path fits rules that ask or deny, and none that allow
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
        (
            [{**ALL, "when": {"a": {"missing": True, "at_most": 5}}}],
            {1: "no value of /a can fit all that its when asks for"},
        ),
        ([{**ALL, "when": {"a": {"in": [5, 6], "not": {"equals": 5}}}}], {}),
        (
            [{**ALL, "when": {"a": {"in": [5], "not": {"equals": 5}}}}],
            {1: "no value of /a can fit all that its when asks for"},
        ),
        ([{**ALL, "when": {"a": {"equals": float("nan")}}}], {1: "no value of /a can fit all that its when asks for"}),
    ],
)
def test_rules_that_never_apply_are_named_with_the_reason(rules: list[Any], found: dict[int, str]) -> None:
    assert never(*rules) == found


GLOBS = st.text(alphabet="ab*?[]!-", max_size=5)
TEXTS = ["".join(letters) for length in range(5) for letters in product("abc!-[]", repeat=length)]


@given(GLOBS, GLOBS)
def test_a_wider_glob_leaves_no_name_out(wide: str, glob: str) -> None:
    if glob_covers(wide, glob):
        assert [text for text in TEXTS if fnmatchcase(text, glob) and not fnmatchcase(text, wide)] == []


# ---------------------------------------------------------------------------------------------------------------------
# Order

ALLOW_NOTES = {"tools": ["files/*"], "when": {"path": "~/notes/**"}, "decide": "allow"}


@pytest.mark.parametrize(
    ("rules", "found"),
    [
        # an exception, and then the rest
        ([ALLOW_NOTES, {"tools": ["files/*"], "decide": "deny"}], []),
        ([ALLOW_NOTES, {"tools": ["*"], "decide": "ask"}], []),
        ([{"tools": ["files/read"], "decide": "allow"}, {"tools": ["files/*"], "decide": "deny"}], []),
        # a stricter rule for some of the same calls comes too late
        ([ALLOW_NOTES, {"tools": ["files/*"], "when": {"path": "~/notes/private/**"}, "decide": "deny"}], [(2, 1)]),
        ([ALLOW_NOTES, {"tools": ["files/write"], "when": {"text": {"matches": "x"}}, "decide": "deny"}], [(2, 1)]),
        ([ALLOW_NOTES, {"tools": ["*/delete_*"], "decide": "deny"}], [(2, 1)]),
        ([{**ALLOW_NOTES, "decide": "ask"}, {"tools": ["*/delete_*"], "decide": "deny"}], [(2, 1)]),
        ([{"tools": ["files/read_*"], "decide": "allow"}, {"tools": ["*/*_secret"], "decide": "deny"}], [(2, 1)]),
        # the other way round it is right
        ([{"tools": ["*/delete_*"], "decide": "deny"}, ALLOW_NOTES], []),
        # no call in common
        ([ALLOW_NOTES, {"tools": ["files/*"], "when": {"path": "~/other/**"}, "decide": "deny"}], []),
        ([ALLOW_NOTES, {"tools": ["files/*"], "when": {"path": {"not": "~/notes/**"}}, "decide": "deny"}], []),
        ([ALLOW_NOTES, {"tools": ["files/*"], "when": {"path": {"missing": True}}, "decide": "deny"}], []),
        ([ALLOW_NOTES, {"tools": ["mail/*"], "when": {"to": "a*"}, "decide": "deny"}], []),
        (
            [
                {"tools": ["a/b"], "when": {"mode": {"in": ["r", "s"]}}, "decide": "allow"},
                {"tools": ["a/b"], "when": {"mode": {"in": ["w"]}}, "decide": "deny"},
            ],
            [],
        ),
        (
            [{"tools": ["files/*"], "claims": "reads", "decide": "allow"}, {"tools": ["*/delete_*"], "decide": "deny"}],
            [],
        ),
        # risks cannot be compared
        ([{"tools": ["files/*"], "risk": 1}, {"tools": ["*/delete_*"], "decide": "deny"}], []),
        # what never applies is reported as such
        ([{"tools": ["*"], "decide": "allow"}, {"tools": ["*/delete_*"], "decide": "deny"}], []),
    ],
)
def test_a_looser_rule_before_a_stricter_one_is_found(rules: list[Any], found: list[tuple[int, int]]) -> None:
    told = [(rule.number, reason) for rule, reason in looser_rules_first(a_policy(rules=rules), FakePaths())]
    assert [number for number, _ in told] == [number for number, _ in found]
    assert all(reason.startswith(f"rule {first} (") for (_, reason), (_, first) in zip(told, found, strict=True))


STARRED = st.text(alphabet="ab*?[]", max_size=4)
NAMES = ["".join(letters) for length in range(9) for letters in product("ab", repeat=length)]


@given(STARRED, STARRED)
def test_globs_overlap_if_a_name_fits_both(one: str, other: str) -> None:
    has_common = any(fnmatchcase(name, one) and fnmatchcase(name, other) for name in NAMES)
    assert globs_overlap(one, other) or not has_common
    if not set("[]") & set(one + other):
        assert globs_overlap(one, other) == has_common


# ---------------------------------------------------------------------------------------------------------------------
# Names

SCHEMA = {
    "properties": {"path": {"type": "string"}, "options": {"$ref": "#/$defs/options"}, "headers": {"type": "object"}},
    "$defs": {"options": {"allOf": [{"properties": {"depth": {"type": "integer"}}}]}},
}
KNOWN = KnownTools(
    frozenset({"files/read_file", "files/write_file", "server-git/log", "function/pay"}), {"files/write_file": SCHEMA}
)


@pytest.mark.parametrize(
    ("rule", "found"),
    [
        ({"tools": ["files/*", "*/delete_*", "*"]}, []),
        ({"tools": ["files/read_file", "function/anything", "skill/x"]}, []),
        ({"tools": ["files/read_fil"]}, ["no tool of files is known as read_fil (did you mean files/read_file?)"]),
        ({"tools": ["files/xyzzy"]}, ["no tool of files is known as xyzzy"]),
        ({"tools": ["fiels/*"]}, ["no server is known as fiels (did you mean files?)"]),
        (
            {"tools": ["npx/*"]},
            [
                "npx is how a server is started; guards now take the name of the server itself (files, function, server-git)"
            ],
        ),
        ({"tools": ["files/*"], "when": {"path": "x", "/options/depth": "x", "/headers/X": "x"}}, []),
        ({"tools": ["files/*"], "when": {"pth": "x"}}, ["no argument is called /pth (did you mean path?)"]),
        (
            {"tools": ["files/*"], "when": {"/options/dept": "x"}},
            ["no argument is called /options/dept (did you mean depth?)"],
        ),
        ({"tools": ["server-git/*"], "when": {"pth": "x"}}, []),
    ],
)
def test_names_that_nothing_has_are_found(rule: dict[str, Any], found: list[str]) -> None:
    policy = a_policy(rules=[{"decide": "ask", **rule}])
    assert [reason for _, reason in unknown_names(policy, KNOWN)] == found
