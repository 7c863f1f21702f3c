"""What a policy file may hold, and the message for each mistake in it."""

from typing import Any

from openai_responses_mcp.adapters.policy_file import LinearPatterns
from openai_responses_mcp.gate.policy.reading import TOP_KEYS, policy_from
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
from tests.gate.policy.reading import a_policy


def problems(data: Any) -> list[str]:
    return [str(problem) for problem in policy_from(data, LinearPatterns())[1]]


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


def test_values_may_go_up_to_their_limits() -> None:
    when = {"a": "x" * 500, "b": {"matches": "x" * 500}}
    rule = {"tools": ["*" * 500], "when": when, "decide": "ask", "reason": "x" * 2000}
    policy = a_policy(budget={"calls": 1, "per": "day"}, wait=86400, relative_to={"a": "~"}, rules=[rule])
    assert (policy.budget, policy.wait_seconds, policy.relative_to) == (Budget(1, "day"), 86400, {"a": "~"})
    assert a_policy(wait=0.5).wait_seconds == 0.5


def test_conditions_hold_others() -> None:
    cases: list[tuple[Any, Any]] = [
        (["a*", "/b/*"], OneGlobOf((TextGlob("a*"), PathGlob("/b", ("*",))))),
        ({"any": "a*"}, Elements((TextGlob("a*"),), every=False)),
        ({"every": {"in": [1], "at_most": 2}}, Elements((OneOf((1,)), AtMost(2)), every=True)),
        ({"not": {"in": [1]}}, Not((OneOf((1,)),))),
        ({"missing": True}, Missing()),
    ]
    for wanted, condition in cases:
        rule = a_policy(rules=[{"tools": ["*"], "when": {"p": wanted}, "decide": "ask"}]).rules[0]
        assert rule.when[0].conditions == (condition,)


def test_a_path_glob_is_a_folder_and_the_names_below_it() -> None:
    cases: list[tuple[str, str, tuple[str, ...]]] = [
        ("~", "~", ()),
        ("/a//./b/*", "/a/b", ("*",)),
        ("/*", "/", ("*",)),
        ("*/a", "", ("*", "a")),
        ("/a/[b]/c", "/a", ("[b]", "c")),
    ]
    for glob, folder, rest in cases:
        rule = a_policy(rules=[{"tools": ["*"], "when": {"p": glob}, "decide": "ask"}]).rules[0]
        assert rule.when[0].conditions == (PathGlob(folder, rest),)


def test_a_file_is_a_mapping_with_a_version() -> None:
    assert problems(None) == ["the file is empty; it needs at least version: 1"]
    assert f"the file is a mapping with {', '.join(TOP_KEYS)}" in problems([])
    assert problems({"rules": []}) == ["version is missing; this is version: 1"]


