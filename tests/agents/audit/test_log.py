"""The audit log: masked, chained, verifiable, and honest about what it could not write."""

import logging
import shutil
from collections.abc import Callable, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from sqlalchemy import Connection, delete, insert, select, text, update

from openai_responses_mcp.agents.adapters.stores.head_file import HeadFile
from openai_responses_mcp.agents.adapters.stores.sql_database import SqlDatabase
from openai_responses_mcp.agents.adapters.stores.sql_stores import SqlExecutionLogStore
from openai_responses_mcp.agents.adapters.stores.sql_tables import logs as table
from openai_responses_mcp.agents.audit.chain import first_break, linked
from openai_responses_mcp.agents.audit.log import NO_HEAD, AuditEntry, AuditLog, AuditMode, unfinished
from openai_responses_mcp.agents.audit.models import ExecutionLog
from openai_responses_mcp.agents.errors import AgentsError, DuplicateRecord, StoreUnavailable
from openai_responses_mcp.agents.secrets.masking import Masking
from tests.agents.fakes import BreakableLogStore, FakeClock


def an_entry(call: str = "c1", event: str = "decision", **fields: str) -> AuditEntry:
    return AuditEntry("r1", call, event, "allow", **fields)  # type: ignore[arg-type]


class Office:
    """An audit log in a SQLite file with its head beside it, and a hand that can reach into the file."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.folder = folder
        self.head = HeadFile(folder / "agents.db.head")
        self.database = SqlDatabase(f"sqlite:///{folder}/agents.db")
        self.audit = AuditLog(SqlExecutionLogStore(self.database, self.head), clock, Masking({}), head=self.head)

    async def write(self, count: int) -> None:
        for number in range(count):
            await self.audit.record(an_entry(f"c{number}"))

    def tamper(self, job: Callable[[Connection], object]) -> None:
        self.database.work_now(job)


@pytest.fixture
def office(tmp_path: Path, clock: FakeClock) -> Office:
    return Office(tmp_path, clock)


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


async def test_a_time_that_is_none_is_refused(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    with pytest.raises(AgentsError, match="AGENTS-E-RUNNER-CONFIG"):
        await audit.query(since="yesterday")


def test_calls_without_an_outcome_are_named() -> None:
    def log(call: str, event: str) -> ExecutionLog:
        return ExecutionLog("r1", call, event, "", "")

    logs = [log("a", "started"), log("b", "started"), log("b", "outcome"), log("c", "decision")]
    assert unfinished(logs) == [logs[0]]


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


# ---------------------------------------------------------------------------------------------------------------------
# The chain


async def test_an_untouched_log_is_intact(office: Office) -> None:
    assert (await office.audit.verify()).is_intact
    await office.write(5)
    verification = await office.audit.verify()
    assert (verification.is_intact, verification.records, verification.uncovered) == (True, 5, "")


async def test_without_a_head_the_result_says_what_is_not_covered(clock: FakeClock) -> None:
    audit, _ = in_memory(clock)
    assert (await audit.verify()).uncovered == NO_HEAD


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
    office.database.close()
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
            values = {name: getattr(log, name) for name in FIELDS} | {"sequence": log.sequence, "arguments": "{}"}
            connection.execute(insert(table).values(values))

    office.tamper(forge)
    verification = await office.audit.verify()
    assert (verification.is_intact, verification.first_bad) == (False, 3)


async def test_a_record_added_at_the_end_by_hand_is_found_by_the_head(office: Office) -> None:
    await office.write(3)
    other = SqlExecutionLogStore(office.database)
    await other.append(ExecutionLog("r1", "forged", "decision", "allow", "2026"))
    assert (await office.audit.verify()).first_bad == 4


async def test_a_missing_or_unreadable_head_is_found(office: Office) -> None:
    await office.write(1)
    (office.folder / "agents.db.head").write_text("{}")
    assert (await office.audit.verify()).first_bad == 1
    (office.folder / "agents.db.head").unlink()
    assert (await office.audit.verify()).first_bad == 1


async def test_a_crash_between_announcing_and_committing_is_no_alarm(office: Office) -> None:
    await office.write(2)
    logs = await office.audit.query()
    office.head.announce(linked(ExecutionLog("r1", "c9", "decision", "allow", "2026"), logs[-1]))
    assert (await office.audit.verify()).is_intact
    await office.audit.record(an_entry("c3"))
    assert (await office.audit.verify()).is_intact


async def test_a_crash_between_committing_and_confirming_is_no_alarm(office: Office) -> None:
    await office.write(2)
    logs = await office.audit.query()
    office.head.announce(logs[-1])
    assert (await office.audit.verify()).is_intact


async def test_a_late_confirmation_does_not_set_the_head_back(office: Office) -> None:
    await office.write(3)
    logs = await office.audit.query()
    office.head.confirm(logs[0])
    assert (await office.audit.verify()).is_intact


async def test_on_a_shared_store_the_log_may_have_grown_past_the_head(office: Office) -> None:
    await office.write(3)
    head = HeadFile(office.folder / "elsewhere.head", is_sole_writer=False)
    logs = await office.audit.query()
    head.confirm(logs[1])
    assert head.problem_with(logs) is None
    assert head.problem_with(logs[:1]) == (2, "the tail from record 2 was cut, or an old copy was put back")


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
