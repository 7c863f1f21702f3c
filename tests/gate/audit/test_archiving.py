"""Moving old records out of the log: both parts stay whole, a crash in between costs nothing, and it cannot be faked."""

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.gate.audit.archiving import (
    LOG_NOT_INTACT,
    NOT_NAMED,
    ArchiveFile,
    older_than,
    records_in,
    text_of,
)
from openai_responses_mcp.gate.audit.log import AuditEntry, AuditLog
from openai_responses_mcp.gate.audit.records import (
    LOG_ARCHIVED,
    ExecutionLog,
    LogPlace,
    linked,
)
from openai_responses_mcp.gate.audit.verifying import contradictions, open_before
from openai_responses_mcp.gate.errors import AgentsError, StoreUnavailable
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.secrets.masking import Masking
from openai_responses_mcp.gate.sql.log_files import ArchiveOnDisk, HeadFile
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import SqlExecutionLogStore
from tests.agents.fakes import ODD_TEXTS, BreakableLogStore, FakeClock

ALL = "2027-01-01T00:00:00+00:00"


class Room:
    """One database and a head for each machine that uses it."""

    def __init__(self, folder: Path, clock: FakeClock) -> None:
        self.folder, self.clock, self.database = folder, clock, SqlDatabase()

    def audit(self, head: str = "head", *, is_sole_writer: bool = True, wrap: Any = lambda store: store) -> AuditLog:
        kept = HeadFile(self.folder / head, is_sole_writer=is_sole_writer)
        return AuditLog(wrap(SqlExecutionLogStore(self.database, kept)), self.clock, Masking({}), head=kept)

    def file(self, name: str = "old.jsonl") -> ArchiveOnDisk:
        return ArchiveOnDisk(self.folder / name)

    async def call(self, call: str, *events: str, run: str = "guard_1", audit: AuditLog | None = None) -> None:
        for event in events:
            name, _, decision = event.partition("=")
            await (audit or self.audit()).record(AuditEntry(run, call, name, decision or name, "files/read", "mcp"))

    async def done(self, call: str) -> None:
        await self.call(call, "decision=allow", "started", "outcome=done")

    async def sql(self, statement: str) -> None:
        await self.database.work(lambda connection: connection.exec_driver_sql(statement))

    async def sequences(self) -> list[int]:
        return [log.sequence for log in await self.audit().query()]

    async def problem(self, head: str = "head", *, is_sole_writer: bool = True) -> str:
        return (await self.audit(head, is_sole_writer=is_sole_writer).verify()).problem


@pytest.fixture
def room(tmp_path: Path, clock: FakeClock) -> Room:
    return Room(tmp_path, clock)


async def moved(room: Room, name: str = "old.jsonl", before: str = ALL, audit: AuditLog | None = None) -> list[int]:
    await (audit or room.audit()).archive(before, room.file(name), by="sato")
    return [log.sequence for log in room.file(name).read() or ()]


# ---------------------------------------------------------------------------------------------------------------------
# Both parts


async def test_the_record_of_an_archive_says_what_was_moved_where(room: Room) -> None:
    await room.done("c1")
    record = await room.audit().archive(ALL, room.file())
    assert [record] == await room.audit().query()
    assert (record.run_id, record.arguments["by"]) == ("log", "")
    assert re.fullmatch("archive_[0-9a-f]{32}", record.tool_call_id)
    assert record.reason == "the records 1 to 3 were moved to old.jsonl"


async def test_both_parts_stay_whole_and_archives_follow_each_other(room: Room) -> None:
    await room.done("c1")
    assert await moved(room, "1.jsonl") == [1, 2, 3]
    await room.done("c2")
    assert await moved(room, "2.jsonl") == [4, 5, 6, 7]
    await room.done("c3")
    log = await room.audit().verify()
    assert (log.is_intact, log.records, log.uncovered) == (True, 4, "")
    for name, records in (("1.jsonl", 3), ("2.jsonl", 4)):
        found = await room.audit().verify_archive(room.file(name).read() or [])
        assert (found.is_intact, found.records, found.uncovered, found.problem) == (True, records, "", "")
        assert (room.folder / name).stat().st_mode & 0o777 == 0o600


