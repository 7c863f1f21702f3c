"""What every file for records that are moved out of the log must do."""

from pathlib import Path

import pytest

from openai_responses_mcp.gate.audit.archiving import ArchiveFile
from openai_responses_mcp.gate.audit.records import ExecutionLog
from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.sql.log_files import ArchiveOnDisk
from tests.agents.fakes import ODD_TEXTS

RECORDS = [ExecutionLog("r1", f"c{text}", "decision", "allow", "2026", reason=text) for text in ODD_TEXTS]


@pytest.fixture
def file(tmp_path: Path) -> ArchiveFile:
    return ArchiveOnDisk(tmp_path / "old.jsonl")


def test_a_file_that_is_not_there_holds_nothing(file: ArchiveFile) -> None:
    assert file.name == "old.jsonl"
    assert file.read() is None


def test_what_was_written_is_read_back_as_it_was(file: ArchiveFile) -> None:
    file.write(RECORDS)
    assert file.read() == RECORDS


def test_a_file_that_is_there_is_not_replaced(file: ArchiveFile) -> None:
    file.write(RECORDS)
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        file.write(RECORDS[:1])
    assert file.read() == RECORDS
