"""Which rules fit which calls, row by row, and that no path gets around a glob."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.gate.calls import ToolDescription
from openai_responses_mcp.gate.policy.fitting import (
    Fit,
    RuledCall,
    claims_of,
    fit_of,
    place_of,
    policy_name,
    same_json,
    server_of,
    steps_of,
)
from tests.agents.fake_policy import FakePaths
from tests.gate.policy.reading import a_rule


def fit(when: Any, args: Any, paths: FakePaths | None = None, relative_to: str | None = None) -> Fit:
    call = RuledCall(("files/write",), args, base=relative_to or "", relative_to=relative_to)
    return fit_of(a_rule(when=when), call, paths or FakePaths())


# ---------------------------------------------------------------------------------------------------------------------
# Names


def test_every_tool_has_a_name_that_no_other_tool_has() -> None:
    cases: list[tuple[str, str, str]] = [
        ("mcp", "files/read", "files/read"),
        ("skill", "skill_writer", "skill/skill_writer"),
        ("mcp", "function/pay", "mcp/function/pay"),
    ]
    for kind, name, called in cases:
        assert policy_name(kind, name) == called


@pytest.mark.parametrize(
    ("globs", "tools", "others"),
    [
        (["files/read_*"], ["files/read_file"], ["files/write_file", "other/read_file"]),
        (["*/delete_*"], ["files/delete_all", "files/folder/delete_all"], []),
        (["files/rea?", "files/[rw]ead"], ["files/read"], ["files/READ", "files/read\n"]),
    ],
)
def test_a_rule_is_for_the_tools_that_its_globs_fit(globs: list[str], tools: list[str], others: list[str]) -> None:
    fitting = [one for one in tools + others if fit_of(a_rule(globs), RuledCall((one,), {}), FakePaths()) is Fit.YES]
    assert fitting == tools


@pytest.mark.parametrize(
    ("tool", "server"),
    [("files/read", "files"), ("files/a/b", "files"), ("function/pay", "mcp/function"), ("mcp/x", "mcp/mcp")],
)
def test_a_server_is_called_what_stands_before_its_tools(tool: str, server: str) -> None:
    assert server_of(ToolDescription(tool, "mcp")) == server
    assert policy_name("mcp", tool).startswith(f"{server}/")
    assert server_of(ToolDescription(tool, "function")) == "function"


# ---------------------------------------------------------------------------------------------------------------------
# Claims


@pytest.mark.parametrize(
    ("annotations", "claimed"),
    [
        ({}, {"writes", "destroys"}),
        ({"readOnlyHint": True, "destructiveHint": True}, {"reads"}),
        ({"readOnlyHint": 1, "destructiveHint": None}, {"writes", "destroys"}),
        ({"readOnlyHint": False, "destructiveHint": False}, {"writes"}),
    ],
)
def test_a_tool_claims_what_its_annotations_say(annotations: Any, claimed: set[str]) -> None:
    assert claims_of(annotations) == claimed
    call = RuledCall(("files/read",), {}, claims=claims_of(annotations))
    fitting = {
        one for one in ("reads", "writes", "destroys") if fit_of(a_rule(claims=one), call, FakePaths()) is Fit.YES
    }
    assert fitting == claimed


# ---------------------------------------------------------------------------------------------------------------------
# Values: a condition on `n`, values that fit it, and values that do not

NONE = object()  # no argument of this name

VALUES: list[tuple[Any, list[Any], list[Any]]] = [
    ("a*", ["abc", "a/b\nc"], ["bca", 5, None, ["a"], NONE]),
    ("a", ["a"], ["a\n", "A"]),
    ({"equals": 1}, [1, 1.0], [True, "1", NONE]),
    ({"equals": True}, [True], [1, NONE]),
    ({"equals": [1, {"a": True}]}, [[1, {"a": True}]], [[1, {"a": 1}], [1], [1, {"a": True}, 2], [1, {"a": True, "b": 2}]]),
    ({"equals": {"a": 1}}, [{"a": 1}], [{"a": 1, "b": 2}, {"a": 2}, [1]]),
    ({"in": ["a", 2]}, ["a", 2, 2.0], ["2", True]),
    ({"matches": "[a-z]+|0"}, ["abc", "0"], ["abc!", "abc\n", "a0", 0]),
    ({"at_most": 5}, [5, -1, 4.5], [5.5, True, "3", float("nan"), 10**400]),
    ({"at_most": 5, "in": [1, 9]}, [1], [9]),
    # several globs: one of them
    (["a*", "/x/**"], ["ab", "/x/y"], ["/y", ["a"], NONE]),
    # any, every
    ({"any": ["a*", "c*"]}, [["b", "ab"], ["b", 5, "c"]], [["b"], [], "ab", {"a": "ab"}, NONE]),
    ({"any": {"at_most": 5}}, [[9, 5]], [["5"]]),
    ({"every": "a*"}, [["ab", "ac"]], [["ab", "b"], ["ab", 5], [], "ab", NONE]),
    ({"every": {"in": [1, 2], "at_most": 1}}, [[1, 1]], [[1, 2]]),
    # not, of values of the same type
    ({"not": ["a*", "b*"]}, ["c"], ["ab", "b", 5, NONE]),
    ({"not": {"in": ["append", "delete"]}}, ["read"], ["delete", 5, ["read"], {"read": 1}, None, NONE]),
    ({"not": {"not": "a*"}}, ["a"], ["b", 5]),
    # missing
    ({"missing": True}, [NONE], [None, 1]),
    ({"not": {"missing": True}}, [None, 1], [NONE]),
]  # fmt: skip


def test_a_condition_fits_what_it_says() -> None:
    for wanted, fitting, others in VALUES:
        fits = [fit({"n": wanted}, {} if value is NONE else {"n": value}) for value in fitting + others]
        assert fits[: len(fitting)] == [Fit.YES] * len(fitting)
        assert set(fits[len(fitting) :]) <= {Fit.NO, Fit.OTHER_TYPE}


def test_a_pointer_leads_to_one_argument() -> None:
    cases: list[tuple[str, list[Any], list[Any]]] = [
        ("/options/depth", [{"options": {"depth": 2}}], [{"options": {}}, {"options": 2}, {"/options/depth": 2}]),
        ("/items/1", [{"items": [1, 2]}, {"items": {"1": 2}}], [{"items": [2]}, {"items": "12"}]),
        ("/a~1b/c~0d", [{"a/b": {"c~d": 2}}], []),
        ("a/b", [{"a/b": 2}], [{"a": {"b": 2}}]),
        ("/", [{"": 2}], []),
        *((f"/items/{place}", [], [{"items": [2, 2]}]) for place in ("01", "-", "-1", "١", "2")),
    ]
    for pointer, fitting, others in cases:
        found = [args for args in fitting + others if fit({pointer: {"equals": 2}}, args) is Fit.YES]
        assert found == fitting


def test_a_pointer_is_written_as_it_is_read() -> None:
    steps = ("a/b", "c~d", "")
    assert place_of(steps) == "/a~1b/c~0d/"
    assert steps_of(place_of(steps)) == steps


def test_everything_in_a_when_has_to_hold() -> None:
    when = {"a": "x", "b": {"missing": True}}
    assert fit(when, {"a": "x"}) is Fit.YES
    assert Fit.YES not in (fit(when, {"a": "x", "b": 1}), fit(when, {"a": "y"}), fit(when, {}))


# ---------------------------------------------------------------------------------------------------------------------
# Paths

HOME = "/path/to"


def test_a_path_is_compared_where_it_leads() -> None:
    cases: list[tuple[str, list[str], list[str]]] = [
        (
            "~/notes/**",
            ["~/notes/a.md", "/path/to/notes/a/b/c.md", "~/notes", "~/link/a"],
            ["~/notesx/a", "/path/to/notes/../.ssh/id", "~/notes/out/passwd", "~/notes/up/id"],
        ),
        ("~/notes/*", ["~/notes/a.md"], ["~/notes/a/b.md", "~/notes"]),
        ("~/notes/**/*.md", ["~/notes/a/b/c.md", "~/notes/a/c.md", "~/notes/c.md"], ["~/notes/c.txt"]),
        ("~/*/a", ["~/.ssh/a"], ["~/a"]),
        # relative globs begin in the guard's own folder
        ("../shared/**", ["/shared/a"], []),
        ("data/*", ["/srv/data/a"], ["/data/a"]),
    ]
    for glob, fitting, others in cases:
        found = [fit({"path": glob}, {"path": value}, FakePaths(LINKS)) for value in fitting + others]
        assert found == [Fit.YES] * len(fitting) + [Fit.NO] * len(others)


def test_relative_paths_begin_where_the_file_says() -> None:
    cases: list[tuple[str, list[str], list[str]]] = [
        ("data/*", ["data/a", "../server/data/a", "/opt/server/data/a"], ["data/../../etc/a"]),
        ("/opt/server/data/*", ["data/a"], []),
        ("./*", ["a"], [""]),
    ]
    for glob, fitting, others in cases:
        found = [fit({"path": glob}, {"path": value}, relative_to="/opt/server") for value in fitting + others]
        assert found == [Fit.YES] * len(fitting) + [Fit.NO] * len(others)


LINKS = {
    f"{HOME}/notes/out": "/etc",
    f"{HOME}/notes/up": "../.ssh",
    f"{HOME}/back": f"{HOME}/notes/deep",
    f"{HOME}/diaryX": "/data/diary",
    f"{HOME}/ring": f"{HOME}/ring",
    f"{HOME}/notes/self": "/proc/self/cwd",
    f"{HOME}/link": f"{HOME}/notes",
}


def test_a_relative_glob_begins_in_our_own_folder_where_the_call_names_none() -> None:
    call = RuledCall(("files/write",), {"path": "/srv/data/a"})
    assert fit_of(a_rule(when={"path": "data/*"}), call, FakePaths()) is Fit.YES
    assert fit_of(a_rule("mail/*", when={"path": "data/*"}), call, FakePaths()) is Fit.NO


def test_a_path_that_servers_may_read_differently_is_in_doubt() -> None:
    """Which ones those are is in the contract of paths."""
    for value in ("notes/a", "~/../secrets/key", "file:///path/to/notes/a", "~/notes/self/a"):
        for glob in ("~/notes/**", "a/*"):
            for when in (glob, ["/x/**", glob], {"not": glob}):
                assert fit({"path": when}, {"path": value}, FakePaths(LINKS)) is Fit.DOUBT
            assert fit({"path": {"any": glob}}, {"path": [5, value]}, FakePaths(LINKS)) is Fit.DOUBT
            assert fit({"path": {"every": glob}}, {"path": [value]}, FakePaths(LINKS)) is Fit.DOUBT


def test_a_glob_may_begin_with_a_link() -> None:
    for value in ("~/diaryX/monday", "/data/diary/monday"):
        assert fit({"path": "~/diaryX/**"}, {"path": value}, FakePaths(LINKS)) is Fit.YES
        assert fit({"path": "/data/diary/**"}, {"path": value}, FakePaths(LINKS)) is Fit.YES


def test_one_doubt_and_one_mismatch_are_a_mismatch() -> None:
    assert fit({"path": "~/ring/**"}, {"path": "~/a"}, FakePaths(LINKS)) is Fit.DOUBT
    when = {"path": "~/.ssh/**", "mode": "w"}
    assert fit(when, {"path": "~/ring/a", "mode": "w"}, FakePaths(LINKS)) is Fit.DOUBT
    assert fit(when, {"path": "~/ring/a", "mode": "r"}, FakePaths(LINKS)) is Fit.NO


def test_another_spelling_is_doubtful_where_case_does_not_matter() -> None:
    paths = FakePaths(ignores_case=True)
    for value, found in (("~/.SSH/id", Fit.DOUBT), ("~/.ssh/ID", Fit.DOUBT), ("~/.ssh/id", Fit.YES)):
        assert fit({"path": "~/.ssh/id"}, {"path": value}, paths) is found
    assert fit({"path": "~/caf\u00e9/*"}, {"path": "~/cafe\u0301/a"}, paths) is Fit.DOUBT
    assert fit({"path": "~/.ssh/*"}, {"path": "~/.sshx/a"}, paths) is Fit.NO
    assert fit({"path": "~/.ssh/*"}, {"path": "~/.SSH/a"}) is Fit.NO


NAMES = st.sampled_from(["a", "b", "notes", "..", ".", "", "out", "up", "deep", "~", "self"])


@given(st.lists(NAMES, max_size=8), st.booleans())
def test_a_path_that_fits_a_folder_resolves_to_a_place_inside_it(names: list[str], is_absolute: bool) -> None:
    path = ("/" if is_absolute else "") + "/".join(names)
    paths = FakePaths(LINKS, here=f"{HOME}/notes")
    if fit({"path": "~/notes/**"}, {"path": path}, paths) is Fit.YES:
        assert f"{paths.resolved(path, None)}/".startswith(f"{HOME}/notes/")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_json_is_compared_alike_in_both_directions(one: Any, other: Any) -> None:
    assert same_json(one, one)
    assert same_json(one, other) == same_json(other, one)