def test_a_call_that_overlaps_one_that_stays_stays_too() -> None:
    def log(call: str, hour: int) -> ExecutionLog:
        return ExecutionLog("r", call, f"e{hour}", "", f"2026-11-16T{hour:02}")

    logs = [log("a", 1), log("b", 2), log("a", 3), log("c", 4), log("b", 5), log("c", 9)]
    assert older_than("2026-11-16T08", logs) == logs[:0]
    assert older_than("2026-11-16T99", logs) == logs


async def test_nothing_that_old_is_an_error_and_writes_no_file(room: Room) -> None:
    await room.done("c1")
    with pytest.raises(AgentsError, match="No record from before 2020"):
        await moved(room, before="2020-01-01")
    assert room.file().read() is None


async def test_a_call_that_goes_on_later_is_no_contradiction(room: Room) -> None:
    await room.call("waits", "decision=needs_human", "approval_requested=pending", "approval_requested:2=pending")
    await room.call("approved", "decision=needs_human", "approval=approved")
    await room.done("done")
    await room.call("runs", "decision=allow", "started")
    await room.call("denied", "decision=needs_human", "approval=denied")
    await room.call("expired", "decision=needs_human", "approval=expired")
    await room.call("refused", "decision=deny")
    await room.call("again", "decision=needs_human", "approval_requested=pending", "approval_requested:2=pending")
    for call, end in (("withdrawn", "withdrawn"), ("unasked", "unasked"), ("again", "denied")):
        await room.call(call, "decision:2=needs_human", f"approval:2={end}")
    await moved(room, "1.jsonl")
    (record,) = await room.audit().query()
    kept: Any = record.arguments["open"]
    assert {row[1] for row in kept} == {"waits", "approved", "runs"}
    assert (record.event, record.decision) == ("log_archived", "archived")
    assert ["guard_1", "waits", "approval_requested:2", "pending"] in kept
    await room.call("approved", "started")
    await room.call("waits", "approval:2=approved", "started")
    await moved(room, "2.jsonl")
    await room.call("waits", "outcome=done")
    await room.call("runs", "outcome=done")
    assert await room.problem() == ""
    await room.call("denied", "started")
    assert "started, and no decision was recorded" in await room.problem()


async def test_a_standing_approval_is_used_after_its_record_has_moved(room: Room) -> None:
    def used(call: str, standing_id: str) -> AuditEntry:
        reasons = (Reason("standing", "allow", {"standing_id": standing_id}),)
        return AuditEntry("guard_1", call, "standing_used", "allow", "files/read", "mcp", reasons=reasons)

    await room.call("sta_1", "standing_made=allow")
    await room.call("sta_2", "standing_made=allow", "standing_ended=revoked")
    await moved(room)
    await room.audit().record(used("c1", "sta_1"))
    assert await room.problem() == ""
    await room.audit().record(used("c2", "sta_2"))
    assert "used a standing approval" in await room.problem()


async def test_an_accepted_loss_stays_accepted_in_the_archive_and_the_log(room: Room) -> None:
    await room.done("c1")
    await room.done("c2")
    await room.sql("UPDATE agents_log SET comment = 'x' WHERE sequence = 2")
    room.clock.move(seconds=60)
    middle = room.clock.now().isoformat()
    await room.done("c3")
    await room.sql("UPDATE agents_log SET comment = 'x' WHERE sequence = 8")
    await room.audit().accept_loss("the disk", by="sato")
    await room.done("c4")
    assert await moved(room, before=middle) == [1, 2, 3, 4, 5, 6]
    found = await room.audit().verify()
    assert (found.is_intact, len(found.accepted)) == (True, 1)
    assert (await room.audit().verify_archive(room.file().read() or [])).is_intact
    await room.sql("UPDATE agents_log SET comment = 'y' WHERE sequence = 9")
    assert await room.problem() == "record 8 was changed"


async def test_a_log_that_is_not_intact_stays_where_it_is(room: Room) -> None:
    await room.done("c1")
    await room.sql("UPDATE agents_log SET comment = 'x' WHERE sequence = 2")
    with pytest.raises(AgentsError, match="not intact"):
        await moved(room)
    assert room.file().read() is None


# ---------------------------------------------------------------------------------------------------------------------
# Crashes


