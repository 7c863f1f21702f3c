"""What a head says about a log, in words; which logs fit is in the contract of heads."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from openai_responses_mcp.gate.audit.records import (
    BEGINNING,
    UNREADABLE,
    ExecutionLog,
    Head,
    LogFinding,
    LogPlace,
    announced,
    confirmed,
    linked,
    misfit_of_log,
)


def chain(length: int, run_id: str = "r1") -> list[ExecutionLog]:
    logs: list[ExecutionLog] = []
    for number in range(length):
        log = ExecutionLog(run_id, f"c{number}", "decision", "allow", "2026-11-16T09:00:00.000000+00:00")
        logs.append(linked(log, logs[-1] if logs else None))
    return logs


LOGS = chain(4)
END = LogPlace.of(LOGS[1])
HEAD = Head(END, END, is_confirmed=True)
FOUND = LogFinding(1, "something")


def found(head: Head | None, logs: Sequence[ExecutionLog], *, is_sole_writer: bool = True) -> LogFinding | None:
    return misfit_of_log(head, logs, is_sole_writer=is_sole_writer)


def test_a_log_that_does_not_fit_its_head_is_said_in_words() -> None:
    assert found(None, LOGS) == LogFinding(1, "the head of the log is missing")
    assert found(HEAD, LOGS[:1]) == LogFinding(2, "the tail from record 2 was cut, or an old copy was put back")
    rebuilt = LogFinding(2, "record 2 is not the one that was written: the chain was rebuilt")
    assert found(HEAD, chain(2, "r2")) == rebuilt
    assert found(HEAD, chain(4, "r2"), is_sole_writer=False) == rebuilt
    assert found(HEAD, LOGS) == LogFinding(3, "record 3 was inserted after the end of the log")
    assert found(UNREADABLE, []) == LogFinding(1, "the head of the log cannot be read")


def test_records_that_were_announced_and_never_written_leave_the_log_to_others() -> None:
    head = Head(LogPlace(3, "never written"), LogPlace.of(LOGS[1]))
    assert found(head, LOGS, is_sole_writer=False) is None
    assert found(head, chain(4, "r2"), is_sole_writer=False) is not None
    first = Head(LogPlace(1, "never written"), BEGINNING)
    for logs in (LOGS, LOGS[2:]):
        assert found(first, logs, is_sole_writer=False) is None


@pytest.mark.parametrize("is_sole_writer", [True, False])
def test_a_head_is_announced_with_what_it_found(is_sole_writer: bool) -> None:
    before, end = LogPlace.of(LOGS[2]), LogPlace.of(LOGS[3])
    hashes = {log.sequence: log.hash for log in LOGS[:3]}
    head = announced(HEAD, before, end, hashes.get, is_sole_writer=is_sole_writer)
    inserted = LogFinding(3, "record 3 was inserted after the end of the log")
    assert head == Head(end, before, is_confirmed=False, finding=inserted if is_sole_writer else None)
    assert head.ends == (end, before)
    assert (head.accepted_to, head.archived_to) == (0, 0)


def test_a_head_is_confirmed_at_its_record_and_never_moves_back() -> None:
    third = LogPlace.of(LOGS[2])
    ends_there = Head(third, third, is_confirmed=True)
    assert ends_there.ends == (third,)
    assert confirmed(None, LOGS[2], is_accepting=False) == ends_there
    assert confirmed(HEAD, LOGS[2], is_accepting=False) == ends_there
    assert confirmed(Head(third, END), LOGS[2], is_accepting=False) == ends_there
    assert confirmed(ends_there, LOGS[1], is_accepting=False) is None
    assert confirmed(ends_there, LOGS[1], is_accepting=True) == replace(ends_there, accepted=LogPlace.of(LOGS[1]))
