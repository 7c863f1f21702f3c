"""The head in a file: how it is written, and which files are left alone."""

from pathlib import Path

import pytest

from openai_responses_mcp.gate.audit.records import BEGINNING, LOSS_ACCEPTED, UNREADABLE, ExecutionLog, LogPlace, linked
from openai_responses_mcp.gate.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.gate.sql.log_files import HeadFile
from tests.gate.sql.interrupted_writes import full_at

LOG = linked(ExecutionLog("r1", "c1", "decision", "allow", "2026"), None)
ACCEPTED = linked(ExecutionLog("log", "loss_1", LOSS_ACCEPTED, "accepted", "2026"), LOG)


def nowhere(number: int) -> str | None:
    return None


@pytest.mark.parametrize("path", ["a\0b", "a\ud800"])
def test_a_path_that_no_file_can_have_is_refused(path: str) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        HeadFile(path)


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        '{"end": [1, 2], "before": [0, ""], "confirmed": true, "finding": null}',
        "x" * 600,
    ],
)
def test_a_file_that_is_no_head_is_left_as_it_is_until_a_person_accepts_the_loss(tmp_path: Path, text: str) -> None:
    file = tmp_path / "notes.txt"
    file.write_text(text)
    head = HeadFile(file)
    assert head.read() is UNREADABLE
    head.announce(BEGINNING, LogPlace.of(LOG), nowhere)
    head.confirm(LOG)
    assert (head.read() is UNREADABLE, file.read_text()) == (True, text)
    head.announce(LogPlace.of(LOG), LogPlace.of(ACCEPTED), nowhere)
    head.confirm(ACCEPTED)
    known = head.read()
    assert known is not None
    assert (known.end, known.finding, known.is_confirmed) == (LogPlace.of(ACCEPTED), None, True)


def test_an_empty_file_is_a_head_that_was_never_written(tmp_path: Path) -> None:
    (tmp_path / "head").touch()
    assert HeadFile(tmp_path / "head").read() is None


def test_a_head_that_cannot_be_read_is_unreadable(tmp_path: Path) -> None:
    (tmp_path / "head").mkdir()
    assert HeadFile(tmp_path / "head").read() is UNREADABLE
    with pytest.raises(StoreUnavailable):
        HeadFile(tmp_path / "head").announce(BEGINNING, LogPlace.of(LOG), nowhere)


def test_a_disk_that_is_full_at_the_first_head_leaves_no_half_of_it(tmp_path: Path) -> None:
    head = HeadFile(tmp_path / "head")
    with full_at(100), pytest.raises(StoreUnavailable, match="No space left"):
        head.announce(BEGINNING, LogPlace.of(LOG), nowhere)
    assert head.read() is None


def test_the_head_is_the_owners_alone_and_nothing_lies_beside_it(tmp_path: Path) -> None:
    head = HeadFile(tmp_path / "head")
    head.announce(BEGINNING, LogPlace.of(LOG), nowhere)
    head.confirm(LOG)
    assert (tmp_path / "head").stat().st_mode & 0o777 == 0o600
    assert [file.name for file in tmp_path.iterdir()] == ["head"]
