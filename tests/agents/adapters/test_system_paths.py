"""What only a real file system does."""

import os
import pwd
from pathlib import Path

import pytest

from openai_responses_mcp.agents.adapters.system_paths import SystemPaths


def test_a_tilde_and_a_name_may_be_a_home_or_a_file(tmp_path: Path) -> None:
    somebody = pwd.getpwuid(os.getuid())
    found = SystemPaths().readings(f"~{somebody.pw_name}/a", str(tmp_path))
    assert found == {os.path.realpath(f"{somebody.pw_dir}/a"), os.path.realpath(f"{tmp_path}/~{somebody.pw_name}/a")}
    assert SystemPaths().readings("~$letter.docx", str(tmp_path)) == {os.path.realpath(f"{tmp_path}/~$letter.docx")}


def test_a_path_below_a_file_is_resolved_as_far_as_it_goes(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    (tmp_path / "link").symlink_to("file")
    assert SystemPaths().readings("link/a", str(tmp_path)) == {os.path.realpath(f"{tmp_path}/file/a")}


@pytest.mark.parametrize("path", ["a/" * 3000, "x" * 5000, "/" + "y" * 300, "~\ud800", "~a\0", "\ud800"])
def test_what_no_file_can_be_called_has_no_reading(path: str) -> None:
    assert SystemPaths().readings(path, "/") == frozenset()


def test_a_server_whose_directory_is_a_link_is_inside_of_its_target(tmp_path: Path) -> None:
    (tmp_path / "real" / "inner").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real/inner")
    found = SystemPaths().readings("../a", str(tmp_path / "link"))
    assert found == {os.path.realpath(f"{tmp_path}/real/a")}


def test_in_a_directory_that_is_gone_nothing_can_be_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    monkeypatch.chdir(gone)
    gone.rmdir()
    assert SystemPaths().readings("a", "") == frozenset()
    assert SystemPaths().anchor("a", "") is None


@pytest.mark.parametrize(("platform", "ignores"), [("linux", False), ("darwin", True), ("win32", True)])
def test_some_systems_ignore_case(platform: str, ignores: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.platform", platform)
    assert SystemPaths().ignores_case is ignores
