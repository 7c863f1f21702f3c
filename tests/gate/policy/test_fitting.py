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
    policy_name,
    same_json,
    server_of,
)
from tests.agents.fake_policy import FakePaths
from tests.gate.policy.reading import a_rule


def fit(when: Any, args: Any, paths: FakePaths | None = None, relative_to: str | None = None) -> Fit:
    call = RuledCall(("files/write",), args, base=relative_to or "", relative_to=relative_to)
    return fit_of(a_rule(when=when), call, paths or FakePaths())


# ---------------------------------------------------------------------------------------------------------------------
# Names


@pytest.mark.parametrize(
    ("kind", "name", "called"),
    [
        ("mcp", "files/read", "files/read"),
        ("function", "pay", "function/pay"),
        ("skill", "skill_writer", "skill/skill_writer"),
        ("mcp", "function/pay", "mcp/function/pay"),
        ("mcp", "skill/x", "mcp/skill/x"),
        ("mcp", "mcp/function/pay", "mcp/mcp/function/pay"),
    ],
)
def test_every_tool_has_a_name_that_no_other_tool_has(kind: str, name: str, called: str) -> None:
    assert policy_name(kind, name) == called


@pytest.mark.parametrize(
    ("globs", "tool", "is_fit"),
    [
        (["files/read_*"], "files/read_file", True),
        (["files/read_*"], "files/write_file", False),
        (["files/read_*"], "other/read_file", False),
        (["*/delete_*"], "files/delete_all", True),
        (["*/delete_*"], "files/folder/delete_all", True),
        (["*"], "files/read", True),
        (["files/READ"], "files/read", False),
        (["files/rea?"], "files/read", True),
        (["files/[rw]ead"], "files/read", True),
        (["files/read"], "files/read\n", False),
        (["a/b", "files/*"], "files/read", True),
        (["function/*"], "function/pay", True),
    ],
)
def test_a_rule_is_for_the_tools_that_its_globs_fit(globs: list[str], tool: str, is_fit: bool) -> None:
    assert (fit_of(a_rule(globs), RuledCall((tool,), {}), FakePaths()) is Fit.YES) is is_fit


def test_a_tool_may_have_a_former_name_too() -> None:
    call = RuledCall(("server-filesystem/read", "npx/read"), {})
    for glob in ("npx/*", "server-filesystem/*"):
        assert fit_of(a_rule(glob), call, FakePaths()) is Fit.YES
    assert fit_of(a_rule("files/*"), call, FakePaths()) is Fit.NO


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
        ({"readOnlyHint": True}, {"reads"}),
        ({"readOnlyHint": True, "destructiveHint": True}, {"reads"}),
        ({"readOnlyHint": False}, {"writes", "destroys"}),
        ({"readOnlyHint": "true"}, {"writes", "destroys"}),
        ({"readOnlyHint": 1}, {"writes", "destroys"}),
        ({"destructiveHint": False}, {"writes"}),
        ({"readOnlyHint": False, "destructiveHint": False}, {"writes"}),
        ({"destructiveHint": None}, {"writes", "destroys"}),
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
# Values


