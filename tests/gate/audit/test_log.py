"""The audit log: masked, chained, verifiable, and honest about what it could not write."""

import asyncio
import logging
import re
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, insert, select, text, update

from openai_responses_mcp.gate.audit.log import AuditEntry, AuditLog, AuditMode
from openai_responses_mcp.gate.audit.records import BEGINNING, ExecutionLog, Head, LogPlace, first_break, linked
from openai_responses_mcp.gate.errors import AgentsError, DuplicateRecord, RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.json_values import digest
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.log_files import HeadFile
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from openai_responses_mcp.gate.sql.sql_tables import logs as table
from tests.agents.fake_stores import FakeExecutionLogStore
from tests.agents.fakes import BreakableLogStore, FakeClock


def an_entry(call: str = "c1", event: str = "decision", **fields: str) -> AuditEntry:
    return AuditEntry("r1", call, event, "allow", **fields)  # type: ignore[arg-type]


class Office:
    """An audit log in a SQLite file with its head beside it, and a hand that can reach into the file."""

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
    """Writes what is of `r1` when it may."""

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


async def test_what_is_not_said_of_a_call_stays_empty_in_its_record(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    await audit.record(AuditEntry("r1", "c1", "decision", "allow"))
    (log,) = await audit.query()
    said = ExecutionLog("r1", "c1", "decision", "allow", "2026-11-16T09:00:00.000000+00:00")
    assert replace(log, sequence=0, previous_hash="", hash="") == said


async def test_a_second_record_of_the_same_event_is_refused(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    await audit.record(an_entry())
    with pytest.raises(DuplicateRecord):
        await audit.record(an_entry())


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
async def test_a_time_that_is_none_is_refused(clock: FakeClock, since: str) -> None:
    audit, _ = in_memory(clock)
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        await audit.query(since=since)


# ---------------------------------------------------------------------------------------------------------------------
# A store that fails


async def test_best_effort_goes_on_warns_and_writes_later(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    audit, store = in_memory(clock)
    await audit.record(an_entry("c1"))
    store.is_broken = True
    with caplog.at_level(logging.WARNING):
        await audit.record(an_entry("c2"))
        await audit.record(an_entry("c3"))
    assert "AGENTS-E-LOG-STORE" in caplog.text
    await audit.flush()
    waiting = [log.tool_call_id for log in audit.unwritten]
    store.is_broken = False
    await audit.record(an_entry("c4"))
    assert (waiting, audit.unwritten) == (["c2", "c3"], ())
    assert [log.tool_call_id for log in await audit.query()] == ["c1", "c2", "c3", "c4"]
    assert (await audit.verify()).is_intact


async def test_the_warning_says_how_many_records_wait_and_of_which_runs(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    audit, store = in_memory(clock)
    store.is_broken = True
    await audit.record(an_entry("c1"))
    await audit.record(AuditEntry("r3", "c1", "decision", "allow"), AuditEntry("r2", "c1", "decision", "allow"))
    warning = "AGENTS-E-LOG-STORE: broken on purpose; the record is kept in memory"
    assert caplog.record_tuples == [
        ("openai_responses_mcp.agents", logging.WARNING, f"{warning} {{'unwritten': 1, 'runs': ['r1']}}"),
        ("openai_responses_mcp.agents", logging.WARNING, f"{warning} {{'unwritten': 3, 'runs': ['r2', 'r3']}}"),
    ]


async def test_required_refuses_to_go_on(clock: FakeClock) -> None:
    audit, store = in_memory(clock, "required")
    store.is_broken = True
    with pytest.raises(StoreUnavailable):
        await audit.record(an_entry())
    assert not audit.unwritten


async def test_a_record_that_did_arrive_is_not_written_twice(
    clock: FakeClock, caplog: pytest.LogCaptureFixture
) -> None:
    audit, store = in_memory(clock)

    async def arrives_and_fails(log: ExecutionLog) -> ExecutionLog:
        await BreakableLogStore.append(store, log)
        raise StoreUnavailable("the line was cut")

    store.append = arrives_and_fails  # type: ignore[method-assign]
    await audit.record(an_entry())
    del store.append
    with caplog.at_level(logging.WARNING):
        await audit.flush()
    assert "already" in caplog.text
    assert len(await audit.query()) == 1


async def test_what_was_noted_is_written_with_the_next_record_of_its_run(clock: FakeClock) -> None:
    audit, store = in_memory(clock)
    audit.note(an_entry("c1"))
    audit.note(AuditEntry("r2", "d1", "decision", "allow"))
    assert await store.query() == []
    await audit.record(an_entry("c1", "started"))
    assert [(log.tool_call_id, log.event) for log in await store.query()] == [("c1", "decision"), ("c1", "started")]
    await audit.settle("r1")
    await audit.settle("r2")
    assert [log.run_id for log in await store.query()] == ["r1", "r1", "r2"]


async def test_what_was_noted_is_in_the_log_for_whoever_reads_it(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    audit.note(an_entry("c1"))
    assert len(await audit.query()) == 1


async def test_what_was_noted_is_not_lost_when_its_record_cannot_be_written(clock: FakeClock) -> None:
    audit, store = in_memory(clock, "required")
    audit.note(an_entry("c1"))
    store.is_broken = True
    with pytest.raises(StoreUnavailable):
        await audit.record(an_entry("c1", "started"))
    store.is_broken = False
    assert [log.event for log in await audit.query()] == ["decision"]


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
async def test_what_is_kept_is_written_before_the_next_record(clock: FakeClock, mode: AuditMode) -> None:
    audit, _ = in_memory(clock, mode)
    audit.keep("it was gone", AuditEntry("r1", "c1", "outcome", "completed"))
    await audit.record(AuditEntry("r1", "c2", "started", "started"))
    assert [log.tool_call_id for log in await audit.query()] == ["c1", "c2"]


async def test_what_is_kept_is_warned_about(clock: FakeClock, caplog: pytest.LogCaptureFixture) -> None:
    audit, _ = in_memory(clock, "required")
    audit.keep("it was gone", an_entry("c1", "outcome"))
    assert "AGENTS-E-LOG-STORE: it was gone; the record is kept in memory" in caplog.text
    assert [log.tool_call_id for log in audit.unwritten] == ["c1"]


async def test_a_prepared_record_is_masked_and_not_written_yet(clock: FakeClock) -> None:
    audit, store = in_memory(clock)
    audit.keep("it was gone", an_entry("c1"))
    record = await audit.prepared(an_entry("c1", "approval", comment="sk-0123456789abcdef"))
    assert (record.event, record.comment) == ("approval", "‹sk-…, 19 characters›")
    assert [log.event for log in await store.query()] == ["decision"]


async def test_what_is_recorded_for_sure_is_written_or_refused(clock: FakeClock) -> None:
    audit, store = in_memory(clock, "best_effort")
    await audit.record_for_sure(an_entry("c1"))
    store.is_broken = True
    with pytest.raises(StoreUnavailable):
        await audit.record_for_sure(an_entry("c2"))
    store.is_broken = False
    assert audit.unwritten == ()
    assert [log.tool_call_id for log in await audit.query()] == ["c1"]


async def test_a_call_starts_in_the_log_after_the_decisions_that_were_noted_before(clock: FakeClock) -> None:
    """Two calls of one turn start at once. The first takes the decisions along and is slow."""
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
    told = asyncio.create_task(audit.prepared(an_entry("c1", "approval")))
    await asyncio.sleep(0)
    assert not told.done()
    store.may_go_on.set()
    await asyncio.wait_for(asyncio.gather(late, told), 5)
    assert [log.event for log in await store.query()] == ["decision"]


async def test_what_was_noted_is_not_lost_when_its_record_is_there_already(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    await audit.record(an_entry("c1", "started"))
    audit.note(an_entry("c1"))
    with pytest.raises(DuplicateRecord):
        await audit.record(an_entry("c1", "started"))
    assert [log.event for log in await audit.query()] == ["started", "decision"]


async def test_ids_that_are_masked_alike_are_told_apart(clock: FakeClock) -> None:
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


async def test_an_id_that_no_index_takes_is_kept_by_its_beginning_and_its_hash(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    await audit.record(an_entry("x" * 10_000_000), an_entry("x" * 10_000_000, "started"), an_entry("x" * 9_999_999))
    first, second, third = (log.tool_call_id for log in await audit.query())
    assert (first == second, first == third, len(first) < 300) == (True, False, True)


# ---------------------------------------------------------------------------------------------------------------------
# The chain


async def test_an_untouched_log_is_intact(office: Office) -> None:
    assert (await office.audit.verify()).is_intact
    await office.write(5)
    verification = await office.audit.verify()
    assert (verification.is_intact, verification.records, verification.uncovered) == (True, 5, "")


async def test_without_a_head_the_result_says_what_is_not_covered(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    uncovered = "No head is kept outside the log: a cut tail or an old copy put back would not show"
    assert (await audit.verify()).uncovered == uncovered


def chain(length: int) -> list[ExecutionLog]:
    logs: list[ExecutionLog] = []
    for number in range(length):
        log = ExecutionLog("r1", f"c{number}", "decision", "allow", "2026", arguments={"n": number})
        logs.append(linked(log, logs[-1] if logs else None))
    return logs


THOUSAND = chain(1000)


def breaks(logs: Sequence[ExecutionLog], place: int, *, is_renumbered: bool = False) -> int | None:
    """Where the log breaks, told from the records around a place: those before it are the thousand's own.

    Somebody who does not want gaps to be seen gives the records new numbers.
    """
    start = max(place - 2, 0)
    window = logs[start : place + 4]
    if is_renumbered:
        window = [replace(log, sequence=number) for number, log in enumerate(window, start=start + 1)]
    found = first_break(window, after=logs[start - 1] if start else None)
    return found and found[0]


def test_every_changed_record_of_a_thousand_is_found() -> None:
    for place in range(1000):
        changed = list(THOUSAND)
        changed[place] = replace(changed[place], decision="deny")
        assert breaks(changed, place) == place + 1


def test_every_removed_record_of_a_thousand_is_found() -> None:
    for place in range(999):
        gone = THOUSAND[:place] + THOUSAND[place + 1 :]
        assert breaks(gone, place) == place + 1
        assert breaks(gone, place, is_renumbered=True) == place + 1


def test_every_inserted_record_of_a_thousand_is_found() -> None:
    for place in range(1, 1000):
        forged = linked(ExecutionLog("r1", "forged", "decision", "allow", "2026"), THOUSAND[place - 1])
        more = [*THOUSAND[:place], forged, *THOUSAND[place:]]
        assert breaks(more, place) == place + 2
        assert breaks(more, place, is_renumbered=True) == place + 2


def test_every_pair_of_reordered_records_of_a_thousand_is_found() -> None:
    for place in range(999):
        swapped = list(THOUSAND)
        swapped[place], swapped[place + 1] = swapped[place + 1], swapped[place]
        assert breaks(swapped, place) == place + 1
        assert breaks(swapped, place, is_renumbered=True) == place + 1


@pytest.mark.parametrize("place", [0, 1, 499, 998, 999])
def test_a_change_is_found_from_the_very_beginning_too(place: int) -> None:
    changed = list(THOUSAND)
    changed[place] = replace(changed[place], reason="another")
    assert first_break(changed) == (place + 1, f"record {place + 1} was changed")


def test_a_record_with_a_good_hash_of_its_own_must_still_follow() -> None:
    stranger = linked(ExecutionLog("r1", "x", "decision", "allow", "2026"), linked(THOUSAND[5], None))
    found = first_break([THOUSAND[0], stranger])
    assert found is not None
    assert found[0] == 2


FIELDS = [column.name for column in table.columns if column.name != "sequence"]


@pytest.mark.parametrize("field", FIELDS)
async def test_any_changed_field_is_found_in_the_database(office: Office, field: str) -> None:
    await office.write(5)
    value: object = 4 if field == "risk_level" else '{"x": 1}' if field == "arguments" else "x"
    office.tamper(lambda c: c.execute(update(table).where(table.c.sequence == 3).values({field: value})))
    verification = await office.audit.verify()
    assert (verification.is_intact, verification.first_bad) == (False, 3)


@pytest.mark.parametrize("written", ["{", "[1]", "5", "[" * 100_000, "9" * 10_000])
async def test_arguments_that_nobody_can_read_are_found_in_the_database(office: Office, written: str) -> None:
    await office.write(5)
    office.tamper(lambda c: c.execute(update(table).where(table.c.sequence == 3).values(arguments=written)))
    verification = await office.audit.verify()
    assert (verification.is_intact, verification.first_bad) == (False, 3)


async def test_a_removed_record_is_found_in_the_database(office: Office) -> None:
    await office.write(5)
    office.tamper(lambda c: c.execute(delete(table).where(table.c.sequence == 2)))
    assert (await office.audit.verify()).first_bad == 2


async def test_a_cut_tail_is_found_by_the_head(office: Office) -> None:
    await office.write(5)
    office.tamper(lambda c: c.execute(delete(table).where(table.c.sequence >= 4)))
    verification = await office.audit.verify()
    assert verification.first_bad == 4
    assert "cut" in verification.problem


async def test_a_record_cut_off_the_very_end_is_found(office: Office) -> None:
    await office.write(5)
    office.tamper(lambda c: c.execute(delete(table).where(table.c.sequence == 5)))
    assert (await office.audit.verify()).first_bad == 5


async def test_an_old_copy_put_back_is_found(office: Office) -> None:
    await office.write(3)
    office.database.close()
    shutil.copy(office.folder / "agents.db", office.folder / "old.db")
    await office.audit.record(an_entry("c9"))
    office.reopen()
    shutil.copy(office.folder / "old.db", office.folder / "agents.db")
    assert (await office.audit.verify()).first_bad == 4


async def test_a_whole_new_chain_is_found_by_the_head(office: Office) -> None:
    await office.write(3)

    def forge(connection: Connection) -> None:
        connection.execute(delete(table))
        logs: list[ExecutionLog] = []
        for number in range(3):
            forged = ExecutionLog("r1", f"c{number}", "decision", "deny", "2026")
            logs.append(linked(forged, logs[-1] if logs else None))
        for log in logs:
            values = {name: getattr(log, name) for name in FIELDS} | {
                "sequence": log.sequence,
                "arguments": "{}",
                "reasons": None,
            }
            connection.execute(insert(table).values(values))

    office.tamper(forge)
    verification = await office.audit.verify()
    assert (verification.is_intact, verification.first_bad) == (False, 3)


async def test_a_record_added_at_the_end_by_hand_is_found_by_the_head(office: Office) -> None:
    await office.write(3)
    other = SqlExecutionLogStore(office.database)
    await other.append(ExecutionLog("r1", "forged", "decision", "allow", "2026"))
    assert (await office.audit.verify()).first_bad == 4


def cut_the_tail(office: Office) -> None:
    office.tamper(lambda c: c.execute(delete(table).where(table.c.sequence >= 3)))


def cut_everything(office: Office) -> None:
    office.tamper(lambda c: c.execute(delete(table)))


def delete_the_head(office: Office) -> None:
    (office.folder / "agents.db.head").unlink()


def spoil_the_head(office: Office) -> None:
    (office.folder / "agents.db.head").write_text("nonsense")


def delete_the_database(office: Office) -> None:
    office.reopen()
    (office.folder / "agents.db").unlink()


def put_an_old_copy_back(office: Office) -> None:
    office.reopen()
    shutil.copy(office.folder / "old.db", office.folder / "agents.db")


def add_by_hand(office: Office) -> None:
    other = SqlExecutionLogStore(office.database)
    office.tamper(lambda c: other.append_in(c, [ExecutionLog("r1", "forged", "decision", "allow", "2026")]))


def change_one(office: Office) -> None:
    office.tamper(lambda c: c.execute(update(table).where(table.c.sequence == 2).values(reason="another")))


def make_unreadable(office: Office) -> None:
    office.tamper(lambda c: c.execute(text("UPDATE agents_log SET arguments = '{' WHERE sequence = 2")))


TAMPERINGS = [
    cut_the_tail,
    cut_everything,
    delete_the_head,
    spoil_the_head,
    delete_the_database,
    put_an_old_copy_back,
    add_by_hand,
    change_one,
    make_unreadable,
]


@pytest.fixture(params=TAMPERINGS, ids=lambda tampering: tampering.__name__)
async def tampered(request: pytest.FixtureRequest, office: Office) -> Office:
    """Four records, of which somebody has made something else."""
    await office.write(2)
    office.database.close()
    shutil.copy(office.folder / "agents.db", office.folder / "old.db")
    await office.audit.record(an_entry("c2"), an_entry("c3"))
    request.param(office)
    return office


async def test_what_was_tampered_with_stays_a_finding_while_the_log_goes_on(tampered: Office) -> None:
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


async def test_an_acceptance_without_a_name_is_by_nobody(office: Office) -> None:
    await office.write(1)
    assert (await accepted_loss(office)).arguments["by"] == ""


async def test_what_is_done_after_an_acceptance_is_found_again(tampered: Office) -> None:
    await tampered.audit.record(an_entry("c10"))
    await tampered.audit.accept_loss("accepted")
    await tampered.audit.record(an_entry("c11"))
    tampered.tamper(lambda c: c.execute(update(table).where(table.c.sequence == 1).values(comment="new")))
    assert not (await tampered.audit.verify()).is_intact


async def test_a_forged_acceptance_is_found_by_the_head(office: Office) -> None:
    await office.write(3)
    cut_the_tail(office)
    forged = AuditLog(SqlExecutionLogStore(office.database), FakeClock(), Masking({}))
    office.tamper(lambda c: c.execute(update(table).where(table.c.sequence == 1).values(reason="x")))
    await forged.accept_loss("never mind")
    assert (await forged.verify()).is_intact
    assert not (await office.audit.verify()).is_intact


async def test_there_is_nothing_to_accept_in_an_intact_log(office: Office) -> None:
    await office.write(2)
    with pytest.raises(AgentsError, match="intact"):
        await office.audit.accept_loss("just in case")


@pytest.mark.parametrize("reason", ["", "  ", "x" * 2001, None])
async def test_a_loss_is_accepted_with_a_reason(office: Office, reason: str) -> None:
    await office.write(2)
    spoil_the_head(office)
    with pytest.raises(AgentsError) as caught:
        await office.audit.accept_loss(reason)
    refusal = "AGENTS-E-RUNNER-CONFIG: Say in 1 to 2000 characters why the loss is accepted"
    assert str(caught.value) == refusal
    assert not (await office.audit.verify()).is_intact


@pytest.mark.parametrize("reason", ["x", "x" * 2000])
async def test_the_shortest_and_the_longest_reason_are_taken(office: Office, reason: str) -> None:
    await office.write(2)
    spoil_the_head(office)
    assert (await office.audit.accept_loss(reason)).comment == reason
    assert (await office.audit.verify()).is_intact


async def test_a_log_is_verified_while_others_write(office: Office) -> None:
    await office.write(3)

    class Busy(HeadFile):
        """Somebody writes each time between two looks at the head."""

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


async def test_a_missing_or_unreadable_head_is_found(office: Office) -> None:
    await office.write(1)
    (office.folder / "agents.db.head").write_text("{}")
    assert (await office.audit.verify()).first_bad == 1
    (office.folder / "agents.db.head").unlink()
    assert (await office.audit.verify()).first_bad == 1


async def test_a_crash_between_announcing_and_committing_is_no_alarm(office: Office) -> None:
    await office.write(2)
    logs = await office.audit.query()
    unwritten = linked(ExecutionLog("r1", "c9", "decision", "allow", "2026"), logs[-1])
    office.head.announce(LogPlace.of(logs[-1]), LogPlace.of(unwritten), lambda number: None)
    assert (await office.audit.verify()).is_intact
    await office.audit.record(an_entry("c3"))
    assert (await office.audit.verify()).is_intact


async def test_a_crash_between_committing_and_confirming_is_no_alarm(office: Office) -> None:
    await office.write(2)
    logs = await office.audit.query()
    (office.folder / "agents.db.head").unlink()
    office.head.announce(BEGINNING, LogPlace.of(logs[-1]), lambda number: None)
    assert (await office.audit.verify()).is_intact


async def test_a_head_that_cannot_be_written_is_a_store_that_fails(tmp_path: Path, clock: FakeClock) -> None:
    head = HeadFile(tmp_path / "no folder" / "head")
    audit = AuditLog(SqlExecutionLogStore(SqlDatabase(), head), clock, Masking({}), "required", head)
    with pytest.raises(StoreUnavailable, match="head"):
        await audit.record(an_entry())
    assert await audit.query() == []


async def test_the_file_and_its_head_are_the_owners_alone(office: Office) -> None:
    (office.folder / "agents.db").touch(0o644)
    await office.write(1)
    for name in ("agents.db", "agents.db.head"):
        assert (office.folder / name).stat().st_mode & 0o777 == 0o600


async def test_a_number_is_not_lost_when_a_record_is_refused(office: Office) -> None:
    await office.write(1)
    with pytest.raises(DuplicateRecord):
        await office.audit.record(an_entry("c0"))
    await office.audit.record(an_entry("c1"))
    rows = office.database.work_now(lambda c: c.execute(select(table.c.sequence).order_by(table.c.sequence)).all())
    assert [row.sequence for row in rows] == [1, 2]
    assert (await office.audit.verify()).is_intact


async def test_the_log_cannot_be_read_from_a_store_that_is_gone(clock: FakeClock) -> None:
    audit, store = in_memory(clock)
    store.is_broken = True
    with pytest.raises(StoreUnavailable):
        await audit.verify()


def test_the_statement_of_a_failed_store_is_not_shown(tmp_path: Path) -> None:
    database = SqlDatabase(f"sqlite:///{tmp_path}/agents.db")
    with pytest.raises(StoreUnavailable) as caught:
        database.work_now(lambda connection: connection.execute(text("SELECT 'sk-0123456789' FROM nowhere")))
    assert "sk-0123456789" not in repr(caught.value)
    assert caught.value.__cause__ is None


async def test_the_name_of_who_asked_is_kept_and_covered_by_the_chain() -> None:
    log = ExecutionLog("r", "c", "decision", "allow", "2026-11-18")
    assert linked(replace(log, who="alice"), None).hash != linked(replace(log, who="bob"), None).hash
    # As earlier versions wrote it.
    assert linked(log, None).hash == linked(replace(log, who=""), None).hash
