"""What every book of decisions must do: the decision and its record, both or neither."""

import asyncio
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from openai_responses_mcp.gate.approvals.controller import RecordedFirst
from openai_responses_mcp.gate.approvals.models import ApprovalStore, DecisionBook
from openai_responses_mcp.gate.audit.records import ExecutionLog, ExecutionLogStore
from openai_responses_mcp.gate.errors import StoreUnavailable
from openai_responses_mcp.gate.sql.sql_approvals import SqlApprovalStore, SqlDecisionBook
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from tests.agents.fake_stores import FakeApprovalStore, FakeExecutionLogStore, FakeHead
from tests.agents.fakes import BreakableLogStore, within
from tests.contracts.guarded.test_approval_store import NOW, a_choice, a_record

RECORD = ExecutionLog("r1", "c1", "approval", "approved", NOW)


class Case:
    """A book and the stores behind it."""

    def __init__(self, book: DecisionBook, approvals: ApprovalStore, logs: ExecutionLogStore) -> None:
        self.book = book
        self.approvals = approvals
        self.logs = logs

    async def status(self) -> str | None:
        record = await self.approvals.get("a1")
        return record.request.status if record else None


class BrokenHead(FakeHead):
    def announce(self, *places: object) -> None:
        raise StoreUnavailable("broken on purpose")


@pytest.fixture(params=["apart", "sqlite-file", pytest.param("postgres", marks=pytest.mark.slow)])
def case(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    yield from _cases(request, tmp_path, is_broken=False)


@pytest.fixture(params=["apart", "sqlite-file", pytest.param("postgres", marks=pytest.mark.slow)])
def broken(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Case]:
    yield from _cases(request, tmp_path, is_broken=True)


def _cases(request: pytest.FixtureRequest, tmp_path: Path, *, is_broken: bool) -> Iterator[Case]:
    if request.param == "apart":
        approvals, logs = FakeApprovalStore(), BreakableLogStore(FakeExecutionLogStore())
        logs.breaks_at = lambda log: is_broken
        yield Case(RecordedFirst(approvals, logs), approvals, logs)
        return
    is_file = request.param == "sqlite-file"
    database = SqlDatabase(f"sqlite:///{tmp_path}/agents.db" if is_file else request.getfixturevalue("postgres")())
    store = SqlExecutionLogStore(database, BrokenHead() if is_broken else None)
    yield Case(SqlDecisionBook(database, store), SqlApprovalStore(database), store)
    database.close()


async def test_a_decision_and_its_record_are_both_kept(case: Case) -> None:
    await case.approvals.create([a_record()])
    assert await case.book.decide(a_choice(), RECORD) is True
    assert await case.status() == "approved"
    assert [(log.event, log.decision) for log in await case.logs.query()] == [("approval", "approved")]


async def test_a_second_decision_leaves_no_record(case: Case) -> None:
    await case.approvals.create([a_record()])
    await case.book.decide(a_choice(), RECORD)
    denial = replace(a_choice(), status="denied", token_hash="other")
    assert await case.book.decide(denial, replace(RECORD, decision="denied")) is False
    assert await case.book.decide(replace(a_choice(), token_hash="third"), RECORD) is False
    assert await case.status() == "approved"
    assert len(await case.logs.query()) == 1


async def test_of_many_decisions_at_once_one_is_kept_and_recorded(case: Case) -> None:
    await case.approvals.create([a_record()])
    choices = [replace(a_choice(), token_hash=f"hash-{number}") for number in range(8)]
    decided = await within(asyncio.gather(*(case.book.decide(choice, RECORD) for choice in choices)))
    assert decided.count(True) == 1
    assert len(await case.logs.query()) == 1


async def test_a_decision_that_cannot_be_recorded_does_not_count(broken: Case) -> None:
    await broken.approvals.create([a_record()])
    with pytest.raises(StoreUnavailable):
        await broken.book.decide(a_choice(), RECORD)
    assert await broken.status() == "pending"
    assert await broken.logs.query() == []
    assert await broken.approvals.consume("p1", None, NOW) is False


async def test_apart_a_decision_that_was_cut_off_after_its_record_can_be_made_again() -> None:
    approvals, logs = FakeApprovalStore(), FakeExecutionLogStore()
    await approvals.create([a_record()])
    await logs.append(RECORD)
    book = RecordedFirst(approvals, logs)
    denial = replace(a_choice(), status="denied")
    assert await book.decide(denial, replace(RECORD, decision="denied")) is False
    assert await book.decide(a_choice(), RECORD) is True