async def test_after_a_crash_between_file_and_log_the_same_command_goes_on(room: Room) -> None:
    await room.done("c1")
    with pytest.raises(AgentsError, match="cannot move records out"):
        await room.audit(wrap=BreakableLogStore).archive(ALL, room.file())
    assert await room.sequences() == [1, 2, 3]
    assert await room.problem() == ""
    await room.done("c2")
    assert await moved(room) == [1, 2, 3]
    assert await room.sequences() == [4, 5, 6, 7]
    assert await room.problem() == ""
    with pytest.raises(AgentsError, match=r"old\.jsonl is complete: its records have been moved out"):
        await moved(room)
    room.file("other.jsonl").write([ExecutionLog("r", "c", "started", "started", "2026", sequence=1)])
    with pytest.raises(AgentsError, match=r"other\.jsonl is there already"):
        await moved(room, name="other.jsonl")


async def test_the_next_archive_removes_what_a_killed_one_left_in_the_folder(room: Room) -> None:
    (room.folder / "old.jsonl.4711.new").write_text("half of it")
    (room.folder / "other.jsonl.4711.new").touch()
    await room.done("c1")
    assert await moved(room) == [1, 2, 3]
    assert {file.name for file in room.folder.iterdir()} == {"head", "old.jsonl", "other.jsonl.4711.new"}


async def test_a_crash_before_the_head_hears_of_it_is_no_finding(room: Room) -> None:
    await room.done("c1")
    store = SqlExecutionLogStore(room.database, HeadOnce(room.folder / "head"))
    head = HeadFile(room.folder / "head")
    await AuditLog(store, room.clock, Masking({}), head=head).archive(ALL, room.file())
    assert await room.problem() == ""
    await room.done("c2")
    assert await room.problem() == ""


class HeadOnce(HeadFile):
    """Gets announcements and no confirmation."""

    def confirm(self, record: ExecutionLog) -> None:
        raise StoreUnavailable("killed")


async def test_two_who_move_at_once_move_once(room: Room) -> None:
    await room.done("c1")
    first = await room.audit().query()

    class Slow(ArchiveFile):
        name = "slow"

        def read(self) -> None:
            return None

        def write(self, records: Sequence[ExecutionLog]) -> None:
            """Another process is quicker."""
            room.database.work_now(
                lambda connection: connection.exec_driver_sql("DELETE FROM agents_log WHERE sequence < 3")
            )

    with pytest.raises(AgentsError, match="Others have moved"):
        await room.audit().archive(ALL, Slow())
    assert await room.sequences() == [first[-1].sequence]


# ---------------------------------------------------------------------------------------------------------------------
# Others who can write to the store


async def test_a_made_up_archive_covers_nothing(room: Room) -> None:
    for call in ("c1", "c2"):
        await room.done(call)
    theirs = SqlExecutionLogStore(room.database)
    logs = await theirs.query()
    facts = {"through": [*LogPlace.of(logs[2])], "records": 0, "fingerprint": "", "by": "sato"}
    made_up = ExecutionLog("log", "a", LOG_ARCHIVED, "archived", "2026", arguments=facts)
    assert await theirs.move_out(logs[:3], made_up)
    found = await room.audit("head", is_sole_writer=False).verify()
    assert found.problem == "record 1 was removed"
    assert found.findings[-1].endswith("in the name of sato, and not with this head: accept it here too")


async def test_with_another_head_it_is_accepted_there_too(room: Room) -> None:
    theirs, ours = (room.audit(name, is_sole_writer=False) for name in ("other", "head"))
    await room.call("c1", "decision=allow", audit=ours)
    HeadFile(room.folder / "other", is_sole_writer=False).confirm((await ours.query())[0])
    await room.call("c2", "decision=allow", audit=ours)
    await ours.archive(ALL, room.file())
    assert await room.problem(is_sole_writer=False) == ""
    elsewhere = await theirs.verify()
    assert "record 1 is not in the log any more: removed, or archived with another head" in elsewhere.findings
    await theirs.accept_loss("archived by sato")
    assert (await theirs.verify()).is_intact


# ---------------------------------------------------------------------------------------------------------------------
# The file


def changed(room: Room, change: Callable[[list[Any]], None]) -> None:
    path = room.folder / "old.jsonl"
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    change(lines)
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))


async def test_a_changed_archive_is_found_out(room: Room) -> None:
    await room.done("c1")
    await moved(room)
    changed(room, lambda lines: lines[2].update(decision="other"))
    found = await room.audit().verify_archive(room.file().read() or [])
    assert (found.is_intact, found.first_bad, found.problem) == (False, 2, "record 2 was changed")


