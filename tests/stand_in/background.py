"""Background mode with its faults: readers are cut off, the way back fails, runs hang, expire or are cancelled.

A question says what will happen; see the keys in `markers.py`. Each list of a marker is used up from the left: `cuts`
by the streams of a response (that of the POST first), `get_status` by its GETs, `cancel_status` by its cancellations.
"""

import asyncio
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import Any

from openai_responses_mcp.rehearsal.server import RehearsedRun, read_starting_after
from openai_responses_mcp.rehearsal.wire import STREAM_HEADERS, ApiError, encode_event, usual_error
from tests.stand_in.http_wire import Ending, Reply
from tests.stand_in.markers import NO_REPLY, WORKS, Cut, Directives
from tests.stand_in.memory import Memory, StoredRuns
from tests.stand_in.replies import error_reply, json_reply, with_header

Events = list[dict[str, Any]]


@dataclass(slots=True)
class _Track:
    """A run and the faults that are still to come."""

    run: RehearsedRun
    directives: Directives = field(default_factory=Directives)
    gets: int = 0
    cuts: list[Cut | None] = field(init=False)
    get_statuses: list[int] = field(init=False)
    cancel_statuses: list[int] = field(init=False)

    def __post_init__(self) -> None:
        self.cuts = list(self.directives.cuts)
        self.get_statuses = list(self.directives.get_status)
        self.cancel_statuses = list(self.directives.cancel_status)


class Background:
    def __init__(self) -> None:
        self._runs = StoredRuns()
        self._tracks = Memory[_Track]()

    @property
    def running(self) -> list[str]:
        """The ids of the responses that are still worked on."""
        return [track.run.response["id"] for track in self._tracks.all_kept() if track.run.is_under_way]

    async def wait_until_nothing_runs(self) -> None:
        for track in list(self._tracks.all_kept()):
            async for _ in track.run.follow():
                pass

    def stop(self) -> None:
        self._runs.stop()

    def keep(self, response: dict[str, Any]) -> None:
        """A response that was not made in the background, for those who ask for it by id, if it is to be stored."""
        if response["store"]:
            self._runs.keep(RehearsedRun(response))

    def start(self, response: dict[str, Any], events: Events, directives: Directives) -> RehearsedRun:
        run = RehearsedRun.start(response, _play(events, directives, lambda: run.cancel()))
        self._runs.keep(run)
        self._tracks.remember(response["id"], _Track(run, directives))
        return run

    def stream(self, response_id: str, starting_after: int = -1) -> Reply:
        run, track = self._runs.find_streamed(response_id), self._tracks.maybe_recall(response_id)
        cut = track.cuts.pop(0) if track and track.cuts else None
        body = _follow(run, starting_after, cut)
        ending = Ending.KEEP if cut is None or cut.kind == "end" else Ending.CUT
        return Reply(headers=STREAM_HEADERS, body=body, ending=ending)

    def retrieve(self, response_id: str, query: dict[str, str]) -> Reply:
        track = self._tracks.maybe_recall(response_id) or _Track(self._runs.find(response_id))
        expires, track.gets = track.directives.expires, track.gets + 1
        if expires is not None and track.gets > expires:
            raise ApiError(404, f"Response with id '{response_id}' not found.")
        if (trouble := _maybe_trouble(track.get_statuses, track.directives)) is not None:
            return trouble
        if query.get("stream") != "true":
            return json_reply(track.run.response)
        if track.directives.too_old:
            raise ApiError(400, "This response can no longer be streamed because it is more than 5 minutes old.")
        return self.stream(response_id, read_starting_after(query.get("starting_after")))

    def cancel(self, response_id: str) -> Reply:
        track = self._tracks.maybe_recall(response_id)
        if track and (trouble := _maybe_trouble(track.cancel_statuses, track.directives)) is not None:
            return trouble
        return json_reply(self._runs.cancel(response_id).response)


async def _play(events: Events, directives: Directives, cancel: Callable[[], None]) -> AsyncIterator[dict[str, Any]]:
    pause_seconds = directives.slow_stream or (directives.delay or 0.0) / len(events)
    for event in events:
        if event["type"] == "response.in_progress":
            await asyncio.sleep(directives.queue or 0.0)
        yield event
        if event["sequence_number"] == directives.cancelled_after:
            cancel()
        if event["sequence_number"] == directives.hang_after:
            await asyncio.get_running_loop().create_future()
        await asyncio.sleep(pause_seconds)


async def _follow(run: RehearsedRun, starting_after: int, cut: Cut | None) -> AsyncIterator[bytes]:
    async for batch in run.follow(starting_after):
        if cut is None:
            yield b"".join(map(encode_event, batch))
            continue
        for event in batch:
            if event["sequence_number"] > cut.number:
                return
            data = encode_event(event)
            is_last = event["sequence_number"] == cut.number
            yield data[: len(data) // 2] if is_last and cut.kind == "in" else data
            if is_last:
                return


def _maybe_trouble(statuses: list[int], directives: Directives) -> Reply | None:
    status = statuses.pop(0) if statuses else WORKS
    if status == WORKS:
        return None
    if status == NO_REPLY:
        return Reply(ending=Ending.HANG_UP)
    reply = error_reply(usual_error(status))
    return reply if directives.retry_after is None else with_header(reply, "retry-after", directives.retry_after)
