"""What every `RunStateStore` must do, asked of the fake, of SQLite and of PostgreSQL."""

from dataclasses import replace

import pytest

from openai_responses_mcp.gate.stores import RunRecord, RunStateStore, Stores
from tests.agents.fakes import ODD_TEXTS

RUN = RunRecord("run_1", "running", "Agent", "2026-11-16T09:00:00", "2026-11-16T09:00:00")


@pytest.fixture
def store(stores: Stores) -> RunStateStore:
    return stores.runs


async def test_a_run_is_read_back_as_it_was_saved(store: RunStateStore) -> None:
    assert await store.get("run_1") is None
    await store.save(replace(RUN, payload='{"text": "日本語"}'))
    assert await store.get("run_1") == replace(RUN, payload='{"text": "日本語"}')


async def test_saving_again_replaces_all_but_the_beginning(store: RunStateStore) -> None:
    await store.save(RUN)
    later = replace(RUN, status="paused", payload="{}", updated_at="2026-11-16T10:00:00", created_at="never")
    await store.save(later)
    assert await store.get("run_1") == replace(later, created_at=RUN.created_at)


async def test_runs_are_listed_oldest_first_and_by_status(store: RunStateStore) -> None:
    for number, status in enumerate(("done", "paused", "done")):
        moment = f"2026-11-16T09:0{number}:00"
        await store.save(RunRecord(f"run_{9 - number}", status, "Agent", moment, moment))  # type: ignore[arg-type]
    assert [run.run_id for run in await store.list_runs()] == ["run_9", "run_8", "run_7"]
    assert [run.run_id for run in await store.list_runs("done")] == ["run_9", "run_7"]
    assert await store.list_runs("failed") == []


async def test_a_run_that_begins_is_there_and_can_be_saved(store: RunStateStore) -> None:
    await store.begin(RUN)
    assert [run.payload for run in await store.list_runs()] == [""]
    assert await store.get("run_1") == RUN
    await store.save(replace(RUN, status="done"))
    assert await store.get("run_1") == replace(RUN, status="done")
    at_once = replace(RUN, run_id="run_2")
    await store.begin(at_once)
    await store.save(replace(at_once, status="done", created_at="never"))
    assert await store.get("run_2") == replace(at_once, status="done")


async def test_any_text_is_stored(store: RunStateStore) -> None:
    await store.save(RUN)
    for text in ODD_TEXTS:
        odd = RunRecord(f"run{text}", "paused", text, RUN.created_at, RUN.updated_at, text)
        await store.save(odd)
        assert await store.get(f"run{text}") == odd
    assert await store.get("run_1") == RUN