async def test_an_archive_written_from_scratch_is_found_out(room: Room) -> None:
    await room.done("c1")
    await moved(room)
    other = linked(ExecutionLog("r", "c", "decision", "allow", "2026"), None)
    found = await room.audit().verify_archive([other])
    assert found.problem == "the archive is not what was moved out of this log as the records 1 to 1"


async def test_the_chain_alone_is_checked_where_the_log_says_nothing(room: Room) -> None:
    await room.done("c1")
    records = await room.audit().query()
    found = await room.audit().verify_archive(records)
    assert (found.is_intact, found.uncovered) == (True, NOT_NAMED)
    await room.sql("UPDATE agents_log SET comment = 'x' WHERE sequence = 2")
    found = await room.audit().verify_archive(records)
    assert (found.is_intact, found.uncovered) == (True, LOG_NOT_INTACT)
    assert (await room.audit().verify_archive(await room.audit().query())).problem == "record 2 was changed"


def test_every_text_comes_back_from_the_file(tmp_path: Path) -> None:
    logs: list[ExecutionLog] = []
    for number, text in enumerate(ODD_TEXTS):
        log = ExecutionLog(
            "r",
            str(number),
            "decision",
            "allow",
            "2026",
            comment=text,
            arguments={"a": [text, 1.5, None]},
            reasons=(Reason("rule", "allow", {"rule": number}),) if number % 2 else (),
        )
        logs.append(linked(log, logs[-1] if logs else None))
    file = ArchiveOnDisk(tmp_path / "a.jsonl")
    file.write(logs)
    assert file.read() == logs
    head = {"archive": "openai-responses-mcp log", "version": 1, "records": len(logs)}
    assert json.loads((tmp_path / "a.jsonl").read_bytes().split(b"\n")[0]) == head
    with pytest.raises(AgentsError, match="cannot be written: File exists"):
        file.write(logs)
    assert [one.name for one in tmp_path.iterdir()] == ["a.jsonl"]


@pytest.mark.parametrize(
    "text",
    [
        "",
        text_of([]),
        '{"archive": 1}\n{"arguments": {}}\n',
        text_of([ExecutionLog(*"abcde")]) + "{}\n",
        "{}\n[1]\n",
    ],
)
def test_a_file_that_is_not_an_archive_is_reported(text: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - its text is not shown
        records_in(text)
    (tmp_path / "a").write_text(text)
    with pytest.raises(AgentsError, match="is not an archive of a log, or is cut off"):
        ArchiveOnDisk(tmp_path / "a").read()
    with pytest.raises(AgentsError, match="cannot be read: Is a directory"):
        ArchiveOnDisk(tmp_path).read()


def test_a_head_with_everything_in_it_fits_its_file(tmp_path: Path) -> None:
    place = LogPlace(999_999_999, "f" * 64)
    head = HeadFile(tmp_path / "head")
    other = LogPlace(999_999_998, "e" * 64)
    head.announce(place, place, lambda number: None, 999_999_998)
    head.confirm(ExecutionLog("log", "l", "loss_accepted", "", "", sequence=999_999_999, hash="f" * 64))
    head.announce(other, place, lambda number: None, 999_999_998)
    head.announce(LogPlace(1_000_000_001, "d" * 64), place, lambda number: None, 999_999_998)
    known = head.read()
    assert known is not None
    assert known.finding is not None
    assert known.archived_to == 999_999_998


async def test_a_made_up_archive_without_a_place_covers_nothing(room: Room) -> None:
    await room.call("c1", "started")
    theirs = SqlExecutionLogStore(room.database)
    await theirs.append(ExecutionLog("log", "a", LOG_ARCHIVED, "archived", "2026", arguments={"through": "x"}))
    found = await room.audit(is_sole_writer=False).verify()
    assert any("record 2 archives records in the name of somebody without a name" in one for one in found.findings)


def test_findings_of_archived_records_are_not_repeated_and_odd_ones_are_ignored() -> None:
    """The contradiction was a finding in the log that it was moved out of."""
    rows = [["r", "c", "started", "started"], ["r", "c", "started"], "four", 5]
    carried = open_before(ExecutionLog("log", "a", LOG_ARCHIVED, "archived", "2026", arguments={"open": rows}))
    assert carried == [ExecutionLog("r", "c", "started", "started", "")]
    assert list(contradictions([], carried)) == []
