"""One database behind all stores: waiting work, stores that must exist, old versions, errors."""

import sqlite3
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import Connection, create_engine, text
from sqlalchemy.exc import DataError

from openai_responses_mcp.gate.audit.records import ExecutionLog, LogPlace, first_break, linked
from openai_responses_mcp.gate.errors import RecordRefused, StoreUnavailable
from openai_responses_mcp.gate.reasons import Reason
from openai_responses_mcp.gate.sql.database_urls import understood
from openai_responses_mcp.gate.sql.sql_approvals import SqlApprovalStore, _approval_values
from openai_responses_mcp.gate.sql.sql_database import SqlDatabase
from openai_responses_mcp.gate.sql.sql_log import _FIELDS, SqlExecutionLogStore, _values
from openai_responses_mcp.gate.sql.sql_stores import SqlRunStateStore
from openai_responses_mcp.gate.stores import RunRecord
from tests.contracts.guarded.test_approval_store import a_choice, a_record

RUN = RunRecord("run_1", "running", "Agent", "2026-11-16T09:00:00", "2026-11-16T09:00:00")


def count_of(url: str) -> int:
    return int(SqlDatabase(url).work_now(lambda c: c.execute(text("SELECT count(*) FROM agents_runs")).scalar_one()))


async def test_a_run_that_begins_is_written_with_the_next_write(shared_url: str) -> None:
    database = SqlDatabase(shared_url)
    await SqlRunStateStore(database).begin(RUN)
    assert count_of(shared_url) == 0
    await database.work(lambda connection: None)
    assert count_of(shared_url) == 1
    database.close()


async def test_waiting_work_stays_when_the_transaction_that_includes_it_fails(shared_url: str) -> None:
    database = SqlDatabase(shared_url)
    await SqlRunStateStore(database).begin(RUN)

    def fail(connection: Connection) -> None:
        raise LookupError

    with pytest.raises(LookupError):
        await database.work(fail)
    assert count_of(shared_url) == 0
    database.close()
    assert count_of(shared_url) == 1


async def test_a_late_beginning_does_not_overwrite_a_saved_run(shared_url: str) -> None:
    first, second = SqlDatabase(shared_url), SqlDatabase(shared_url)
    await SqlRunStateStore(first).begin(RUN)
    await SqlRunStateStore(second).save(RunRecord("run_1", "done", "Agent", "2026", "2026"))
    first.close()
    found = await SqlRunStateStore(second).get("run_1")
    assert found is not None
    assert found.status == "done"
    second.close()


def test_a_store_that_must_exist_is_reported_where_there_is_none_and_not_created(tmp_path: Path) -> None:
    (tmp_path / "empty.db").touch()
    for url in ("sqlite://", f"sqlite:///{tmp_path}/typo.db", f"sqlite:///{tmp_path}/empty.db"):
        with pytest.raises(StoreUnavailable, match="There is no store"):
            SqlDatabase(url, must_exist=True).work_now(lambda connection: None)
    assert [file.name for file in tmp_path.iterdir()] == ["empty.db"]


NEWER_COLUMNS = ("parameters", "tell_model", "changed_arguments", "waits_until", "origin", "caller", "reading")


def as_an_earlier_version_left_it(url: str, *tables: str) -> None:
    SqlDatabase(url).work_now(lambda connection: None)
    newer = ("presence", "caller_calls", "servers", "definitions", "budgets", "standing", *tables)
    statements = [f"DROP TABLE agents_{name}" for name in newer]
    statements += [f"ALTER TABLE agents_approvals DROP COLUMN {name}" for name in NEWER_COLUMNS]
    SqlDatabase(url).work_now(lambda connection: [connection.execute(text(one)) for one in statements])


def test_tables_that_an_earlier_version_did_not_have_are_added(shared_url: str) -> None:
    as_an_earlier_version_left_it(shared_url, "pins", "clock")
    newer = SqlDatabase(shared_url, must_exist=True)
    assert newer.work_now(lambda c: c.execute(text("SELECT count(*) FROM agents_clock")).scalar_one()) == 1


