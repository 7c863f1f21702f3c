"""Files that belong to their owner only."""

import os
from pathlib import Path

import pytest

from openai_responses_mcp.agents import Agent, create_runner
from openai_responses_mcp.agents.testing import ScriptedModel
from openai_responses_mcp.gate.sql.private_files import create_private, make_private, replace_private
from tests.agents.fakes import FakeJudge, within


def mode_of(file: Path) -> int:
    return file.stat().st_mode & 0o777


def test_a_new_file_is_the_owners_alone(tmp_path: Path) -> None:
    assert create_private(tmp_path / "new") is True
    assert mode_of(tmp_path / "new") == 0o600


def test_a_file_that_is_there_already_is_not_created_again(tmp_path: Path) -> None:
    (tmp_path / "there").write_text("kept")
    (tmp_path / "there").chmod(0o644)
    assert create_private(tmp_path / "there") is False
    assert (mode_of(tmp_path / "there"), (tmp_path / "there").read_text()) == (0o644, "kept")


def test_a_file_that_others_could_read_becomes_the_owners_alone(tmp_path: Path) -> None:
    (tmp_path / "open").write_text("kept")
    (tmp_path / "open").chmod(0o644)
    make_private(tmp_path / "open")
    assert (mode_of(tmp_path / "open"), (tmp_path / "open").read_text()) == (0o600, "kept")


def test_a_file_of_somebody_else_is_used_as_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*args: object) -> None:
        raise PermissionError

    (tmp_path / "theirs").touch(0o644)
    monkeypatch.setattr(os, "chmod", refuse)
    make_private(tmp_path / "theirs")
    assert mode_of(tmp_path / "theirs") == 0o644


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


async def test_a_runner_keeps_its_store_in_a_private_file(tmp_path: Path, sqlite_url: str) -> None:
    runner = create_runner(safety_agent=FakeJudge(), store=sqlite_url)
    await within(runner.run(Agent(name="A", model=ScriptedModel("done")), "go"))
    assert mode_of(tmp_path / "agents.db") == 0o600
