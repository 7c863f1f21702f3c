"""A response that runs in the background at the API, read to its end even if connections break.

Its events are numbered. When the connection breaks or the API is in trouble, reading continues after the last event. A
response that can no longer be streamed is polled. The question is sent only once. The caller sets the deadline.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from contextlib import suppress
from functools import partial
from itertools import chain, islice
from typing import Any

from openai_responses_mcp.adapters.openai.api import ResponsesApi, is_response_id
from openai_responses_mcp.adapters.openai.replies import ReplyStream, StreamEnded, stream_cut
from openai_responses_mcp.adapters.openai.retrying import growing_waits
from openai_responses_mcp.adapters.openai.wire import JsonObject, is_under_way, progress_of, progress_of_state
from openai_responses_mcp.domain.errors import (
    PASSING_TROUBLE,
    GatewayBroken,
    GatewayError,
    GatewayGarbled,
    GatewayOverloaded,
    GatewayRefused,
    GatewayUnreachable,
)
from openai_responses_mcp.domain.models import Progress, ProgressListener, StartListener
from openai_responses_mcp.domain.ports import Logger, WallClock
from openai_responses_mcp.domain.texts import Sentence

# Between two requests for a response that cannot be streamed.
POLL_SECONDS = 2.0
_CANNOT_BE_STREAMED = 400

Step = Callable[[], Awaitable[object]]


class BackgroundRun:
    """One response. `is_known` is set once the API has sent its id.

    From then on `response_id` is None only if the API does not run it in the background. `trouble` is the last failure;
    None once reading has succeeded again.
    """

    def __init__(
        self,
        api: ResponsesApi,
        clock: WallClock,
        logger: Logger,
        mask: Callable[[str], str],
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> None:
        self._api = api
        self._clock = clock
        self._logger = logger
        self._mask = mask
        self._on_progress = on_progress
        self._on_started = on_started
        self._last_number: int | None = None
        self._is_streamed = True
        self._waits: Iterator[float] = growing_waits()
        self.response_id: str | None = None
        self.is_known = asyncio.Event()
        self.has_answer = False
        self.trouble: GatewayError | None = None

    async def ask(self, body: JsonObject) -> object:
        """The finished response object to a question."""
        return await self._read_on(partial(self._ask, body))

    async def fetch(self, response_id: str) -> object:
        """The finished response object of that id."""
        self.response_id = response_id
        self._waits = chain((0.0,), self._waits)  # No wait between the first request and the stream.
        return await self._read_on(self._look)

    def silence(self) -> None:
        """Stop calling the listeners."""
        self._on_progress = self._on_started = None

    async def _read_on(self, step: Step) -> object:
        while True:
            try:
                response = await step()
                if self.response_id is None or not is_under_way(response):
                    self.has_answer = True
                    return response
                await self._clock.sleep(next(self._waits) if self._is_streamed else POLL_SECONDS)
                step = self._stream if self._is_streamed else self._look
            except StreamEnded as exc:
                self._require_id(exc)
                self._log("the stream ended")
                step = self._look
            except (GatewayGarbled, GatewayRefused) as exc:
                if step == self._look or not self._may_be_looked_at(exc):
                    raise
                self._log(str(exc), exc)
                self._is_streamed, step = False, self._look
            except PASSING_TROUBLE as exc:
                self._require_id(exc)
                await self._pause(exc)
                step = self._stream if self._is_streamed else self._look

    async def _ask(self, body: JsonObject) -> object:
        async with self._api.posted(body) as stream:
            return await self._read(stream)

    async def _stream(self) -> object:
        async with self._api.streamed(self._id, self._last_number) as stream:
            return await self._read(stream)

    async def _look(self) -> object:
        response = await self._api.retrieve(self._id)
        self.trouble = None
        self._tell(progress_of_state(response, self._mask))
        if not self._is_streamed:
            self._waits = growing_waits()
        return response

    async def _read(self, stream: ReplyStream) -> object:
        response = await stream.final_response(self._hear)
        if is_under_way(response):
            # It came as a single object, so it cannot be streamed.
            self._learn_id(response)
            self._is_streamed = False
            return response
        self.has_answer = True
        await stream.read_to_end()
        return response

    def _hear(self, event: JsonObject) -> None:
        self.trouble = None
        number = event.get("sequence_number")
        if isinstance(number, int):
            self._last_number = number
            self._waits = growing_waits()
        self._learn_id(event.get("response"))
        self._tell(progress_of(event, self._mask))

    def _learn_id(self, response: object) -> None:
        if self.is_known.is_set() or not isinstance(response, dict) or not is_response_id(response.get("id")):
            return
        self.is_known.set()
        # A gateway may ignore `background`: then the response is lost with its connection, even if it has an id. If the
        # gateway does not say, only a queued response runs in the background.
        if response.get("background", response.get("status") == "queued"):
            self.response_id = response["id"]
            if self._on_started is not None:
                self._on_started(response["id"])

    def _tell(self, progress: Progress | None) -> None:
        if progress is not None and self._on_progress is not None:
            self._on_progress(progress)

    async def _pause(self, trouble: GatewayError) -> None:
        self.trouble = trouble
        seconds = next(self._waits) if trouble.retry_after_seconds is None else trouble.retry_after_seconds
        self._log(str(trouble), trouble)
        if trouble.demands_long_wait:
            raise trouble
        reason = trouble.status or (
            Sentence("no connection") if isinstance(trouble, GatewayUnreachable) else Sentence("the connection broke")
        )
        self._tell(
            Progress(Sentence("waiting {seconds} s to go on ({reason})", seconds=f"{seconds:.1f}", reason=reason))
        )
        await self._clock.sleep(seconds)

    def _log(self, message: str, trouble: GatewayError | None = None) -> None:
        """Why another request reads the rest, and from which event."""
        facts = {} if trouble is None else {**trouble.facts, "body": trouble.body or None}
        self._logger.debug("read on", responseId=self.response_id, after=self._last_number, **facts, msg=message)

    def _require_id(self, trouble: Exception) -> None:
        """Raises if the id is unknown: then reading cannot continue."""
        if self.response_id is not None:
            return
        has_ended = isinstance(trouble, StreamEnded)
        if not self.is_known.is_set() and (has_ended or isinstance(trouble, GatewayBroken)):
            raise GatewayBroken(
                Sentence(
                    "The connection to the API broke before it said the id of the response ({reason}). The response"
                    " cannot be fetched and may be billed all the same. Ask again.",
                    reason=Sentence("the stream ended") if has_ended else Sentence("the connection was lost"),
                )
            ) from trouble
        raise stream_cut() if has_ended else trouble

    def _may_be_looked_at(self, trouble: GatewayError) -> bool:
        """True if only the events could not be read, so the whole response may still be."""
        is_about_streaming = isinstance(trouble, GatewayGarbled) or trouble.status == _CANNOT_BE_STREAMED
        return self.response_id is not None and is_about_streaming

    @property
    def _id(self) -> str:
        return self.response_id or ""


LONGEST_SECONDS = 60.0
MOST_TRIES = 6


class AbandonedRuns:
    def __init__(self, api: ResponsesApi, clock: WallClock) -> None:
        self._api = api
        self._clock = clock
        self._tasks: set[asyncio.Task[bool]] = set()

    def add(self, run: BackgroundRun, reading: "asyncio.Future[object]", *, cancels: bool) -> None:
        """Stop reading, and cancel the response if `cancels`. Its listeners are no longer called."""
        run.silence()
        task = asyncio.ensure_future(self._abandon(run, reading, cancels=cancels))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def wait(self, seconds: float) -> bool | None:
        """Wait at most that long. True if all of them are cancelled, None if there were none."""
        if not self._tasks:
            return None
        done, pending = await asyncio.wait(self._tasks, timeout=seconds)
        return not pending and all(task.result() for task in done)

    async def _abandon(self, run: BackgroundRun, reading: "asyncio.Future[object]", *, cancels: bool) -> bool:
        with suppress(TimeoutError, GatewayError):
            async with asyncio.timeout(LONGEST_SECONDS):
                if cancels:
                    await _until_known(run, reading)
                await _stopped(reading)
                if not cancels or run.has_answer:
                    return True
                if run.response_id is None:
                    # A response outside the background ends with its connection.
                    return run.is_known.is_set() or _has_not_begun(reading)
                await self._cancel(run.response_id)
                return True
        return False

    async def _cancel(self, response_id: str) -> None:
        waits = islice(growing_waits(), MOST_TRIES - 1)
        while True:
            try:
                return await self._api.cancel(response_id)
            except PASSING_TROUBLE:
                wait = next(waits, None)
                if wait is None:
                    raise
            await self._clock.sleep(wait)


def _has_not_begun(reading: "asyncio.Future[object]") -> bool:
    """True if the API refused or could not be reached: then nothing runs there."""
    refusals = (GatewayRefused, GatewayOverloaded, GatewayUnreachable)
    return not reading.cancelled() and isinstance(reading.exception(), refusals)


async def _until_known(run: BackgroundRun, reading: "asyncio.Future[object]") -> None:
    knowing = asyncio.ensure_future(run.is_known.wait())
    either: set[asyncio.Future[Any]] = {knowing, reading}
    try:
        await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
    finally:
        knowing.cancel()


async def _stopped(reading: "asyncio.Future[object]") -> None:
    reading.cancel()
    await asyncio.wait({reading})
    if not reading.cancelled():
        reading.exception()  # Retrieved, or asyncio would log a warning.
