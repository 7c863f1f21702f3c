"""What every `Paths` must do, on a tree of links: made up, and on a real disk."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.policy_file import SystemPaths
from openai_responses_mcp.gate.policy.rules import Paths
from tests.agents.fake_policy import FakePaths

Make = Callable[[Mapping[str, str]], Paths]


@pytest.fixture(params=["fake", "system"])
def make(request: pytest.FixtureRequest, root: str, monkeypatch: pytest.MonkeyPatch) -> Make:
    """Paths over links; the home folder is root/home, the process's directory root/here."""

    def on_disk(links: Mapping[str, str]) -> Paths:
        monkeypatch.setenv("HOME", f"{root}/home")
        for folder in ("home/notes/deep", "here", "server"):
            Path(root, folder).mkdir(parents=True)
        monkeypatch.chdir(f"{root}/here")
        for link, target in links.items():
            os.symlink(target, link)
        return SystemPaths()

    def made_up(links: Mapping[str, str]) -> Paths:
        return FakePaths(links, home=f"{root}/home", here=f"{root}/here")

    return made_up if request.param == "fake" else on_disk


@pytest.fixture
def root(tmp_path: Path) -> str:
    return os.path.realpath(tmp_path)


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [
        ("~", "home"),
        ("~/notes/a", "home/notes/a"),
        ("~/notes//./b/", "home/notes/b"),
        ("ROOT/home/missing/../a", "home/a"),
        ("ROOT/here/../server", "server"),
    ],
)
def test_a_path_leads_to_one_place(make: Make, root: str, path: str, leads_to: str) -> None:
    paths, path = make({}), path.replace("ROOT", root)
    assert paths.resolved(path, None) == f"{root}/{leads_to}"
    assert paths.resolved(path, f"{root}/server") == f"{root}/{leads_to}"
    assert paths.anchor(path, "") == f"{root}/{leads_to}"


@pytest.mark.parametrize(
    ("path", "leads_to"),
    [("a", "server/a"), ("", "server"), (".", "server"), ("../here/a", "here/a"), ("b//c", "server/b/c")],
)
def test_relative_paths_begin_in_the_given_directory(make: Make, root: str, path: str, leads_to: str) -> None:
    paths = make({})
    assert paths.resolved(path, f"{root}/server") == f"{root}/{leads_to}"
    assert paths.resolved(path, None) is None
    assert paths.anchor(path, f"{root}/server") == f"{root}/{leads_to}"


def test_relative_globs_begin_in_the_directory_of_the_process(make: Make, root: str) -> None:
    assert make({}).anchor("a", "") == f"{root}/here/a"


def test_links_are_followed(make: Make, root: str) -> None:
    links = {f"{root}/home/out": f"{root}/server", f"{root}/home/notes/up": "../.ssh", f"{root}/home/twice": "out/x"}
    paths = make(links)
    assert paths.resolved("~/out/a", None) == f"{root}/server/a"
    assert paths.resolved("~/notes/up/id", None) == f"{root}/home/.ssh/id"
    assert paths.resolved("~/twice", None) == f"{root}/server/x"
    assert paths.anchor("~/out", "") == f"{root}/server"


@pytest.mark.parametrize(
    "path",
    [
        "~/../a",
        "~/notes/../a",
        "~root",
        "file:///etc/passwd",
        "file:a",
        "FILE:/etc/passwd",
        "/proc/self/cwd/a",
        "/proc",
        "/dev/fd/0",
        "/dev/stdin",
        "/etc/../proc/1/root/etc/passwd",
        "~/process/a",
        "ROOT/home/back/../a",
        "~/ring/a",
        "a\0b",
    ],
)
def test_paths_that_servers_may_read_differently_are_in_doubt(make: Make, root: str, path: str) -> None:
    links = {"back": "notes/deep", "ring": "ring", "process": "/proc/self/cwd"}
    paths = make({f"{root}/home/{name}": target for name, target in links.items()})
    assert paths.resolved(path.replace("ROOT", root), f"{root}/server") is None


def test_a_glob_may_begin_where_paths_are_in_doubt(make: Make, root: str) -> None:
    paths = make({f"{root}/home/ring": f"{root}/home/ring"})
    assert paths.anchor("~/../server", "") == f"{root}/server"
    assert paths.anchor("~/ring/a", "") is None
    assert paths.anchor("a\0b", "") is None


def test_an_anchor_stays_where_it_was(make: Make, root: str) -> None:
    paths = make({})
    for folder, directory in (("~/secret", ""), ("~/secret", f"{root}/server"), ("data", f"{root}/server")):
        before = paths.anchor(folder, directory)
        put_link(paths, f"{root}/home/secret", f"{root}/here")
        put_link(paths, f"{root}/server/data", f"{root}/here")
        assert paths.anchor(folder, directory) == before
        take_link(paths, f"{root}/home/secret")
        take_link(paths, f"{root}/server/data")


def put_link(paths: Paths, link: str, target: str) -> None:
    if isinstance(paths, FakePaths):
        paths.links[link] = target
    else:
        os.symlink(target, link)


def take_link(paths: Paths, link: str) -> None:
    if isinstance(paths, FakePaths):
        del paths.links[link]
    else:
        os.unlink(link)