WHOLE_PATH = "relative_to.files is a whole path, such as ~/notes or /srv/data"
VARIABLE = "notify.webhook_env is the name of the variable that holds the address"
TOOLS = 'is a list of names such as ["files/read_*"], and not empty'
AT_THE_TOP: list[tuple[str, list[Any], str]] = [
    ("version", ["1", True, 2], "version is 1, the only version there is"),
    ("profil", ["fast"], "profil is an unknown key (did you mean profile?)"),
    ("xyz", [1], "xyz is an unknown key"),
    ("profile", ["balancd"], "profile is strict, balanced or fast (did you mean balanced?)"),
    ("audit", [True], "audit is required or best_effort"),
    ("ask", ["phone"], "ask is auto, client or desk"),
    ("rules", [{}, None], "rules is a list"),
    ("rules", [["x"]], "rule 1 is a mapping with tools, claims, when, decide, risk, reason"),
    ("scopes", ["mcp:*"], 'scopes is a list of scopes such as ["mcp:files/*"]'),
    ("scopes", [["function:*", "a/*"]], "scopes[1] is not a scope: a scope is kind:name with kind mcp, function or skill, not 'a/*'"),
    ("budget", [5], "budget is a mapping with calls, per"),
    ("budget", [{"calls": 5}], "budget needs per"),
    ("budget", [{}], "budget needs calls and per"),
    ("budget", [{"calls": 0, "per": "day"}, {"calls": True, "per": "day"}], "budget.calls is a whole number from 1 up"),
    ("budget", [{"calls": 5, "per": "week"}], "budget.per is session, hour or day"),
    ("wait", [0, True, float("nan"), 86401], "wait is a number of seconds above 0, at most 86400"),
    ("relative_to", ["~/notes"], "relative_to names servers and the folders they start from, such as {files: ~/notes}"),
    ("relative_to", [{"files": "notes"}, {"files": "~alice"}, {"files": 5}], WHOLE_PATH),
    ("hide_denied", ["yes"], "hide_denied is true or false"),
    ("results", ["hide"], "results is a mapping with secrets, max_bytes"),
    ("results", [{"secrets": "show"}], "results.secrets is hide or pass"),
    ("results", [{"max_bytes": 0}, {"max_bytes": True}], "results.max_bytes is a whole number from 1 up"),
    ("notify", [{}, {"webhook_env": "https://hooks.example.com/x"}], VARIABLE),
    ("notify", ["X"], "notify is a mapping with webhook_env"),
    ("unstable", [{}], "unstable is a list of mappings with tools, parts"),
    ("unstable", [[5]], "unstable[0] is a mapping with tools, parts"),
    ("unstable", [[{"tools": ["a/b"]}], [{"tools": ["a/b"], "parts": []}]], "unstable[0].parts is a list of JSON pointers, and not empty"),
    ("unstable", [[{"parts": ["/inputSchema/properties/a/default"]}]], f"unstable[0].tools {TOOLS}"),
]  # fmt: skip


def test_a_mistake_at_the_top_is_reported_once_with_its_key() -> None:
    for key, values, message in AT_THE_TOP:
        for value in values:
            assert problems({"version": 1, key: value}) == [message]


def test_only_values_of_a_schema_may_change_unseen() -> None:
    def found(part: Any) -> list[str]:
        return problems({"version": 1, "unstable": [{"tools": ["a/b"], "parts": [part]}]})

    below = "/inputSchema/properties"
    for fine in ("a/default", "a/enum", "a/examples", "a/properties/b/items/default", "a/anyOf/1/enum"):
        assert found(f"{below}/{fine}") == []
    message = "unstable[0].parts[0] is not a default, examples or enum below /inputSchema/properties; only those may change unseen"
    for wrong in ("default", "a/properties/default", "a/description", "a/default/x", "a"):
        assert found(f"{below}/{wrong}") == [message]
    for part in ("/inputSchema/default", "/description", "inputSchema/properties/a/default", 5):
        assert found(part) == [message]


def test_a_definition_is_compared_without_its_unstable_parts() -> None:
    def entry(fields: dict[str, object], first: dict[str, object]) -> dict[str, Any]:
        listed = {"anyOf": [{"type": "string", **first}, True, {}], "items": [{}]}
        return {"name": "search", "inputSchema": {"properties": {"fields": fields, "o": listed}}}

    parts = [
        "/inputSchema/properties/fields/default",
        "/inputSchema/properties/o/anyOf/0/enum",
        "/inputSchema/properties/z/enum",
        *(f"/inputSchema/properties/o/anyOf/{place}/enum" for place in (1, 3)),
        "/inputSchema/properties/fields/anyOf/0/enum",
        "/inputSchema/properties/o/items/items/enum",
    ]
    policy = a_policy(unstable=[{"tools": ["jira/s*"], "parts": parts}])
    one = entry({"default": "a,b", "type": "string"}, {"enum": [1]})
    assert policy.stable_entry("jira/search", one) == entry({"type": "string"}, {})
    assert policy.stable_entry("jira/other", one) == one
    assert one == entry({"default": "a,b", "type": "string"}, {"enum": [1]})


