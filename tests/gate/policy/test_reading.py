"""What a policy file may hold, and how each mistake in it is told."""

from typing import Any

import pytest

from openai_responses_mcp.gate.policy.reading import TOP_KEYS, Problem, policy_from
from openai_responses_mcp.gate.policy.rules import (
    AtMost,
    Budget,
    Elements,
    Matches,
    Missing,
    Not,
    OneGlobOf,
    OneOf,
    PathGlob,
    Policy,
    ResultLimits,
    Rule,
    TextGlob,
    Unstable,
    When,
)
from tests.agents.fake_policy import FakePatterns
from tests.gate.policy.reading import a_policy


def problems(data: Any) -> list[str]:
    return [str(problem) for problem in policy_from(data, FakePatterns())[1]]


def in_a_rule(**said: Any) -> list[str]:
    rule = {"tools": ["a/b"], "decide": "allow", **said}
    return problems({"version": 1, "rules": [{name: value for name, value in rule.items() if value != "left out"}]})


def test_the_version_alone_is_a_policy() -> None:
    assert a_policy() == Policy()


def test_everything_can_be_said() -> None:
    policy = a_policy(
        profile="strict",
        scopes=["mcp:files/*"],
        audit="best_effort",
        ask="desk",
        budget={"calls": 20, "per": "hour"},
        wait=90,
        relative_to={"files": "~/notes", "other": "/srv"},
        hide_denied=True,
        results={"secrets": "hide", "max_bytes": 5000},
        notify={"webhook_env": "SLACK_HOOK"},
        unstable=[{"tools": ["jira/*"], "parts": ["/inputSchema/properties/fields/default"]}],
        rules=[
            {"tools": ["files/read_*"], "claims": "reads", "decide": "allow"},
            {"tools": ["files/write", "*/put"], "when": {"path": "~/notes/**", "/o/n": "a*"}, "risk": 4},
            {
                "tools": ["a/b"],
                "when": {"n": {"equals": 1, "in": [1, "x"], "matches": "a+", "at_most": 2.5}},
                "decide": "deny",
                "reason": "not here",
            },
        ],
    )
    conditions = (OneOf((1,)), OneOf((1, "x")), Matches("a+", str.isalpha), AtMost(2.5))
    assert policy == Policy(
        profile="strict",
        scopes=("mcp:files/*",),
        audit="best_effort",
        ask="desk",
        budget=Budget(20, "hour"),
        wait_seconds=90.0,
        relative_to={"files": "~/notes", "other": "/srv"},
        hide_denied=True,
        results=ResultLimits("hide", 5000),
        webhook_env="SLACK_HOOK",
        unstable=(Unstable(("jira/*",), (("inputSchema", "properties", "fields", "default"),)),),
        rules=(
            Rule(1, ("files/read_*",), claims="reads", decide="allow"),
            Rule(
                2,
                ("files/write", "*/put"),
                (When(("path",), (PathGlob("~/notes", ("**",)),)), When(("o", "n"), (TextGlob("a*"),))),
                risk=4,
            ),
            Rule(3, ("a/b",), (When(("n",), conditions),), decide="deny", reason="not here"),
        ),
    )


@pytest.mark.parametrize(
    ("wanted", "condition"),
    [
        (["a*", "/b/*"], OneGlobOf((TextGlob("a*"), PathGlob("/b", ("*",))))),
        ({"any": "a*"}, Elements((TextGlob("a*"),), every=False)),
        ({"every": {"in": [1], "at_most": 2}}, Elements((OneOf((1,)), AtMost(2)), every=True)),
        ({"not": {"in": [1]}}, Not((OneOf((1,)),))),
        ({"not": ["a", "b"]}, Not((OneGlobOf((TextGlob("a"), TextGlob("b"))),))),
        ({"missing": True}, Missing()),
        ({"any": {"not": {"any": "x"}}}, Elements((Not((Elements((TextGlob("x"),), every=False),)),), every=False)),
    ],
)
def test_conditions_hold_others(wanted: Any, condition: Any) -> None:
    rule = a_policy(rules=[{"tools": ["*"], "when": {"p": wanted}, "decide": "ask"}]).rules[0]
    assert rule.when[0].conditions == (condition,)


