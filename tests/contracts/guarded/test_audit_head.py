"""What every head of the log must do, asked of the fake and of the file."""

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from openai_responses_mcp.gate.audit.records import (
    LOSS_ACCEPTED,
    AuditHead,
    ExecutionLog,
    LogPlace,
    linked,
    misfit_of_log,
)
from openai_responses_mcp.gate.sql.log_files import HeadFile
from tests.agents.fake_stores import FakeHead


def fake(folder: Path) -> AuditHead:
    return FakeHead()


def in_a_file(folder: Path) -> AuditHead:
    return HeadFile(folder / "head")


@pytest.fixture(params=[pytest.param(fake, id="fake"), pytest.param(in_a_file, id="file")])
def head(request: pytest.FixtureRequest, tmp_path: Path) -> AuditHead:
    make: Callable[[Path], AuditHead] = request.param
    return make(tmp_path)


def chain(length: int, decision: str = "allow") -> list[ExecutionLog]:
    logs: list[ExecutionLog] = []
    for number in range(length):
        log = ExecutionLog("r1", f"c{number}", "decision", decision, "2026-11-16T09:00:00.000000+00:00")
        logs.append(linked(log, logs[-1] if logs else None))
    return logs


def announce(head: AuditHead, logs: Sequence[ExecutionLog], *following: ExecutionLog) -> None:
    """Before the records follow those that are in the log."""
    hashes = {log.sequence: log.hash for log in logs}
    head.announce(LogPlace.of(logs[-1] if logs else None), LogPlace.of(following[-1]), hashes.get)


def write(head: AuditHead, logs: Sequence[ExecutionLog], after: int = 0) -> None:
    for place in range(after, len(logs)):
        announce(head, logs[:place], logs[place])
        head.confirm(logs[place])


def problem(head: AuditHead, logs: Sequence[ExecutionLog]) -> int | None:
    """The number of the record where the log does not fit."""
    found = misfit_of_log(head.read(), logs, is_sole_writer=head.is_sole_writer)
    return found.sequence if found else None


def test_records_can_be_announced_together(head: AuditHead) -> None:
    logs = chain(5)
    write(head, logs[:2])
    announce(head, logs[:2], *logs[2:])
    assert (problem(head, logs), problem(head, logs[:2]), problem(head, logs[:3])) == (None, None, 4)
    head.confirm(logs[-1])
    assert (problem(head, logs), problem(head, logs[:2])) == (None, 3)


def test_a_cut_tail_is_found_at_its_first_record(head: AuditHead) -> None:
    logs = chain(3)
    write(head, logs)
    assert [problem(head, logs[:left]) for left in range(3)] == [1, 2, 3]


def test_an_announced_record_may_be_there_or_not(head: AuditHead) -> None:
    logs = chain(3)
    write(head, logs[:2])
    announce(head, logs[:2], logs[2])
    assert problem(head, logs) is None
    assert problem(head, logs[:2]) is None
    assert problem(head, logs[:1]) is not None


def test_a_late_confirmation_does_not_take_the_head_back(head: AuditHead) -> None:
    logs = chain(3)
    write(head, logs)
    head.confirm(logs[0])
    assert problem(head, logs) is None
    assert problem(head, logs[:1]) is not None


@pytest.mark.parametrize("left", [0, 1, 2])
def test_a_finding_stays_while_the_log_goes_on(head: AuditHead, left: int) -> None:
    logs = chain(3)
    write(head, logs)
    others = chain(left)
    for number in range(left, 6):
        others.append(
            linked(ExecutionLog("r2", f"d{number}", "decision", "allow", "2026"), others[-1] if others else None)
        )
    write(head, others, after=left)
    assert problem(head, others) == left + 1


def test_a_head_that_begins_with_a_log_that_is_there_already_says_so(head: AuditHead) -> None:
    logs = chain(4)
    write(head, logs, after=2)
    assert problem(head, logs) == 1


def test_a_person_accepts_a_finding(head: AuditHead) -> None:
    logs = chain(3)
    write(head, logs, after=2)
    logs.append(linked(ExecutionLog("log", "loss_1", LOSS_ACCEPTED, "accepted", "2026"), logs[-1]))
    announce(head, logs[:3], logs[3])
    assert problem(head, logs) == 1
    head.confirm(logs[3])
    assert problem(head, logs) is None
    assert problem(head, logs[:3]) == 4
