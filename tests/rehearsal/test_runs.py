import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from openai_responses_mcp.rehearsal.runs import RehearsedRun, StoredRuns
from openai_responses_mcp.rehearsal.wire import ApiError, CannedAnswer, build_response, unfinished

FINISHED = build_response({"model": "gpt-5", "background": True}, CannedAnswer([]), "Why?")
EVENTS: list[dict[str, Any]] = [
    {"type": "response.queued", "response": unfinished(FINISHED, "queued")},
    {"type": "response.in_progress", "response": unfinished(FINISHED, "in_progress")},
    {"type": "response.output_text.delta"},
    {"type": "response.completed", "response": FINISHED},
]


class Work:
    """Gives the next event when it is told to."""

    def __init__(self) -> None:
        self._allowed = asyncio.Semaphore(0)

    def go_on(self, count: int = 1) -> None:
        for _ in range(count):
            self._allowed.release()

    async def events(self) -> AsyncIterator[dict[str, Any]]:
        for event in EVENTS:
            await self._allowed.acquire()
            yield event


async def read(run: RehearsedRun, starting_after: int = -1) -> list[str]:
    async with asyncio.timeout(5):
        return [event["type"] async for batch in run.follow(starting_after) for event in batch]


async def test_a_run_shows_the_state_that_its_latest_event_told() -> None:
    work = Work()
    run = RehearsedRun.start(FINISHED, work.events())
    assert run.response["status"] == "queued"
    for number, status in enumerate(("queued", "in_progress", "in_progress")):
        work.go_on()
        await asyncio.wait_for(anext(run.follow(starting_after=number - 1)), 5)
        assert (run.response["status"], run.is_under_way) == (status, True)
    work.go_on()
    await read(run)
    assert (run.response, run.is_under_way) == (FINISHED, False)


async def test_readers_get_all_events_from_where_they_want_whenever_they_come() -> None:
    work = Work()
    run = RehearsedRun.start(FINISHED, work.events())
    early, late = asyncio.create_task(read(run)), asyncio.create_task(read(run, 1))
    work.go_on(4)
    types = [event["type"] for event in EVENTS]
    assert await early == types
    assert await late == types[2:]
    assert await read(run, 2) == types[3:]
    assert await read(run, 3) == []
    assert await read(run, 99) == []


async def test_a_run_goes_on_when_its_reader_leaves() -> None:
    work = Work()
    run = RehearsedRun.start(FINISHED, work.events())
    work.go_on(2)
    async with asyncio.timeout(5):
        async for _ in run.follow():
            break
    work.go_on(2)
    assert (await read(run))[-1] == "response.completed"


async def test_a_cancelled_run_ends_its_readers_and_stays_cancelled() -> None:
    work = Work()
    run = RehearsedRun.start(FINISHED, work.events())
    reader = asyncio.create_task(read(run))
    work.go_on(2)
    await asyncio.wait_for(anext(run.follow(0)), 5)
    run.cancel()
    work.go_on(2)
    assert await reader == ["response.queued", "response.in_progress"]
    run.cancel()
    assert (run.response["status"], run.response["completed_at"]) == ("cancelled", None)


async def test_a_run_that_is_over_cannot_be_cancelled_any_more() -> None:
    run = RehearsedRun(FINISHED)
    run.cancel()
    assert run.response == FINISHED


async def test_stopped_runs_are_not_worked_on() -> None:
    runs, work = StoredRuns(), Work()
    run = RehearsedRun.start(FINISHED, work.events())
    runs.keep(run)
    runs.keep(RehearsedRun(FINISHED | {"id": "resp_other"}))
    runs.stop()
    work.go_on(4)
    await asyncio.sleep(0)
    assert run.is_under_way


async def test_the_oldest_runs_are_forgotten() -> None:
    runs = StoredRuns(max_stored=1)
    for response_id in ("resp_1", "resp_2"):
        runs.keep(RehearsedRun(FINISHED | {"id": response_id}))
    assert runs.find("resp_2").response["id"] == "resp_2"
    with pytest.raises(ApiError, match="not found"):
        runs.find("resp_1")
