"""What every head of the log must do, asked of the fake and of the file."""

from collections.abc import Callable
from pathlib import Path

import pytest

from openai_responses_mcp.agents.adapters.stores.head_file import HeadFile
from openai_responses_mcp.agents.audit.chain import linked
from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.audit.ports import AuditHead
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


def write(head: AuditHead, logs: list[ExecutionLog]) -> None:
    for log in logs:
        head.announce(log)
        head.confirm(log)


def test_an_empty_log_needs_no_head(head: AuditHead) -> None:
    assert head.problem_with([]) is None


def test_a_log_that_was_written_with_the_head_fits(head: AuditHead) -> None:
    logs = chain(3)
    write(head, logs)
    assert head.problem_with(logs) is None


def test_a_log_without_its_head_does_not_fit(head: AuditHead) -> None:
    problem = head.problem_with(chain(3))
    assert problem is not None
    assert problem[0] == 1


def test_a_cut_tail_is_found_at_its_first_record(head: AuditHead) -> None:
    logs = chain(3)
    write(head, logs)
    for left in range(3):
        problem = head.problem_with(logs[:left])
        assert problem is not None
        assert problem[0] == left + 1


def test_an_announced_record_may_be_there_or_not(head: AuditHead) -> None:
    logs = chain(3)
    write(head, logs[:2])
    head.announce(logs[2])
    assert head.problem_with(logs) is None
    assert head.problem_with(logs[:2]) is None
    assert head.problem_with(logs[:1]) is not None


def test_a_chain_made_anew_is_found(head: AuditHead) -> None:
    write(head, chain(3))
    problem = head.problem_with(chain(3, "deny"))
    assert problem is not None
    assert problem[0] == 3


def test_a_record_that_the_head_never_saw_is_found(head: AuditHead) -> None:
    logs = chain(3)
    write(head, logs[:2])
    problem = head.problem_with(logs)
    assert problem is not None
    assert problem[0] == 3


def test_a_late_confirmation_does_not_take_the_head_back(head: AuditHead) -> None:
    logs = chain(3)
    write(head, logs)
    head.confirm(logs[0])
    assert head.problem_with(logs) is None
    assert head.problem_with(logs[:1]) is not None
