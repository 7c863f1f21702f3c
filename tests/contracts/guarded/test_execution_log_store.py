"""What every `ExecutionLogStore` must do, asked of the fake, of SQLite and of PostgreSQL."""

import asyncio
from dataclasses import replace

import pytest

from openai_responses_mcp.gate.audit.records import ExecutionLog, ExecutionLogStore, first_break
from openai_responses_mcp.gate.errors import DuplicateRecord
from openai_responses_mcp.gate.stores import Stores
from tests.agents.fakes import ODD_TEXTS, within


@pytest.fixture
def store(stores: Stores) -> ExecutionLogStore:
    return stores.logs


def a_log(call: str = "c1", *, run: str = "r1", event: str = "decision", hour: int = 9) -> ExecutionLog:
    moment = f"2026-11-16T{hour:02}:00:00.000000+00:00"
    return ExecutionLog(run, call, event, "allow", moment, tool_name="ツール", risk_level=2, arguments={"a": [1, None]})


async def test_records_come_back_linked_and_in_order(store: ExecutionLogStore) -> None:
    for number in range(3):
        await store.append(a_log(f"c{number}"))
    logs = await store.query()
    assert [log.tool_call_id for log in logs] == ["c0", "c1", "c2"]
    assert [log.sequence for log in logs] == [1, 2, 3]
    assert logs[1].previous_hash == logs[0].hash
    assert first_break(logs) is None


async def test_one_event_of_a_call_is_recorded_once(store: ExecutionLogStore) -> None:
    await store.append(a_log())
    with pytest.raises(DuplicateRecord):
        await store.append(a_log())
    await store.append(a_log(event="outcome"))
    assert [log.event for log in await store.query()] == ["decision", "outcome"]
    assert [log.sequence for log in await store.query()] == [1, 2]


async def test_records_are_found_by_run_and_by_time(store: ExecutionLogStore) -> None:
    await store.append(a_log("c1", hour=9))
    await store.append(a_log("c2", run="r2", hour=10))
    await store.append(a_log("c3", hour=11))
    assert [log.tool_call_id for log in await store.query(run_id="r1")] == ["c1", "c3"]
    since = "2026-11-16T10:00:00.000000+00:00"
    assert [log.tool_call_id for log in await store.query(since=since)] == ["c2", "c3"]
    assert [log.tool_call_id for log in await store.query("r1", since)] == ["c3"]


async def test_records_appended_at_the_same_time_make_one_chain(store: ExecutionLogStore) -> None:
    await within(asyncio.gather(*(store.append(a_log(f"c{number}")) for number in range(20))))
    logs = await store.query()
    assert len(logs) == 20
    assert first_break(logs) is None


async def test_records_appended_together_are_linked_in_their_order(store: ExecutionLogStore) -> None:
    await store.append(a_log("c0"))
    kept = await store.append_all([a_log("c1"), a_log("c1", event="started"), a_log("c2")])
    logs = await store.query()
    assert logs[1:] == kept
    assert [(log.sequence, log.event) for log in kept] == [(2, "decision"), (3, "started"), (4, "decision")]
    assert first_break(logs) is None


async def test_a_record_that_is_there_already_is_refused_among_others_too(store: ExecutionLogStore) -> None:
    await store.append(a_log("c1"))
    with pytest.raises(DuplicateRecord):
        await store.append_all([a_log("c1"), a_log("c2")])
    await store.append(a_log("c3"))
    assert [log.tool_call_id for log in await store.query()] == ["c1", "c3"]


async def test_any_text_is_stored_and_harms_no_other_record(store: ExecutionLogStore) -> None:
    for text in ODD_TEXTS:
        odd = ExecutionLog(
            f"r{text}", f"c{text}", "decision", "deny", "2026", text, "mcp", 3, text, {text: [text]}, comment=text
        )
        kept = await store.append(odd)
        assert replace(kept, sequence=0, previous_hash="", hash="") == odd
        assert await store.query(run_id=f"r{text}") == [kept]
        with pytest.raises(DuplicateRecord):
            await store.append(odd)
    await store.append(a_log())
    logs = await store.query()
    assert len(logs) == len(ODD_TEXTS) + 1
    assert first_break(logs) is None


async def test_ten_megabytes_are_stored(store: ExecutionLogStore) -> None:
    big = "字" * (10 * 1024 * 1024 // 3)
    await store.append(replace(a_log(), reason=big, arguments={"x": big}))
    await store.append(a_log("c2"))
    logs = await store.query()
    assert (logs[0].reason == big, logs[0].arguments == {"x": big}, first_break(logs)) == (True, True, None)


async def test_records_move_out_with_the_record_that_says_so_or_not_at_all(store: ExecutionLogStore) -> None:
    logs = [await store.append(a_log(f"c{number}")) for number in range(3)]
    said = a_log("archive", run="log", event="log_archived")
    assert await store.move_out([replace(logs[0], hash="other")], said) is None
    assert await store.query() == logs
    record = await store.move_out(logs[:2], said)
    assert record is not None
    assert await store.query() == [logs[2], record]
    assert (record.sequence, record.previous_hash) == (4, logs[2].hash)
    assert await store.move_out(logs[:2], a_log("again", run="log", event="log_archived")) is None
