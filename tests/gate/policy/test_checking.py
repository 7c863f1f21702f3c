"""What is odd about a policy is found, and nothing else."""

from fnmatch import fnmatchcase
from itertools import product
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from openai_responses_mcp.gate.policy.checking import (
    KnownTools,
    PolicyFindings,
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


def conditional(**when: Any) -> dict[str, Any]:
    return {**ALL, "when": when}


READS = {**READ, "claims": "reads"}
FIRST = "rule 1 always comes first"


def test_a_rule_never_applies_after_one_that_covers_it() -> None:
    cases: list[tuple[Any, list[Any], list[Any]]] = [
        (ALL, [READ], []),
        (READ, [{"tools": ["files/read_a", "files/read_b"], "risk": 3}, READS, {**READ, "when": {"a": "x"}}], []),
        (READ, [], [ALL, {"tools": ["files/*"]}, {"tools": ["files/read_a", "files/write"]}]),
        (READS, [READS], [READ, {**READ, "claims": "writes"}]),
        (conditional(a="x"), [conditional(a="x", b="y"), {**conditional(a="x"), "decide": "deny"}], [READ]),
        (conditional(a={"matches": "x"}), [conditional(a={"matches": "x"})], [conditional(a={"matches": "y"})]),
        (conditional(a={"equals": 1}), [], [conditional(a={"equals": True})]),
        # a doubtful path fits rules that ask or deny, and none that allow
        (conditional(a="/x/*"), [conditional(a="/x/*")], [{**conditional(a="/x/*"), "decide": "deny"}]),
        ({**conditional(a="/x/*"), "decide": "deny"}, [conditional(a="/x/*")], []),
    ]
    for rule, covered, others in cases:
        assert [never(rule, later) for later in covered] == [{2: FIRST}] * len(covered)
        assert [never(rule, later) for later in others] == [{}] * len(others)


def test_a_rule_never_applies_if_no_argument_can_fit_it() -> None:
    impossible = [
        {"in": [7, "x"], "at_most": 5},
        {"matches": "5", "at_most": 5},
        {"missing": True, "at_most": 5},
        {"in": [5], "not": {"equals": 5}},
    ]
    for wanted in impossible:
        message = "no value of /a/b can fit all that its when asks for"
        assert never(conditional(**{"/a/b": wanted})) == {1: message}
    possible = [
        {"in": [5, "x"], "at_most": 5},
        {"in": [5, 6], "not": {"equals": 5}},
        {"in": ["in/doubt"], "not": "/x/**"},
        {"missing": True},
        {"at_most": 5, "not": {"equals": 3}},
    ]
    for wanted in possible:
        assert never(conditional(a=wanted)) == {}


GLOBS = st.text(alphabet="ab*?[]!-", max_size=5)
TEXTS = ["".join(letters) for length in range(5) for letters in product("abc!-[]", repeat=length)]


@given(GLOBS, GLOBS)
@example("[*]", "*")
@example("?", "*")
def test_a_wider_glob_leaves_no_name_out(wide: str, glob: str) -> None:
    if glob_covers(wide, glob):
        assert [text for text in TEXTS if fnmatchcase(text, glob) and not fnmatchcase(text, wide)] == []


# ---------------------------------------------------------------------------------------------------------------------
# Order

ALLOW_NOTES = {"tools": ["files/*"], "when": {"path": "~/notes/**"}, "decide": "allow"}


def test_a_looser_rule_before_a_stricter_one_is_found() -> None:
    cases: list[tuple[list[Any], list[tuple[int, int]]]] = [
        # an exception, and then the rest
        ([ALLOW_NOTES, {"tools": ["files/*"], "decide": "deny"}], []),
        # a stricter rule for some of the same calls comes too late
        ([ALLOW_NOTES, {"tools": ["files/*"], "when": {"path": "~/notes/private/**"}, "decide": "deny"}], [(2, 1)]),
        ([ALLOW_NOTES, {"tools": ["*/delete_*"], "decide": "deny"}], [(2, 1)]),
        (
            [
                {**ALLOW_NOTES, "when": {"path": "in/**"}},
                {**ALLOW_NOTES, "when": {"path": "/srv/in/a"}, "decide": "deny"},
            ],
            [(2, 1)],
        ),
        (
            [
                {"tools": ["a/b"], "when": {"mode": {"in": ["r"]}}, "decide": "allow"},
                {"tools": ["a/b"], "when": {"mode": "w*"}, "decide": "deny"},
            ],
            [(2, 1)],
        ),
        ([{**ALLOW_NOTES, "decide": "ask"}, {"tools": ["*/delete_*"], "decide": "deny"}], [(2, 1)]),
        ([ALLOW_NOTES, {"tools": ["*/delete_*"], "decide": "ask"}], [(2, 1)]),
        # as strict
        ([ALLOW_NOTES, {"tools": ["*/delete_*"], "decide": "allow"}], []),
        # the other way round it is right
        ([{"tools": ["*/delete_*"], "decide": "deny"}, ALLOW_NOTES], []),
        # no call in common
        ([ALLOW_NOTES, {"tools": ["files/*"], "when": {"path": "~/other/**"}, "decide": "deny"}], []),
        ([ALLOW_NOTES, {"tools": ["files/*"], "when": {"path": {"not": "~/notes/**"}}, "decide": "deny"}], []),
        ([ALLOW_NOTES, {"tools": ["files/*"], "when": {"path": {"missing": True}}, "decide": "deny"}], []),
        ([ALLOW_NOTES, {"tools": ["files/*"], "when": {"path": ["~/other/**", "x"]}, "decide": "deny"}], [(2, 1)]),
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
    ]
    for rules, found in cases:
        warnings = looser_rules_first(a_policy(rules=rules), FakePaths())
        assert [(rule.number, reason) for rule, reason in warnings] == [
            (number, f"rule {first} ({rules[first - 1]['decide']}) stands before it and decides some of its calls")
            for number, first in found
        ]


def test_which_tools_a_claim_takes_away_is_known_from_their_definitions() -> None:
    first = {"tools": ["files/*"], "claims": "reads", "decide": "allow"}
    later = {"tools": ["files/read"], "when": {"path": "~/private/**"}, "decide": "deny"}
    cases: list[tuple[Any, Any, bool]] = [
        (later, {"files/read": frozenset({"reads"})}, True),
        (later, {"files/read": frozenset({"writes"}), "files/list": frozenset({"reads"})}, False),
        ({**later, "claims": "writes"}, {"files/read": frozenset({"reads"})}, False),
        ({"tools": ["files/*"], "decide": "deny"}, {"files/read": frozenset({"reads"})}, False),
    ]
    for rule, claims, is_found in cases:
        known = KnownTools(frozenset(claims), {}, claims)
        assert bool(list(looser_rules_first(a_policy(rules=[first, rule]), FakePaths(), known))) is is_found
        assert list(looser_rules_first(a_policy(rules=[first, rule]), FakePaths())) == []


STARRED = st.text(alphabet="ab*?[]", max_size=4)
NAMES = ["".join(letters) for length in range(9) for letters in product("ab", repeat=length)]


@given(STARRED, STARRED)
@example("ab", "[a]b")
@example("[a]b", "ab")
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


def test_unknown_names_are_found() -> None:
    cases: list[tuple[dict[str, Any], list[str]]] = [
        ({"tools": ["files/*", "*/delete_*", "*"]}, []),
        ({"tools": ["files/read_file", "function/anything", "skill/x"]}, []),
        ({"tools": ["files/read_fil"]}, ["no tool of files is known as read_fil (did you mean files/read_file?)"]),
        ({"tools": ["fiels/*"]}, ["no server is known as fiels (did you mean files?)"]),
        (
            {"tools": ["npx/*"]},
            [
                "npx is how a server is started; guards now take the name of the server itself (files, function, server-git)"
            ],
        ),
        ({"tools": ["files/*"], "when": {"path": "x", "/options/depth": "x", "/headers/X": "x"}}, []),
        ({"tools": ["files/*"], "when": {"pth": "x"}}, ["no argument is called pth (did you mean path?)"]),
        (
            {"tools": ["files/*"], "when": {"/optins/depth": "x"}},
            ["no argument is called optins (did you mean options?)"],
        ),
        (
            {"tools": ["files/*"], "when": {"/options/dept": "x"}},
            ["no argument is called /options/dept (did you mean depth?)"],
        ),
        ({"tools": ["server-git/*"], "when": {"pth": "x"}}, []),
        ({"tools": ["mcp/anything"]}, []),
    ]
    for rule, found in cases:
        policy = a_policy(rules=[{"decide": "ask", **rule}])
        assert [reason for _, reason in unknown_names(policy, KNOWN)] == found


def test_the_ways_to_start_a_server_are_no_names_of_servers() -> None:
    launchers = ["npx", "uvx", "uv", "bunx", "pnpm", "node", "python", "python3", "docker", "deno"]
    policy = a_policy(rules=[{"tools": [f"{name}/*"], "decide": "ask"} for name in launchers])
    found = [reason for _, reason in unknown_names(policy, KnownTools(frozenset(), {}))]
    assert found == [
        f"{name} is how a server is started; guards now take the name of the server itself (none is known yet)"
        for name in launchers
    ]


def test_findings_are_listed_from_the_worst_on() -> None:
    assert PolicyFindings(1, ("a",), ("b",), ("c",), ("d",)).lines == ("a", "b", "c", "d")