@pytest.mark.parametrize(
    ("when", "args", "is_fit"),
    [
        # globs on texts
        ({"name": "a*"}, {"name": "abc"}, True),
        ({"name": "a*"}, {"name": "bca"}, False),
        ({"name": "a*"}, {"name": "a/b\nc"}, True),
        ({"name": "*"}, {"name": ""}, True),
        ({"name": "a"}, {"name": "a\n"}, False),
        ({"name": "5"}, {"name": 5}, False),
        ({"name": "*"}, {"name": None}, False),
        ({"name": "*"}, {"name": ["a"]}, False),
        ({"name": "*"}, {}, False),
        # where to look
        ({"/options/depth": {"equals": 2}}, {"options": {"depth": 2}}, True),
        ({"/options/depth": {"equals": 2}}, {"options": {}}, False),
        ({"/options/depth": {"equals": 2}}, {"options": 2}, False),
        ({"/items/1": {"equals": "b"}}, {"items": ["a", "b"]}, True),
        ({"/items/2": {"equals": "b"}}, {"items": ["a", "b"]}, False),
        ({"/items/01": {"equals": "b"}}, {"items": ["a", "b"]}, False),
        ({"/items/-": {"equals": "b"}}, {"items": ["a", "b"]}, False),
        ({"/items/-1": {"equals": "b"}}, {"items": ["a", "b"]}, False),
        ({"/items/١": {"equals": "b"}}, {"items": ["a", "b"]}, False),
        ({"/a~1b/c~0d": {"equals": 1}}, {"a/b": {"c~d": 1}}, True),
        ({"a/b": {"equals": 1}}, {"a/b": 1}, True),
        ({"a.b": {"equals": 1}}, {"a": {"b": 1}}, False),
        ({"/": {"equals": 1}}, {"": 1}, True),
        ({"/text/0": {"equals": "a"}}, {"text": "abc"}, False),
        # equals, in
        ({"n": {"equals": 1}}, {"n": 1}, True),
        ({"n": {"equals": 1}}, {"n": 1.0}, True),
        ({"n": {"equals": 1}}, {"n": True}, False),
        ({"n": {"equals": True}}, {"n": True}, True),
        ({"n": {"equals": True}}, {"n": 1}, False),
        ({"n": {"equals": 0}}, {"n": False}, False),
        ({"n": {"equals": "1"}}, {"n": 1}, False),
        ({"n": {"equals": None}}, {"n": None}, True),
        ({"n": {"equals": None}}, {}, False),
        ({"n": {"equals": None}}, {"n": False}, False),
        ({"n": {"equals": [1, {"a": True}]}}, {"n": [1, {"a": True}]}, True),
        ({"n": {"equals": [1, {"a": True}]}}, {"n": [1, {"a": 1}]}, False),
        ({"n": {"equals": [1]}}, {"n": [1, 2]}, False),
        ({"n": {"equals": {"a": 1}}}, {"n": {"a": 1, "b": 2}}, False),
        ({"n": {"in": ["a", 2]}}, {"n": 2}, True),
        ({"n": {"in": ["a", 2]}}, {"n": "2"}, False),
        ({"n": {"in": [1]}}, {"n": True}, False),
        # matches
        ({"n": {"matches": "[a-z]+"}}, {"n": "abc"}, True),
        ({"n": {"matches": "[a-z]+"}}, {"n": "abc!"}, False),
        ({"n": {"matches": "a|b"}}, {"n": "ab"}, False),
        ({"n": {"matches": "[a-z]+"}}, {"n": "abc\n"}, False),
        ({"n": {"matches": "[0-9]+"}}, {"n": 5}, False),
        # at_most
        ({"n": {"at_most": 5}}, {"n": 5}, True),
        ({"n": {"at_most": 5}}, {"n": 5.5}, False),
        ({"n": {"at_most": 5.5}}, {"n": 5}, True),
        ({"n": {"at_most": 5}}, {"n": -1}, True),
        ({"n": {"at_most": 5}}, {"n": True}, False),
        ({"n": {"at_most": 5}}, {"n": "3"}, False),
        ({"n": {"at_most": 5}}, {"n": float("nan")}, False),
        ({"n": {"at_most": 5}}, {"n": 10**400}, False),
        # several: all must hold
        ({"a": "x", "b": "y"}, {"a": "x", "b": "y"}, True),
        ({"a": "x", "b": "y"}, {"a": "x", "b": "z"}, False),
        ({"n": {"at_most": 5, "in": [1, 9]}}, {"n": 1}, True),
        ({"n": {"at_most": 5, "in": [1, 9]}}, {"n": 9}, False),
    ],
)
def test_a_when_fits_what_it_says(when: Any, args: Any, is_fit: bool) -> None:
    assert (fit(when, args) is Fit.YES) is is_fit
    assert fit(when, args) is not Fit.DOUBT