async def test_requests_that_an_earlier_version_stored_can_be_decided(shared_url: str) -> None:
    as_an_earlier_version_left_it(shared_url)
    row = {**_approval_values(a_record()), "number": 1}
    old_row = {name: value for name, value in row.items() if name not in NEWER_COLUMNS}
    names = ", ".join(old_row)
    marks = ", ".join(f":{name}" for name in old_row)
    insert = text(f"INSERT INTO agents_approvals ({names}) VALUES ({marks})")
    earlier = create_engine(understood(shared_url))
    with earlier.begin() as connection:
        connection.execute(insert, old_row)
    earlier.dispose()
    store = SqlApprovalStore(SqlDatabase(shared_url, must_exist=True))
    assert await store.get("a1") == a_record()
    assert await store.decide(replace(a_choice(), status="denied", tell_model=True))
    record = await store.get("a1")
    assert record is not None
    assert record.request.tell_model is True


async def test_a_guard_of_an_earlier_version_goes_on_while_a_newer_one_uses_its_store(shared_url: str) -> None:
    """It has the store open, knows none of the newer columns and tables, and needs no restart."""
    SqlDatabase(shared_url).work_now(lambda connection: None)
    newer_columns = ("reasons", "who")
    older = create_engine(understood(shared_url))
    names = [name for name in _FIELDS if name not in newer_columns]
    append = text(f"INSERT INTO agents_log ({', '.join(names)}) VALUES ({', '.join(f':{name}' for name in names)})")
    last = text("SELECT sequence, hash FROM agents_log ORDER BY sequence DESC LIMIT 1")
    with older.connect() as kept_open:

        def append_as_before(call_id: str) -> None:
            with kept_open.begin():
                before = kept_open.execute(last).first()
                log = ExecutionLog("guard_old", call_id, "started", "started", "2026-11-17", "files/read")
                values = _values(linked(log, LogPlace(*before) if before else None))
                kept_open.execute(append, {name: values[name] for name in names})

        with kept_open.begin():
            for name in newer_columns:
                kept_open.execute(text(f"ALTER TABLE agents_log DROP COLUMN {name}"))
            kept_open.execute(text("DROP TABLE agents_caller_calls"))
        append_as_before("call_1")
        newer = SqlExecutionLogStore(SqlDatabase(shared_url, must_exist=True))
        reasons = (Reason("observer", "allow"),)
        await newer.append(ExecutionLog("guard_new", "call_1", "decision", "allow", "2026-11-18", reasons=reasons))
        append_as_before("call_2")
        logs = await newer.query()
    older.dispose()
    assert [log.run_id for log in logs] == ["guard_old", "guard_new", "guard_old"]
    assert [log.reasons for log in logs] == [(), reasons, ()]
    assert first_break(logs) is None


def test_many_bring_an_old_store_up_to_date_at_once(shared_url: str) -> None:
    as_an_earlier_version_left_it(shared_url)
    databases = [SqlDatabase(shared_url) for _ in range(4)]
    with ThreadPoolExecutor(4) as threads:
        counts = list(threads.map(lambda one: one.work_now(_count_budgets), databases, timeout=30))
    assert counts == [0] * 4


def _count_budgets(connection: Connection) -> int:
    return int(connection.execute(text("SELECT count(*) FROM agents_budgets")).scalar_one())


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (DataError("statement", {}, ValueError("sk-0123456789abcdef")), RecordRefused),
        (OverflowError("sk-0123456789abcdef"), RecordRefused),
        (sqlite3.DatabaseError("sk-0123456789abcdef"), StoreUnavailable),
        (OSError("sk-0123456789abcdef"), StoreUnavailable),
    ],
)
def test_errors_say_whether_one_record_or_the_whole_store_is_concerned(
    error: Exception, kind: type[StoreUnavailable]
) -> None:
    def fail(connection: Connection) -> None:
        raise error

    with pytest.raises(StoreUnavailable) as caught:
        SqlDatabase().work_now(fail)
    assert type(caught.value) is kind
    assert "sk-0123456789abcdef" not in repr(caught.value)
