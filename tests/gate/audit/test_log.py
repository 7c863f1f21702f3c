"""The audit log: masked, chained, verifiable, and honest about what it could not write."""

import asyncio
import logging
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, delete, select, update

from openai_responses_mcp.gate.audit.log import AuditEntry, AuditLog, AuditMode
from openai_responses_mcp.gate.audit.records import ExecutionLog, Head, first_break, linked
from openai_responses_mcp.gate.errors import AgentsError, RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.json_values import digest
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.log_files import HeadFile
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from openai_responses_mcp.gate.sql.sql_tables import logs as table
from tests.agents.fake_stores import FakeExecutionLogStore
from tests.agents.fakes import BreakableLogStore, FakeClock

Tampering = Callable[["Office"], object]


def an_entry(call: str = "c1", event: str = "decision", **fields: str) -> AuditEntry:
    return AuditEntry("r1", call, event, "allow", **fields)  # type: ignore[arg-type]


class Office:
    """An audit log in a SQLite file with its head beside it, and ways to tamper with both."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.folder = folder
        self.head = HeadFile(folder / "agents.db.head")
        self.clock = clock
        self.database = SqlDatabase(f"sqlite:///{folder}/agents.db")
        self.reopen()

    def reopen(self) -> None:
        """As another process would."""
        self.database.close()
        self.database = SqlDatabase(f"sqlite:///{self.folder}/agents.db")
        self.logs = SqlExecutionLogStore(self.database, self.head)
        self.audit = AuditLog(self.logs, self.clock, Masking({}), head=self.head)

    async def write(self, count: int) -> None:
        for number in range(count):
            await self.audit.record(an_entry(f"c{number}"))

    def tamper(self, job: Callable[[Connection], object]) -> None:
        self.database.work_now(job)


@pytest.fixture
def office(tmp_path: Path, clock: FakeClock) -> Office:
    return Office(tmp_path, clock)


class SlowLogStore(FakeExecutionLogStore):
    """Holds records of `r1` back until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.is_asked = asyncio.Event()
        self.may_go_on = asyncio.Event()

    async def append(self, log: ExecutionLog) -> ExecutionLog:
        if log.run_id == "r1" and not self.may_go_on.is_set():
            self.is_asked.set()
            await self.may_go_on.wait()
        return await super().append(log)


def in_memory(clock: FakeClock, mode: AuditMode = "best_effort") -> tuple[AuditLog, BreakableLogStore]:
    store = BreakableLogStore(SqlExecutionLogStore(SqlDatabase()))
    return AuditLog(store, clock, Masking({}), mode), store


