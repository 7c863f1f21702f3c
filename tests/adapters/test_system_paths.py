"""Paths as only a real file system resolves them."""

import os
import pwd
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.adapters.policy_file import SystemPaths


def test_a_tilde_with_a_user_name_is_not_resolved(tmp_path: Path) -> None:
    somebody = pwd.getpwuid(os.getuid())
    assert SystemPaths().resolved(f"~{somebody.pw_name}/a", str(tmp_path)) is None


def test_a_path_below_a_file_is_resolved_up_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    assert SystemPaths().resolved("link/a", str(tmp_path)) == os.path.realpath(f"{tmp_path}/file/a")


def test_an_impossible_file_name_is_not_resolved() -> None:
    cases: list[str] = ["a/" * 3000, "/" + "y" * 300, "~\ud800", "~a\0"]
    for path in cases:
        assert SystemPaths().resolved(path, "/") is None


def test_a_path_that_some_servers_rewrite_is_not_resolved() -> None:
    cases: list[str] = [
        " /etc/a",
        '"/etc/a"',
        "\t/etc/a",
        "$HOME/a",
        "%HOME%/a",
        "..\\a",
        " file:/a",
    ]
    for path in cases:
        assert SystemPaths().resolved(path, "/srv") is None


@given(st.lists(st.sampled_from(["a", "b", "..", ".", "", "link", "file", "up", "gone"]), max_size=8))
def test_a_resolved_path_is_the_one_of_the_system(folder: Path, names: list[str]) -> None:
    path = "/".join([str(folder), *names])
    found = SystemPaths().resolved(path, None)
    assert found in (None, os.path.realpath(path))
    if ".." not in names:
        assert found is not None


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tree")
    (folder / "a" / "b").mkdir(parents=True)
    (folder / "file").touch()
    (folder / "link").symlink_to("a/b")
    (folder / "a" / "up").symlink_to("..")
    (folder / "gone").symlink_to("missing")
    return folder


def test_a_glob_has_no_anchor_in_a_deleted_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert SystemPaths().anchor("a", "") is None


@pytest.mark.parametrize(("platform", "ignores"), [("linux", False), ("darwin", True), ("win32", True)])
def test_paths_ignore_case_on_macos_and_windows(platform: str, ignores: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", platform)
    assert SystemPaths().ignores_case is ignores