@pytest.mark.parametrize(
    ("glob", "folder", "rest"),
    [
        ("~", "~", ()),
        ("~/a/b", "~/a/b", ()),
        ("/a//./b/*", "/a/b", ("*",)),
        ("/*", "/", ("*",)),
        ("./a/", "a", ()),
        ("*/a", "", ("*", "a")),
        ("../a/?b/c", "../a", ("?b", "c")),
        ("/a/[b]/c", "/a", ("[b]", "c")),
    ],
)
def test_a_path_glob_is_a_folder_and_the_names_below_it(glob: str, folder: str, rest: tuple[str, ...]) -> None:
    rule = a_policy(rules=[{"tools": ["*"], "when": {"p": glob}, "decide": "ask"}]).rules[0]
    assert rule.when[0].conditions == (PathGlob(folder, rest),)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        (None, "the file is empty; it needs at least version: 1"),
        ([], f"the file is a mapping with {', '.join(TOP_KEYS)}"),
        ({"rules": []}, "version is missing; this is version: 1"),
        ({"version": "1"}, "version is 1, the only version there is"),
        ({"version": True}, "version is 1, the only version there is"),
        ({"version": 2}, "version is 1, the only version there is"),
        ({"version": 1, "profil": "fast"}, "profil is an unknown key (did you mean profile?)"),
        ({"version": 1, "Rules": []}, "Rules is an unknown key (did you mean rules?)"),
        ({"version": 1, "xyz": 1}, "xyz is an unknown key"),
        ({"version": 1, "profile": "balancd"}, "profile is strict, balanced or fast (did you mean balanced?)"),
        ({"version": 1, "profile": None}, "profile is strict, balanced or fast"),
        ({"version": 1, "audit": True}, "audit is required or best_effort"),
        ({"version": 1, "ask": "phone"}, "ask is auto, client or desk"),
        ({"version": 1, "rules": {}}, "rules is a list"),
        ({"version": 1, "rules": None}, "rules is a list"),
        ({"version": 1, "rules": ["x"]}, "rule 1 is a mapping with tools, claims, when, decide, risk, reason"),
        ({"version": 1, "scopes": "mcp:*"}, 'scopes is a list of scopes such as ["mcp:files/*"]'),
        (
            {"version": 1, "scopes": ["function:*", "files/*"]},
            "scopes[1] is not a scope: a scope is kind:name with kind mcp, function or skill, not 'files/*'",
        ),
        ({"version": 1, "budget": 5}, "budget is a mapping with calls, per"),
        ({"version": 1, "budget": {"calls": 5}}, "budget needs per"),
        ({"version": 1, "budget": {"calls": 0, "per": "day"}}, "budget.calls is a whole number from 1 up"),
        ({"version": 1, "budget": {"calls": True, "per": "day"}}, "budget.calls is a whole number from 1 up"),
        ({"version": 1, "budget": {"calls": 5, "per": "week"}}, "budget.per is session, hour or day"),
        ({"version": 1, "wait": 0}, "wait is a number of seconds above 0, at most 86400"),
        ({"version": 1, "wait": True}, "wait is a number of seconds above 0, at most 86400"),
        ({"version": 1, "wait": float("inf")}, "wait is a number of seconds above 0, at most 86400"),
        ({"version": 1, "wait": float("nan")}, "wait is a number of seconds above 0, at most 86400"),
        (
            {"version": 1, "relative_to": "~/notes"},
            "relative_to names servers and the folders they start from, such as {files: ~/notes}",
        ),
        (
            {"version": 1, "relative_to": {"files": "notes"}},
            "relative_to.files is a whole path, such as ~/notes or /srv/data",
        ),
        (
            {"version": 1, "relative_to": {"files": "~alice"}},
            "relative_to.files is a whole path, such as ~/notes or /srv/data",
        ),
        ({"version": 1, "hide_denied": "yes"}, "hide_denied is true or false"),
        ({"version": 1, "results": "hide"}, "results is a mapping with secrets, max_bytes"),
        ({"version": 1, "results": {"secrets": "show"}}, "results.secrets is hide or pass"),
        ({"version": 1, "results": {"max_bytes": 0}}, "results.max_bytes is a whole number from 1 up"),
        ({"version": 1, "results": {"max_bytes": True}}, "results.max_bytes is a whole number from 1 up"),
        ({"version": 1, "results": {"secret": "hide"}}, "results.secret is an unknown key (did you mean secrets?)"),
        ({"version": 1, "notify": {}}, "notify.webhook_env is the name of the variable that holds the address"),
        (
            {"version": 1, "notify": {"webhook_env": "https://hooks.example.com/x"}},
            "notify.webhook_env is the name of the variable that holds the address",
        ),
        ({"version": 1, "notify": "X"}, "notify is a mapping with webhook_env"),
        ({"version": 1, "unstable": {}}, "unstable is a list of mappings with tools, parts"),
        (
            {"version": 1, "unstable": [{"tools": ["a/b"]}]},
            "unstable[0].parts is a list of JSON pointers, and not empty",
        ),
        (
            {"version": 1, "unstable": [{"parts": ["/inputSchema/properties/a/default"]}]},
            'unstable[0].tools is a list of names such as ["files/read_*"], and not empty',
        ),
    ],
)
def test_a_mistake_at_the_top_is_told_with_its_key(data: Any, told: str) -> None:
    assert told in problems(data)