@pytest.mark.parametrize(
    ("when", "args", "is_fit"),
    [
        # several globs: one of them
        ({"n": ["a*", "b*"]}, {"n": "bcd"}, True),
        ({"n": ["a*", "b*"]}, {"n": "cd"}, False),
        ({"n": ["a*", "/x/**"]}, {"n": "/x/y"}, True),
        ({"n": ["a*", "b*"]}, {"n": ["a"]}, False),
        # any, every
        ({"n": {"any": "a*"}}, {"n": ["b", "ab"]}, True),
        ({"n": {"any": "a*"}}, {"n": ["b"]}, False),
        ({"n": {"any": "a*"}}, {"n": []}, False),
        ({"n": {"any": "a*"}}, {"n": "ab"}, False),
        ({"n": {"any": "a*"}}, {"n": {"a": "ab"}}, False),
        ({"n": {"any": ["a*", "c*"]}}, {"n": ["b", 5, "c"]}, True),
        ({"n": {"any": {"at_most": 5}}}, {"n": [9, 5]}, True),
        ({"n": {"any": {"at_most": 5}}}, {"n": ["5"]}, False),
        ({"n": {"every": "a*"}}, {"n": ["ab", "ac"]}, True),
        ({"n": {"every": "a*"}}, {"n": ["ab", "b"]}, False),
        ({"n": {"every": "a*"}}, {"n": ["ab", 5]}, False),
        ({"n": {"every": "a*"}}, {"n": []}, False),
        ({"n": {"every": {"any": "a"}}}, {"n": [["a"], ["b", "a"]]}, True),
        ({"n": {"every": {"in": [1, 2], "at_most": 1}}}, {"n": [1, 1]}, True),
        ({"n": {"every": {"in": [1, 2], "at_most": 1}}}, {"n": [1, 2]}, False),
        # not
        ({"n": {"not": "a*"}}, {"n": "b"}, True),
        ({"n": {"not": "a*"}}, {"n": "ab"}, False),
        ({"n": {"not": "a*"}}, {"n": 5}, False),
        ({"n": {"not": "a*"}}, {}, False),
        ({"n": {"not": ["a*", "b*"]}}, {"n": "c"}, True),
        ({"n": {"not": ["a*", "b*"]}}, {"n": "b"}, False),
        ({"n": {"not": {"in": ["append", "delete"]}}}, {"n": "read"}, True),
        ({"n": {"not": {"in": ["append", "delete"]}}}, {"n": "delete"}, False),
        ({"n": {"not": {"in": ["append", "delete"]}}}, {"n": 5}, False),
        ({"n": {"not": {"in": ["append", "delete"]}}}, {}, False),
        ({"n": {"not": {"equals": True}}}, {"n": 1}, False),
        ({"n": {"not": {"equals": True}}}, {"n": False}, True),
        ({"n": {"not": {"at_most": 5}}}, {"n": 6}, True),
        ({"n": {"not": {"at_most": 5}}}, {"n": "6"}, False),
        ({"n": {"not": {"matches": "a+"}}}, {"n": "b"}, True),
        ({"n": {"not": {"any": "a*"}}}, {"n": ["b"]}, True),
        ({"n": {"not": {"any": "a*"}}}, {"n": ["a"]}, False),
        ({"n": {"not": {"any": "a*"}}}, {"n": "b"}, False),
        ({"n": {"not": {"not": "a*"}}}, {"n": "a"}, True),
        ({"n": {"not": {"not": "a*"}}}, {"n": 5}, False),
        # missing
        ({"/o/force": {"missing": True}}, {"o": {}}, True),
        ({"/o/force": {"missing": True}}, {}, True),
        ({"/o/force": {"missing": True}}, {"o": {"force": None}}, False),
        ({"n": {"not": {"missing": True}}}, {"n": None}, True),
        ({"n": {"not": {"missing": True}}}, {}, False),
    ],
)
def test_conditions_can_be_combined(when: Any, args: Any, is_fit: bool) -> None:
    assert (fit(when, args) is Fit.YES) is is_fit
    assert fit(when, args) is not Fit.DOUBT


# ---------------------------------------------------------------------------------------------------------------------
# Paths

HOME = "/path/to"


@pytest.mark.parametrize(
    ("glob", "value", "is_fit"),
    [
        ("~/notes/**", "~/notes/a.md", True),
        ("~/notes/**", "/path/to/notes/a/b/c.md", True),
        ("~/notes/**", "~/notes", True),
        ("~/notes/**", "~/notes/", True),
        ("~/notes/**", "~/notesx/a", False),
        ("~/notes/**", "/path/to/other/../notes/./a", True),
        ("~/notes/**", "/path/to/notes/../.ssh/id", False),
        ("~/notes/*", "~/notes/a.md", True),
        ("~/notes/*", "~/notes/a/b.md", False),
        ("~/notes/*", "~/notes", False),
        ("~/notes/*.md", "~/notes/a.md", True),
        ("~/notes/*.md", "~/notes/a/b.md", False),
        ("~/notes/**/*.md", "~/notes/a/b/c.md", True),
        ("~/notes/**/*.md", "~/notes/c.md", True),
        ("~/notes/**/*.md", "~/notes/c.txt", False),
        ("~/notes/**/x/**/y", "~/notes/a/x/x/b/y/y", True),
        ("~/notes/**/x/**/y", "~/notes/a/x/b/y/z", False),
        ("~/notes/[ab]?", "~/notes/a1", True),
        ("~/notes/[ab]?", "~/notes/c1", False),
        ("~/*/a", "~/.ssh/a", True),
        ("~", "~", True),
        ("~", "/path/to", True),
        ("~/a.md", "~/a.md", True),
        ("~/a.md", "~/a.md/b", False),
        ("/**", "/etc/passwd", True),
        ("/etc/**", "//etc///passwd", True),
        ("/etc/**", "/srv/../etc/passwd", True),
        # relative globs begin in the guard's own folder
        ("../shared/**", "/shared/a", True),
        ("data/*", "/srv/data/a", True),
        ("data/*", "/data/a", False),
    ],
)
def test_a_path_is_compared_where_it_leads(glob: str, value: str, is_fit: bool) -> None:
    assert fit({"path": glob}, {"path": value}) is (Fit.YES if is_fit else Fit.NO)


