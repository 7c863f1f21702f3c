"""What every `Paths` must do, on a tree of links: made up, and on a real disk."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from openai_responses_mcp.agents.adapters.system_paths import SystemPaths
from openai_responses_mcp.agents.policy.ports import Paths
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
        ("~/notes/../a", "home/a"),
        ("~/missing/../a", "home/a"),
        ("a", "here/a"),
        ("", "here"),
        (".", "here"),
        ("../server/a", "server/a"),
        ("a//b/./c/", "here/a/b/c"),
    ],
)
def test_a_path_leads_to_one_place(make: Make, root: str, path: str, leads_to: str) -> None:
    paths = make({})
    assert paths.readings(path, "") == {f"{root}/{leads_to}"}
    assert paths.anchor(path, "") == f"{root}/{leads_to}"


def test_relative_paths_begin_in_the_servers_directory(make: Make, root: str) -> None:
    paths = make({})
    assert paths.readings("a", f"{root}/server") == {f"{root}/server/a"}
    assert paths.anchor("a", f"{root}/server") == f"{root}/server/a"
    assert paths.readings(f"{root}/home/a", f"{root}/server") == {f"{root}/home/a"}


def test_links_are_followed(make: Make, root: str) -> None:
    links = {f"{root}/home/out": f"{root}/server", f"{root}/home/notes/up": "../.ssh", f"{root}/home/twice": "out/x"}
    paths = make(links)
    assert paths.readings("~/out/a", "") == {f"{root}/server/a"}
    assert paths.readings("~/notes/up/id", "") == {f"{root}/home/.ssh/id"}
    assert paths.readings("~/twice", "") == {f"{root}/server/x"}
    assert paths.anchor("~/out", "") == f"{root}/server"


def test_dots_after_a_link_are_read_in_both_ways(make: Make, root: str) -> None:
    paths = make({f"{root}/home/back": f"{root}/home/notes/deep"})
    assert paths.readings("~/back/../a", "") == {f"{root}/home/notes/a", f"{root}/home/a"}


@pytest.mark.parametrize("path", ["~/ring/a", "~/ring/../a", "a\0b"])
def test_a_path_that_leads_nowhere_has_no_reading(make: Make, root: str, path: str) -> None:
    paths = make({f"{root}/home/ring": f"{root}/home/ring"})
    assert paths.readings(path, "") == frozenset()
    assert paths.anchor(path, "") is None


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
