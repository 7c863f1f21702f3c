"""Which rules fit which calls, row by row, and that no path gets around a glob."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.agents.policy.fitting import RuledCall, fits, policy_name, same_json
from openai_responses_mcp.agents.policy.rules import Choice
from tests.agents.fake_policy import FakePaths
from tests.agents.policy.reading import a_rule


def fit(when: Any, args: Any, decide: Choice = "allow", paths: FakePaths | None = None, directory: str = "") -> bool:
    rule = a_rule(when=when, decide=decide)
    return fits(rule, RuledCall("files/write", args, directory), paths or FakePaths())


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
    assert fits(a_rule(globs), RuledCall(tool, {}), FakePaths()) is is_fit


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
    for decide in ("allow", "ask", "deny"):
        assert fit(when, args, decide) is is_fit


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
        ("~/notes/**", "~/notes/../.ssh/id", False),
        ("~/notes/**", "~/notes/../notes/a", True),
        ("~/notes/**", "/path/to/other/../notes/./a", True),
        ("~/notes/**", "notes/a", False),
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
        # relative to the server's directory
        ("data/*", "data/a", True),
        ("./*", "a", True),
        ("./*", "", False),
        ("./**", "", True),
        ("../shared/**", "/shared/a", True),
        ("data/*", "/srv/data/a", True),
        ("data/*", "/data/a", False),
        ("data/*", "../srv/data/a", True),
        ("data/*", "data/../../etc/a", False),
    ],
)
def test_a_path_is_compared_where_it_leads(glob: str, value: str, is_fit: bool) -> None:
    for decide in ("allow", "ask", "deny"):
        assert fit({"path": glob}, {"path": value}, decide) is is_fit


def test_the_servers_own_directory_is_where_relative_paths_begin() -> None:
    assert fit({"path": "data/*"}, {"path": "data/a"}, directory="/opt/server")
    assert fit({"path": "/opt/server/data/*"}, {"path": "data/a"}, directory="/opt/server")
    assert not fit({"path": "/srv/data/*"}, {"path": "data/a"}, directory="/opt/server")


@pytest.mark.parametrize("value", [5, None, True, ["~/notes/a"], {"path": "~/notes/a"}])
def test_a_path_glob_fits_texts_only(value: Any) -> None:
    for decide in ("allow", "ask", "deny"):
        assert not fit({"path": "/**"}, {"path": value}, decide)


LINKS = {
    f"{HOME}/notes/out": "/etc",
    f"{HOME}/notes/up": "../.ssh",
    f"{HOME}/back": f"{HOME}/notes/deep",
    f"{HOME}/diary": "/data/diary",
    f"{HOME}/ring": f"{HOME}/ring",
}


@pytest.mark.parametrize(
    "value",
    [
        "~/notes/out/passwd",
        "~/notes/out",
        "~/notes/up/id",
        "~/notes/../.ssh/id",
        "~/notes/deep/../../.ssh/id",
        "~/notes/out/../etc/passwd",
        # Where `back/..` leads depends on who reads it: to ~/notes, or to the home folder.
        "~/back/../.ssh/id",
        "~/ring/../notes/a",
        "~/notes/a\0b",
    ],
)
def test_no_link_and_no_dots_lead_out_of_what_is_allowed(value: str) -> None:
    for decide in ("allow", "ask"):
        assert not fit({"path": "~/notes/**"}, {"path": value}, decide, FakePaths(LINKS))


@pytest.mark.parametrize(
    "value",
    [
        "~/.ssh/id",
        "~/notes/up/id",
        "~/notes/up/../.ssh/id",
        "~/back/../.ssh/id",
        "~/notes/../.ssh",
        "~/ring/../.ssh/id",
        "~/.ssh/id\0",
    ],
)
def test_no_link_and_no_dots_lead_around_what_is_denied(value: str) -> None:
    assert fit({"path": "~/.ssh/**"}, {"path": value}, "deny", FakePaths(LINKS))


def test_a_glob_may_begin_with_a_link() -> None:
    for value in ("~/diary/monday", "/data/diary/monday"):
        assert fit({"path": "~/diary/**"}, {"path": value}, paths=FakePaths(LINKS))
        assert fit({"path": "/data/diary/**"}, {"path": value}, paths=FakePaths(LINKS))


def test_a_glob_that_begins_nowhere_fits_denials_only() -> None:
    for decide, is_fit in (("allow", False), ("ask", False), ("deny", True)):
        assert fit({"path": "~/ring/**"}, {"path": "~/a"}, decide, FakePaths(LINKS)) is is_fit  # type: ignore[arg-type]


def test_one_doubt_and_one_mismatch_are_a_mismatch() -> None:
    when = {"path": "~/.ssh/**", "mode": "w"}
    assert fit(when, {"path": "~/ring/a", "mode": "w"}, "deny", FakePaths(LINKS))
    assert not fit(when, {"path": "~/ring/a", "mode": "r"}, "deny", FakePaths(LINKS))


def test_where_case_does_not_matter_it_gets_nothing_around_a_denial() -> None:
    paths = FakePaths(ignores_case=True)
    for value in ("~/.SSH/id", "~/.ssh/ID", "~/.ssh/id"):
        assert fit({"path": "~/.ssh/id"}, {"path": value}, "deny", paths)
    assert not fit({"path": "~/.SSH/id"}, {"path": "~/.ssh/id"}, "allow", paths)
    assert fit({"path": "~/caf\u00e9/*"}, {"path": "~/cafe\u0301/a"}, "deny", paths)
    assert not fit({"path": "~/.ssh/*"}, {"path": "~/.sshx/a"}, "deny", paths)
    assert not fit({"path": "~/.ssh/*"}, {"path": "~/.SSH/a"}, "deny", FakePaths())


NAMES = st.sampled_from(["a", "b", "notes", "..", ".", "", "out", "up", "deep", "~"])


@given(st.lists(NAMES, max_size=8), st.booleans())
def test_what_fits_an_allowed_folder_is_inside_it_however_it_is_read(names: list[str], is_absolute: bool) -> None:
    path = ("/" if is_absolute else "") + "/".join(names)
    paths = FakePaths(LINKS, here=f"{HOME}/notes")
    if fit({"path": "~/notes/**"}, {"path": path}, paths=paths):
        assert all(f"{one}/".startswith(f"{HOME}/notes/") for one in paths.readings(path, ""))


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(JSON, JSON)
def test_json_is_compared_alike_in_both_directions(one: Any, other: Any) -> None:
    assert same_json(one, one)
    assert same_json(one, other) == same_json(other, one)