@pytest.mark.parametrize(
    ("glob", "value", "is_fit"),
    [
        ("data/*", "data/a", True),
        ("/opt/server/data/*", "data/a", True),
        ("/srv/data/*", "data/a", False),
        ("./*", "a", True),
        ("./*", "", False),
        ("./**", "", True),
        ("data/*", "../server/data/a", True),
        ("data/*", "data/../../etc/a", False),
        ("data/*", "/opt/server/data/a", True),
    ],
)
def test_relative_paths_begin_where_the_file_says(glob: str, value: str, is_fit: bool) -> None:
    assert fit({"path": glob}, {"path": value}, relative_to="/opt/server") is (Fit.YES if is_fit else Fit.NO)


LINKS = {
    f"{HOME}/notes/out": "/etc",
    f"{HOME}/notes/up": "../.ssh",
    f"{HOME}/back": f"{HOME}/notes/deep",
    f"{HOME}/diary": "/data/diary",
    f"{HOME}/ring": f"{HOME}/ring",
    f"{HOME}/notes/self": "/proc/self/cwd",
}


@pytest.mark.parametrize(
    "value",
    [
        "notes/a",
        "secret/x.txt",
        "./a",
        "",
        "~/../secrets/key",
        "~/notes/../notes/a",
        "~root/a",
        "file:///path/to/notes/a",
        "file:a",
        "/proc/self/cwd/a",
        "/proc",
        "/dev/fd/3",
        "/dev/stdin",
        "/path/to/notes/../../../proc/1/root/etc/passwd",
        "~/notes/self/a",
        # Where `back/..` leads depends on the program: to ~/notes, or to the home folder.
        "/path/to/back/../.ssh/id",
        "~/ring/a",
        "~/notes/a\0b",
    ],
)
def test_a_path_that_servers_may_read_otherwise_is_in_doubt(value: str) -> None:
    for glob in ("~/notes/**", "/srv/**", "/**", "a/*"):
        for when in (glob, ["/x/**", glob], {"not": glob}):
            assert fit({"path": when}, {"path": value}, FakePaths(LINKS)) is Fit.DOUBT
        assert fit({"path": {"any": glob}}, {"path": [5, value]}, FakePaths(LINKS)) is Fit.DOUBT
        assert fit({"path": {"every": glob}}, {"path": [value]}, FakePaths(LINKS)) is Fit.DOUBT


@pytest.mark.parametrize("value", [5, None, True, ["~/notes/a"], {"path": "~/notes/a"}])
def test_a_path_glob_fits_texts_only(value: Any) -> None:
    assert fit({"path": "/**"}, {"path": value}) is Fit.OTHER_TYPE


@pytest.mark.parametrize("value", ["~/notes/out/passwd", "~/notes/out", "~/notes/up/id"])
def test_no_link_leads_out_of_a_folder(value: str) -> None:
    assert fit({"path": "~/notes/**"}, {"path": value}, FakePaths(LINKS)) is Fit.NO


def test_a_glob_may_begin_with_a_link() -> None:
    for value in ("~/diary/monday", "/data/diary/monday"):
        assert fit({"path": "~/diary/**"}, {"path": value}, FakePaths(LINKS)) is Fit.YES
        assert fit({"path": "/data/diary/**"}, {"path": value}, FakePaths(LINKS)) is Fit.YES


def test_a_glob_that_begins_nowhere_is_doubtful() -> None:
    assert fit({"path": "~/ring/**"}, {"path": "~/a"}, FakePaths(LINKS)) is Fit.DOUBT


def test_one_doubt_and_one_mismatch_are_a_mismatch() -> None:
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
def test_what_fits_a_folder_is_inside_it_however_it_is_read(names: list[str], is_absolute: bool) -> None:
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