@pytest.mark.parametrize(
    ("part", "may_change"),
    [
        ("/inputSchema/properties/a/default", True),
        ("/inputSchema/properties/a/enum", True),
        ("/inputSchema/properties/a/examples", True),
        ("/inputSchema/properties/a/properties/b/items/default", True),
        ("/inputSchema/properties/a/anyOf/1/enum", True),
        ("/inputSchema/properties/default", False),
        ("/inputSchema/properties/a/properties/default", False),
        ("/inputSchema/properties/a/description", False),
        ("/inputSchema/properties/a/default/x", False),
        ("/inputSchema/properties/a", False),
        ("/inputSchema/properties", False),
        ("/inputSchema/default", False),
        ("/description", False),
        ("inputSchema/properties/a/default", False),
        (5, False),
    ],
)
def test_only_values_of_a_schema_may_change_unseen(part: Any, may_change: bool) -> None:
    found = problems({"version": 1, "unstable": [{"tools": ["a/b"], "parts": [part]}]})
    said = "unstable[0].parts[0] is not a default, examples or enum below /inputSchema/properties; "
    assert found == ([] if may_change else [f"{said}only those may change unseen"])


def test_a_definition_is_compared_without_its_unstable_parts() -> None:
    def entry(default: object, inner: object, description: str = "x") -> dict[str, Any]:
        listed = {"anyOf": [{"type": "string"}, {"enum": inner}]}
        return {
            "name": "search",
            "description": description,
            "inputSchema": {"properties": {"fields": {"default": default}, "o": listed}},
        }

    parts = [
        "/inputSchema/properties/fields/default",
        "/inputSchema/properties/o/anyOf/1/enum",
        "/inputSchema/properties/z/enum",
    ]
    policy = a_policy(unstable=[{"tools": ["jira/s*"], "parts": parts}])
    one, other = entry("a,b", [1]), entry("b,a", [2, 1])
    assert policy.stable_entry("jira/search", one) == policy.stable_entry("jira/search", other)
    assert policy.stable_entry("jira/search", one) != policy.stable_entry("jira/search", entry("a,b", [1], "y"))
    assert policy.stable_entry("jira/other", one) == one
    assert one == entry("a,b", [1])


