"""Files of our own: the user's own store, and replacing a private file."""

import stat
from pathlib import Path

import pytest

from openai_responses_mcp.gate.sql.own_files import own_store, replace_private, store_from


def test_it_is_in_the_folder_for_state_which_is_the_owners_alone(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert own_store(environ) == f"sqlite:///{tmp_path}/state/openai-responses-mcp/guard.db"
    assert stat.S_IMODE((tmp_path / "state" / "openai-responses-mcp").stat().st_mode) == 0o700


def test_a_folder_that_is_not_absolute_is_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    expected = f"sqlite:///{tmp_path}/.local/state/openai-responses-mcp/guard.db"
    assert own_store({"XDG_STATE_HOME": "relative"}) == expected


def test_a_given_store_comes_before_the_environment_and_the_own_file_last(tmp_path: Path) -> None:
    environ = {"XDG_STATE_HOME": str(tmp_path), "AGENTS_STORE": "sqlite:///env.db"}
    assert store_from("sqlite:///given.db", environ) == "sqlite:///given.db"
    assert store_from(None, environ) == "sqlite:///env.db"
    del environ["AGENTS_STORE"]
    assert store_from(None, environ) is None
    Path(own_store(environ).removeprefix("sqlite:///")).touch()
    assert store_from(None, environ) == own_store(environ)


def mode_of(file: Path) -> int:
    return file.stat().st_mode & 0o777


def test_a_replaced_file_is_the_owners_alone_and_leaves_nothing_beside_it(tmp_path: Path) -> None:
    (tmp_path / "head").touch(0o644)
    replace_private(tmp_path / "head", "新しい")
    assert (mode_of(tmp_path / "head"), (tmp_path / "head").read_text(encoding="utf-8")) == (0o600, "新しい")
    assert [file.name for file in tmp_path.iterdir()] == ["head"]


def test_a_file_that_cannot_be_replaced_stays_and_nothing_is_left_beside_it(tmp_path: Path) -> None:
    (tmp_path / "pins").mkdir()
    with pytest.raises(OSError):  # noqa: PT011 - which one is up to the system
        replace_private(tmp_path / "pins", "new")
    assert [file.name for file in tmp_path.iterdir()] == ["pins"]