GLOB = "is a glob, a list of globs, or a mapping such as {equals: 5}"
IN_A_RULE: list[tuple[list[Any], str]] = [
    ([{"tools": "left out"}, {"tools": []}, {"tools": "a/b"}], f"tools {TOOLS}"),
    ([{"tools": ["a/b", 5]}, {"tools": ["a/b", "a" * 501]}, {"tools": ["a/b", ""]}], "tools[1] is a text of 1 to 500 characters"),
    (
        [{"tools": ["pay"]}],
        "tools[0] fits no tool: tools are called server/tool, function/name or skill/name; write */pay for the tool of any server",
    ),
    ([{"tools": ["files/"]}], "tools[0] fits no tool: tools are called server/tool, function/name or skill/name"),
    ([{"decide": "left out"}, {"risk": 3}], "needs decide or risk, one of the two"),
    ([{"decide": "alow"}], "decide is allow, ask or deny (did you mean allow?)"),
    ([{"decide": "left out", "risk": risk} for risk in (0, 6, True)], "risk is a whole number from 1 to 5"),
    ([{"reason": 5}, {"reason": "x" * 2001}], "reason is a text of at most 2000 characters"),
    ([{"when": []}, {"when": {}}, {"when": None}], "when names arguments and what they must be, such as {path: ~/notes/**}"),
    ([{"when": {"": "x"}}], "when. is the name of an argument or a JSON pointer such as /options/depth"),
    ([{"when": {"/a~b": "x"}}], "when./a~b is not a JSON pointer: ~ is written ~0 there, and / inside a name ~1"),
]  # fmt: skip
CONDITIONS: list[tuple[list[Any], str]] = [
    ([True, None, []], f" {GLOB}"),
    ([["x", 5]], f"[1] {GLOB}"),
    ([{"not": 5}], f".not {GLOB}"),
    (["x" * 501], " is longer than 500 characters"),
    ([{}], " needs one of equals, in, matches, at_most, any, every, not, missing"),
    ([{"equal": 5}], ".equal is an unknown key (did you mean equals?)"),
    ([{"any": {"equl": 5}}], ".any.equl is an unknown key (did you mean equals?)"),
    ([{"every": {"missing": True}}], ".every is about elements of a list, and none of those is missing"),
    ([{"missing": False}], ".missing is true; for an argument that has to be there, write {not: {missing: true}}"),
    ([{"in": "x"}, {"in": []}], ".in is a list of values, and not empty"),
    ([{"matches": 5}, {"matches": "x" * 501}], ".matches is a pattern of at most 500 characters"),
    ([{"at_most": "5"}, {"at_most": True}, {"at_most": float("nan")}], ".at_most is a number"),
    (["https://example.com/*"], " is an address and would be read as a path; write {matches: …} for it"),
    (["~alice/x"], " begins with ~, which stands for your home folder and needs a / after it"),
    (["/a/*/../b"], " has .. after a wildcard; write where that leads to"),
    (["/a/b**"], " has ** beside other characters; ** stands alone between slashes"),
]
IN_A_RULE += [([{"when": {"a": one}} for one in wanted], f"when.a{message}") for wanted, message in CONDITIONS]


def test_a_mistake_in_a_rule_is_reported_once_with_its_key() -> None:
    for rules, message in IN_A_RULE:
        for said in rules:
            assert in_a_rule(**said) == [f"rule 1{' ' if message.startswith('needs') else ': '}{message}"]


def test_a_pattern_that_cannot_be_used_is_reported() -> None:
    (message,) = in_a_rule(when={"a": {"matches": "("}})
    assert message.startswith("rule 1: when.a.matches is not a pattern that can be used: ")


def test_every_mistake_is_reported_at_once() -> None:
    rules = [{"tools": ["x"], "decide": "no"}, {"tools": ["a/b"]}, 7]
    found = policy_from({"version": 3, "what": 1, "rules": rules}, LinearPatterns())[1]
    assert [problem.path for problem in found] == [
        ("what",),
        ("version",),
        ("rules", 0, "tools", 0),
        ("rules", 0, "decide"),
        ("rules", 1),
        ("rules", 2),
    ]