def test_a_budget_that_is_no_mapping_is_told_once() -> None:
    assert problems({"version": 1, "budget": 5}) == ["budget is a mapping with calls, per"]


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ({"tools": "left out"}, 'rule 1: tools is a list of names such as ["files/read_*"], and not empty'),
        ({"tools": []}, 'rule 1: tools is a list of names such as ["files/read_*"], and not empty'),
        ({"tools": "a/b"}, 'rule 1: tools is a list of names such as ["files/read_*"], and not empty'),
        ({"tools": ["a/b", 5]}, "rule 1: tools[1] is a text of 1 to 500 characters"),
        ({"tools": ["a" * 501]}, "rule 1: tools[0] is a text of 1 to 500 characters"),
        (
            {"tools": ["delete_file"]},
            "rule 1: tools[0] fits no tool: tools are called server/tool, function/name or skill/name; "
            "write */delete_file for the tool of any server",
        ),
        (
            {"tools": ["files/"]},
            "rule 1: tools[0] fits no tool: tools are called server/tool, function/name or skill/name",
        ),
        ({"decide": "left out"}, "rule 1 needs decide or risk, one of the two"),
        ({"risk": 3}, "rule 1 needs decide or risk, one of the two"),
        ({"decide": "alow"}, "rule 1: decide is allow, ask or deny (did you mean allow?)"),
        ({"decide": "left out", "risk": 6}, "rule 1: risk is a whole number from 1 to 5"),
        ({"decide": "left out", "risk": True}, "rule 1: risk is a whole number from 1 to 5"),
        ({"reason": 5}, "rule 1: reason is a text of at most 2000 characters"),
        ({"reason": "x" * 2001}, "rule 1: reason is a text of at most 2000 characters"),
        ({"decde": "deny"}, "rule 1: decde is an unknown key (did you mean decide?)"),
        ({"when": []}, "rule 1: when names arguments and what they must be, such as {path: ~/notes/**}"),
        ({"when": {}}, "rule 1: when names arguments and what they must be, such as {path: ~/notes/**}"),
        ({"when": None}, "rule 1: when names arguments and what they must be, such as {path: ~/notes/**}"),
        ({"when": {"": "x"}}, "rule 1: when. is the name of an argument or a JSON pointer such as /options/depth"),
        (
            {"when": {"/a~b": "x"}},
            "rule 1: when./a~b is not a JSON pointer: ~ is written ~0 there, and / inside a name ~1",
        ),
        ({"when": {"a": True}}, "rule 1: when.a is a glob, a list of globs, or a mapping such as {equals: 5}"),
        ({"when": {"a": None}}, "rule 1: when.a is a glob, a list of globs, or a mapping such as {equals: 5}"),
        ({"when": {"a": "x" * 501}}, "rule 1: when.a is longer than 500 characters"),
        ({"when": {"a": {}}}, "rule 1: when.a needs one of equals, in, matches, at_most, any, every, not, missing"),
        ({"when": {"a": {"equal": 5}}}, "rule 1: when.a.equal is an unknown key (did you mean equals?)"),
        ({"when": {"a": []}}, "rule 1: when.a is a glob, a list of globs, or a mapping such as {equals: 5}"),
        ({"when": {"a": ["x", 5]}}, "rule 1: when.a[1] is a glob, a list of globs, or a mapping such as {equals: 5}"),
        ({"when": {"a": {"any": {"equl": 5}}}}, "rule 1: when.a.any.equl is an unknown key (did you mean equals?)"),
        (
            {"when": {"a": {"not": 5}}},
            "rule 1: when.a.not is a glob, a list of globs, or a mapping such as {equals: 5}",
        ),
        (
            {"when": {"a": {"every": {"missing": True}}}},
            "rule 1: when.a.every is about elements of a list, and none of those is missing",
        ),
        (
            {"when": {"a": {"missing": False}}},
            "rule 1: when.a.missing is true; for an argument that has to be there, write {not: {missing: true}}",
        ),
        ({"claims": "read"}, "rule 1: claims is reads, writes or destroys (did you mean reads?)"),
        ({"when": {"a": {"in": "x"}}}, "rule 1: when.a.in is a list of values, and not empty"),
        ({"when": {"a": {"in": []}}}, "rule 1: when.a.in is a list of values, and not empty"),
        ({"when": {"a": {"matches": 5}}}, "rule 1: when.a.matches is a pattern of at most 500 characters"),
        ({"when": {"a": {"matches": "x" * 501}}}, "rule 1: when.a.matches is a pattern of at most 500 characters"),
        ({"when": {"a": {"at_most": "5"}}}, "rule 1: when.a.at_most is a number"),
        ({"when": {"a": {"at_most": True}}}, "rule 1: when.a.at_most is a number"),
        ({"when": {"a": {"at_most": float("nan")}}}, "rule 1: when.a.at_most is a number"),
        (
            {"when": {"a": "https://example.com/*"}},
            "rule 1: when.a is an address and would be read as a path; write {matches: …} for it",
        ),
        (
            {"when": {"a": "~alice/x"}},
            "rule 1: when.a begins with ~, which stands for your home folder and needs a / after it",
        ),
        ({"when": {"a": "/a/*/../b"}}, "rule 1: when.a has .. after a wildcard; write where that leads to"),
        (
            {"when": {"a": "/a/b**"}},
            "rule 1: when.a has ** beside other characters; ** stands alone between slashes",
        ),
    ],
)
def test_a_mistake_in_a_rule_is_told_with_its_key(said: Any, told: str) -> None:
    assert in_a_rule(**said) == [told]


def test_a_pattern_that_is_none_is_told() -> None:
    (told,) = in_a_rule(when={"a": {"matches": "("}})
    assert told.startswith("rule 1: when.a.matches is not a pattern that can be used: ")


def test_every_mistake_is_told_at_once() -> None:
    rules = [{"tools": ["x"], "decide": "no"}, {"tools": ["a/b"]}, 7]
    found = policy_from({"version": 3, "what": 1, "rules": rules}, FakePatterns())[1]
    assert [problem.path for problem in found] == [
        ("what",),
        ("version",),
        ("rules", 0, "tools", 0),
        ("rules", 0, "decide"),
        ("rules", 1),
        ("rules", 2),
    ]


def test_a_problem_shows_where_it_is() -> None:
    assert str(Problem(("rules", 1, "when", "a", "in", 2), "is odd")) == "rule 2: when.a.in[2] is odd"