async def test_a_record_is_masked_before_it_is_stored(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    key = "sk-0123456789abcdef"
    entry = AuditEntry(
        "r1", "c1", "outcome", "failed", "t", "mcp", 3, f"because {key}", {"password": "x", "a": key}, key
    )
    await audit.record(entry)
    (log,) = await audit.query()
    assert key not in str(log)
    label = "‹sk-…, 19 characters›"
    assert log.arguments == {"password": "‹password, 1 character›", "a": label}
    assert (log.reason, log.comment) == (f"because {label}", label)
    assert log.timestamp == "2026-11-16T09:00:00.000000+00:00"


async def test_facts_that_were_not_given_stay_empty_in_the_record(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    await audit.record(AuditEntry("r1", "c1", "decision", "allow"))
    (log,) = await audit.query()
    said = {name: value for name, value in asdict(replace(log, sequence=0, previous_hash="", hash="")).items() if value}
    moment = "2026-11-16T09:00:00.000000+00:00"
    assert said == {"run_id": "r1", "tool_call_id": "c1", "event": "decision", "decision": "allow", "timestamp": moment}
    assert replace(log, sequence=0, previous_hash="", hash="") == ExecutionLog("r1", "c1", "decision", "allow", moment)


@pytest.mark.parametrize(
    "since",
    ["2026-11-16T18:30:00+09:00", "2026-11-16T09:30:00", datetime(2026, 11, 16, 9, 30, tzinfo=UTC)],
)
async def test_records_are_found_by_time_in_any_zone(clock: FakeClock, since: str | datetime) -> None:
    audit, _ = in_memory(clock)
    await audit.record(an_entry("c1"))
    clock.move(3600)
    await audit.record(an_entry("c2"))
    assert [log.tool_call_id for log in await audit.query(since=since)] == ["c2"]


@pytest.mark.parametrize("since", ["yesterday", "0001-01-01T00:00:00+09:00", 5, "2026-11-16\0"])
async def test_an_invalid_time_is_refused(clock: FakeClock, since: str) -> None:
    audit, _ = in_memory(clock)
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        await audit.query(since=since)


# ---------------------------------------------------------------------------------------------------------------------
# A store that fails


async def test_best_effort_goes_on_warns_and_writes_later(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    audit, store = in_memory(clock)
    store.is_broken = True
    await audit.record(an_entry("c1"))
    await audit.record(AuditEntry("r3", "c1", "decision", "allow"), AuditEntry("r2", "c1", "decision", "allow"))
    warning = "AGENTS-E-LOG-STORE: broken on purpose; the record is kept in memory"
    assert caplog.record_tuples == [
        ("openai_responses_mcp.agents", logging.WARNING, f"{warning} {{'unwritten': 1, 'runs': ['r1']}}"),
        ("openai_responses_mcp.agents", logging.WARNING, f"{warning} {{'unwritten': 3, 'runs': ['r2', 'r3']}}"),
    ]
    store.is_broken = False
    await audit.record(an_entry("c2"))
    assert audit.unwritten == ()
    assert [log.run_id + log.tool_call_id for log in await audit.query()] == ["r1c1", "r3c1", "r2c1", "r1c2"]
    assert (await audit.verify()).is_intact


async def test_a_record_that_did_arrive_is_not_written_twice(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    audit, store = in_memory(clock)

    async def arrives_and_fails(logs: Sequence[ExecutionLog]) -> list[ExecutionLog]:
        await BreakableLogStore.append_all(store, logs)
        raise StoreUnavailable("the line was cut")

    store.append_all = arrives_and_fails  # type: ignore[method-assign]
    await audit.record(an_entry())
    del store.append_all
    with caplog.at_level(logging.WARNING):
        await audit.flush()
    assert "already" in caplog.text
    assert len(await audit.query()) == 1


async def test_noted_records_are_written_with_the_next_record_of_their_run(clock: FakeClock) -> None:
    audit, store = in_memory(clock)
    audit.note(an_entry("c1"))
    audit.note(AuditEntry("r2", "d1", "decision", "allow"))
    assert await store.query() == []
    await audit.record(an_entry("c1", "started"))
    assert [(log.tool_call_id, log.event) for log in await store.query()] == [("c1", "decision"), ("c1", "started")]
    await audit.settle("r1")
    await audit.settle("r2")
    assert [log.run_id for log in await store.query()] == ["r1", "r1", "r2"]
    audit.note(an_entry("c2"))
    assert len(await audit.query()) == 4


async def test_noted_records_are_handed_over_and_kept_if_the_write_fails(clock: FakeClock) -> None:
    audit, store = in_memory(clock)
    audit.note(an_entry("c1"))

    async def fail(noted: list[ExecutionLog]) -> None:
        raise StoreUnavailable("gone")

    with pytest.raises(StoreUnavailable):
        await audit.write_with(fail, {"r1"})
    assert [log.tool_call_id for log in audit.unwritten] == ["c1"]
    audit.note(an_entry("c2"))
    assert [log.tool_call_id for log in await audit.write_with(store.append_all, {"r1"})] == ["c2"]
    assert [log.tool_call_id for log in await store.query()] == ["c1", "c2"]


async def test_the_mode_is_asked_for_with_every_record(clock: FakeClock) -> None:
    modes: list[AuditMode] = ["best_effort", "required"]
    store = BreakableLogStore(SqlExecutionLogStore(SqlDatabase()))
    audit = AuditLog(store, clock, Masking({}), lambda: modes[0])
    store.is_broken = True
    await audit.record(AuditEntry("r1", "c1", "started", "started"))
    del modes[0]
    with pytest.raises(StoreUnavailable):
        await audit.record(AuditEntry("r1", "c2", "started", "started"))


@pytest.mark.parametrize("mode", ["best_effort", "required"])
async def test_kept_records_cause_a_warning_and_are_written_before_the_next_one(
    clock: FakeClock, mode: AuditMode, caplog: pytest.LogCaptureFixture
) -> None:
    audit, _ = in_memory(clock, mode)
    audit.keep("it was gone", AuditEntry("r1", "c1", "outcome", "completed"))
    assert "AGENTS-E-LOG-STORE: it was gone; the record is kept in memory" in caplog.text
    assert [log.tool_call_id for log in audit.unwritten] == ["c1"]
    await audit.record(AuditEntry("r1", "c2", "started", "started"))
    assert [log.tool_call_id for log in await audit.query()] == ["c1", "c2"]


async def test_a_prepared_record_is_masked_and_not_written_yet(clock: FakeClock) -> None:
    audit, store = in_memory(clock)
    audit.keep("it was gone", an_entry("c1"))
    record = await audit.prepared(an_entry("c1", "approval", comment="sk-0123456789abcdef"))
    assert (record.event, record.comment) == ("approval", "‹sk-…, 19 characters›")
    assert [log.event for log in await store.query()] == ["decision"]


async def test_record_for_sure_writes_or_raises(clock: FakeClock) -> None:
    audit, store = in_memory(clock, "best_effort")
    await audit.record_for_sure(an_entry("c1"))
    store.is_broken = True
    with pytest.raises(StoreUnavailable):
        await audit.record_for_sure(an_entry("c2"))
    store.is_broken = False
    assert audit.unwritten == ()
    assert [log.tool_call_id for log in await audit.query()] == ["c1"]


async def test_a_call_starts_in_the_log_after_the_decisions_that_were_noted_before(clock: FakeClock) -> None:
    """Two calls of one turn start at once. The first write includes the decisions and is slow."""
    store = SlowLogStore()
    audit = AuditLog(store, clock, Masking({}))
    for call in ("c1", "c2"):
        audit.note(an_entry(call))
    starts = [asyncio.create_task(audit.record(an_entry(call, "started"))) for call in ("c1", "c2")]
    await asyncio.wait_for(store.is_asked.wait(), 5)
    other = AuditEntry("r2", "c1", "decision", "deny")
    await asyncio.wait_for(audit.record(other), 5)
    store.may_go_on.set()
    await asyncio.wait_for(asyncio.gather(*starts), 5)
    logs = [(log.run_id, log.tool_call_id, log.event) for log in await store.query()]
    assert logs == [
        ("r2", "c1", "decision"),
        ("r1", "c1", "decision"),
        ("r1", "c2", "decision"),
        ("r1", "c1", "started"),
        ("r1", "c2", "started"),
    ]


async def test_a_call_starts_in_the_log_after_what_is_written_late(clock: FakeClock) -> None:
    store = SlowLogStore()
    audit = AuditLog(store, clock, Masking({}))
    audit.note(an_entry("c1"))
    first = asyncio.create_task(audit.record(an_entry("c1", "started")))
    await asyncio.wait_for(store.is_asked.wait(), 5)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(first, 5)
    assert [log.event for log in audit.unwritten] == ["decision"]
    late = asyncio.create_task(audit.flush())
    await asyncio.sleep(0)
    prepared = asyncio.create_task(audit.prepared(an_entry("c1", "approval")))
    await asyncio.sleep(0)
    assert not prepared.done()
    store.may_go_on.set()
    await asyncio.wait_for(asyncio.gather(late, prepared), 5)
    assert [log.event for log in await store.query()] == ["decision"]


async def test_ids_that_are_masked_alike_stay_different(clock: FakeClock) -> None:
    audit, store = in_memory(clock)
    for number in "12":
        await audit.record(an_entry(f"sk-0123456789abcde{number}"))
    first, second = [log.tool_call_id for log in await store.query()]
    assert first.startswith("‹sk-…, 19 characters›…")
    assert first != second


@pytest.mark.parametrize("mode", ["best_effort", "required"])
async def test_a_record_that_the_store_refuses_does_not_block_the_others(
    clock: FakeClock, mode: AuditMode, caplog: pytest.LogCaptureFixture
) -> None:
    audit, store = in_memory(clock, mode)
    store.refuses = lambda log: log.tool_call_id == "bad"
    if mode == "required":
        with pytest.raises(RecordRefused):
            await audit.record(an_entry("bad"))
    else:
        await audit.record(an_entry("bad"))
    await audit.record(an_entry("c1"))
    await audit.record(an_entry("c2"))
    assert [log.tool_call_id for log in await audit.query()] == ["c1", "c2"]
    assert [log.tool_call_id for log in audit.unwritten] == ([] if mode == "required" else ["bad"])
    assert (await audit.verify()).is_intact


async def test_the_longest_id_is_kept_as_it_is_and_a_longer_one_by_its_beginning_and_its_hash(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    await audit.record(an_entry("x" * 128), an_entry("x" * 129))
    longest, longer = (log.tool_call_id for log in await audit.query())
    assert longest == "x" * 128
    assert longer == "x" * 128 + "…" + digest("x" * 129)


# ---------------------------------------------------------------------------------------------------------------------
# The chain


async def test_an_untouched_log_is_intact(office: Office) -> None:
    assert (await office.audit.verify()).is_intact
    await office.write(5)
    verification = await office.audit.verify()
    assert (verification.is_intact, verification.records, verification.uncovered) == (True, 5, "")
    with pytest.raises(AgentsError, match="intact"):
        await office.audit.accept_loss("just in case")


def chain(length: int) -> list[ExecutionLog]:
    logs: list[ExecutionLog] = []
    for number in range(length):
        log = ExecutionLog("r1", f"c{number}", "decision", "allow", "2026", arguments={"n": number})
        logs.append(linked(log, logs[-1] if logs else None))
    return logs


DOZEN = chain(12)


def breaks(logs: Sequence[ExecutionLog]) -> tuple[int, int]:
    """Where the log breaks as it is, and with renumbered records that leave no gap."""
    found, renumbered = (
        first_break(one) for one in (logs, [replace(log, sequence=n) for n, log in enumerate(logs, start=1)])
    )
    assert found is not None
    assert renumbered is not None
    return found.sequence, renumbered.sequence


def test_every_changed_removed_inserted_or_reordered_record_is_found() -> None:
    for place in range(11):
        before, after = DOZEN[:place], DOZEN[place + 1 :]
        changed = [*before, replace(DOZEN[place], decision="deny"), *after]
        assert breaks(changed) == (place + 1, place + 1)
        assert first_break(changed) == (place + 1, f"record {place + 1} was changed")
        assert breaks([*before, *after]) == (place + 1, place + 1)
        assert breaks([*before, after[0], DOZEN[place], *after[1:]]) == (place + 1, place + 1)
        forged = linked(ExecutionLog("r1", "forged", "decision", "allow", "2026"), DOZEN[place])
        assert breaks([*before, DOZEN[place], forged, *after]) == (place + 3, place + 3)


def test_a_record_with_a_good_hash_of_its_own_must_still_follow() -> None:
    stranger = linked(ExecutionLog("r1", "x", "decision", "allow", "2026"), linked(DOZEN[5], None))
    found = first_break([DOZEN[0], stranger])
    assert found is not None
    assert found.sequence == 2


async def test_any_changed_field_is_found_in_the_database(clock: FakeClock) -> None:
    database = SqlDatabase()
    audit, third = AuditLog(SqlExecutionLogStore(database), clock, Masking({})), table.c.sequence == 3
    await audit.record(*(an_entry(f"c{number}") for number in range(5)))
    row = database.work_now(lambda c: c.execute(select(table).where(third)).one())._asdict()
    for name in row.keys() - {"sequence"}:
        value: object = 4 if name == "risk_level" else '{"x": 1}' if name == "arguments" else "x"
        database.work_now(partial(Connection.execute, statement=update(table).where(third).values({name: value})))
        assert (await audit.verify()).first_bad == 3, name
        database.work_now(partial(Connection.execute, statement=update(table).where(third).values(row)))
    assert (await audit.verify()).is_intact


def cut_from(number: int) -> Tampering:
    return lambda office: office.tamper(lambda c: c.execute(delete(table).where(table.c.sequence >= number)))


def make_unreadable(office: Office) -> None:
    values = {"arguments": "[" * 100_000}
    office.tamper(lambda c: c.execute(update(table).where(table.c.sequence == 2).values(values)))


def spoil_the_head(office: Office) -> None:
    (office.folder / "agents.db.head").write_text("nonsense")


def put_an_old_copy_back(office: Office) -> None:
    office.reopen()
    shutil.copy(office.folder / "old.db", office.folder / "agents.db")


def add_by_hand(office: Office) -> None:
    other = SqlExecutionLogStore(office.database)
    office.tamper(lambda c: other.append_in(c, [ExecutionLog("r1", "forged", "decision", "allow", "2026")]))


def write_a_whole_new_chain(office: Office) -> None:
    other = SqlExecutionLogStore(office.database)
    forged = [ExecutionLog("r1", f"c{number}", "decision", "deny", "2026") for number in range(4)]
    office.tamper(lambda c: (c.execute(delete(table)), other.append_in(c, forged)))


# With the number of the first bad record.
TAMPERINGS: dict[str, tuple[Tampering, int]] = {
    "remove one": (lambda office: office.tamper(lambda c: c.execute(delete(table).where(table.c.sequence == 2))), 2),
    "cut the last": (cut_from(4), 4),
    "cut everything": (cut_from(1), 1),
    "delete the head": (lambda office: (office.folder / "agents.db.head").unlink(), 1),
    "spoil the head": (spoil_the_head, 1),
    "put an old copy back": (put_an_old_copy_back, 3),
    "add by hand": (add_by_hand, 5),
    "write a whole new chain": (write_a_whole_new_chain, 4),
    "make it unreadable": (make_unreadable, 2),
}


@pytest.fixture(params=TAMPERINGS)
async def tampered(request: pytest.FixtureRequest, office: Office) -> Office:
    """Four records that were tampered with."""
    await office.write(2)
    office.database.close()
    shutil.copy(office.folder / "agents.db", office.folder / "old.db")
    await office.audit.record(an_entry("c2"), an_entry("c3"))
    tamper, first_bad = TAMPERINGS[request.param]
    tamper(office)
    assert (await office.audit.verify()).first_bad == first_bad
    return office


async def test_tampering_stays_a_finding_while_the_log_grows(tampered: Office) -> None:
    before = await tampered.audit.verify()
    assert not before.is_intact
    for number in range(10, 15):
        await tampered.audit.record(an_entry(f"c{number}"))
    tampered.reopen()
    await tampered.audit.record(an_entry("c15"))
    after = await tampered.audit.verify()
    assert (after.is_intact, after.first_bad, after.problem) == (False, before.first_bad, before.problem)


async def accepted_loss(office: Office) -> ExecutionLog:
    spoil_the_head(office)
    return await office.audit.accept_loss("the disk was replaced")


async def test_a_person_accepts_a_loss_and_that_is_a_record(tampered: Office) -> None:
    await tampered.audit.record(an_entry("c10"))
    problem = (await tampered.audit.verify()).problem
    record = await tampered.audit.accept_loss("the disk was replaced, sk-0123456789abcdef", by="sato")
    assert (record.event, record.decision, record.reason) == ("loss_accepted", "accepted", problem)
    assert (record.comment, record.arguments["by"]) == ("the disk was replaced, ‹sk-…, 19 characters›", "sato")
    verification = await tampered.audit.verify()
    assert (verification.is_intact, verification.problem, verification.findings) == (True, "", ())
    assert verification.accepted == (
        f"{problem}; accepted in record {record.sequence}: the disk was replaced, ‹sk-…, 19 characters›",
    )
    await tampered.audit.record(an_entry("c11"))
    tampered.reopen()
    assert (await tampered.audit.verify()).is_intact


async def test_acceptances_are_records_of_the_log_itself_each_with_an_id(office: Office) -> None:
    await office.write(1)
    first, second = [await accepted_loss(office) for _ in range(2)]
    assert (first.run_id, second.run_id) == ("log", "log")
    assert re.fullmatch(r"loss_[0-9a-f]{32}", first.tool_call_id)
    assert first.tool_call_id != second.tool_call_id
    assert first.arguments["by"] == ""


async def test_a_loss_is_accepted_with_a_reason_of_1_to_2000_characters(office: Office) -> None:
    await office.write(2)
    spoil_the_head(office)
    wrong: list[Any] = ["", "  ", "x" * 2001, None]
    for reason in wrong:
        with pytest.raises(AgentsError, match="Say in 1 to 2000 characters why the loss is accepted"):
            await office.audit.accept_loss(reason)
    assert not (await office.audit.verify()).is_intact
    for reason in ("x", "x" * 2000):
        spoil_the_head(office)
        assert (await office.audit.accept_loss(reason)).comment == reason
        assert (await office.audit.verify()).is_intact


async def test_a_log_is_verified_while_others_write(office: Office) -> None:
    await office.write(3)

    class Busy(HeadFile):
        """Another process writes between any two reads of the head."""

        reads = 0

        def read(self) -> Head | None:
            Busy.reads += 1
            head = super().read()
            office.tamper(
                lambda c: office.logs.append_in(c, [ExecutionLog("r2", str(Busy.reads), "decision", "deny", "2026")])
            )
            return head

    busy = AuditLog(office.logs, FakeClock(), Masking({}), head=Busy(office.folder / "agents.db.head"))
    assert (await busy.verify()).is_intact
    assert Busy.reads == 10  # Five looks of two reads each; then the last one has to do.


async def test_a_head_that_cannot_be_written_is_a_store_that_fails(tmp_path: Path, clock: FakeClock) -> None:
    head = HeadFile(tmp_path / "no folder" / "head")
    audit = AuditLog(SqlExecutionLogStore(SqlDatabase(), head), clock, Masking({}), "required", head)
    with pytest.raises(StoreUnavailable, match="head"):
        await audit.record(an_entry())
    assert await audit.query() == []


def test_hashes_are_the_same_in_every_version() -> None:
    log = ExecutionLog("r", "c", "decision", "allow", "2026-11-18")
    more = replace(log, reasons=(Reason("rule", "allow", {"rule": 1}),), who="alice")
    hashes = [linked(one, None).hash for one in (log, more, replace(more, who="bob"))]
    assert [one[:8] for one in hashes] == ["ba111315", "62c220a0", "03142a81"]
