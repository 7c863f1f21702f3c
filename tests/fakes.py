"""Doubles of the ports: each implements its port, is scripted by hand and remembers what was asked of it."""

import asyncio
import json
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from typing import Any

from openai_responses_mcp.adapters.clocks import TOKYO
from openai_responses_mcp.domain.errors import ResponseCancelled, ResponseLost, TransportClosed
from openai_responses_mcp.domain.models import (
    CallFailure,
    ModelReply,
    ModelRequest,
    ObservedCall,
    Progress,
    ProgressListener,
    StartListener,
)
from openai_responses_mcp.domain.ports import (
    CallObserver,
    Channel,
    FramingFault,
    LLMGateway,
    Logger,
    Received,
    Transport,
    WallClock,
)

# How long a test waits at most: in this process, and around processes and the SDK, which a busy machine is slow to load.
WAIT_SECONDS = 5.0
# Between two looks: a loop without a pause keeps the threads of its own process from getting the interpreter.
PAUSE_SECONDS = 0.001
SLOW_SECONDS = 30.0


class FakeGateway(LLMGateway):
    """Gives the enqueued replies in order, raises the enqueued errors, and after `hold()` holds a call until `release()`.

    A question in the background gets an id, `resp_1` and on, before it is held. `keep()` puts a response there that an
    earlier process asked for. `enqueue_trouble()` fails the next looks at a response.
    """

    def __init__(self) -> None:
        self.calls: list[ModelRequest] = []
        self.cancelled: list[ModelRequest] = []
        self.looked_up: list[str] = []
        self.cancelled_ids: list[str] = []
        self.let_go_ids: list[str] = []
        self.progress: list[Progress] = []
        self._outcomes: deque[ModelReply | Exception] = deque()
        self._responses: dict[str, ModelReply | Exception] = {}
        self._trouble: deque[Exception] = deque()
        self._released = asyncio.Event()
        self._released.set()
        self._asked = asyncio.Condition()

    def enqueue(self, *outcomes: ModelReply | Exception) -> None:
        self._outcomes.extend(outcomes)

    def enqueue_trouble(self, *errors: Exception) -> None:
        self._trouble.extend(errors)

    def keep(self, response_id: str, outcome: ModelReply | Exception) -> None:
        self._responses[response_id] = outcome

    def hold(self) -> None:
        self._released.clear()

    def release(self) -> None:
        self._released.set()

    async def wait_for_calls(self, count: int) -> None:
        async with asyncio.timeout(WAIT_SECONDS), self._asked:
            await self._asked.wait_for(lambda: len(self.calls) >= count)

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        self.calls.append(request)
        async with self._asked:
            self._asked.notify_all()
        for progress in self.progress if on_progress else ():
            on_progress(progress)  # type: ignore[misc]
        response_id = f"resp_{len(self.calls)}" if request.background else None
        if response_id is not None:
            self.keep(response_id, self._next_outcome(request, response_id))
            if on_started is not None:
                on_started(response_id)
        try:
            await self._released.wait()
        except asyncio.CancelledError:
            self.cancelled.append(request)
            if response_id is not None and response_id not in self.let_go_ids:
                self._stop(response_id)
            raise
        return _given(self._next_outcome(request) if response_id is None else self._responses[response_id])

    async def follow(self, response_id: str, on_progress: ProgressListener | None = None) -> ModelReply:
        self._look(response_id)
        for progress in self.progress if on_progress else ():
            on_progress(progress)  # type: ignore[misc]
        await self._released.wait()
        return _given(self._responses[response_id])

    async def look_up(self, response_id: str) -> ModelReply | Progress:
        outcome = self._look(response_id)
        if not self._released.is_set() and not isinstance(outcome, Exception):
            return self.progress[-1] if self.progress else Progress("working")
        return _given(outcome)

    async def cancel(self, response_id: str) -> None:
        self._look(response_id)
        if not self._released.is_set():
            self._stop(response_id)

    def let_go(self, response_id: str) -> None:
        self.let_go_ids.append(response_id)

    def _next_outcome(self, request: ModelRequest, response_id: str | None = None) -> ModelReply | Exception:
        if self._outcomes:
            return self._outcomes.popleft()
        return ModelReply(text="an answer", model=request.model, response_id=response_id)

    def _look(self, response_id: str) -> ModelReply | Exception:
        self.looked_up.append(response_id)
        if self._trouble:
            raise self._trouble.popleft()
        if response_id not in self._responses:
            raise ResponseLost(f"The API has no response {response_id}.")
        return self._responses[response_id]

    def _stop(self, response_id: str) -> None:
        self.cancelled_ids.append(response_id)
        self._responses[response_id] = ResponseCancelled(f"The response {response_id} was cancelled at the API.")


def _given(outcome: ModelReply | Exception) -> ModelReply:
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class FakeClock(WallClock):
    """Stands still until it is moved; then sleeping tasks wake when they are due."""

    def __init__(self, now: datetime = datetime(2026, 11, 16, 9, 30, tzinfo=TOKYO)) -> None:
        self._start = now
        self._elapsed = 0.0
        self._sleepers: list[tuple[float, asyncio.Event]] = []
        self._changed = asyncio.Event()
        self.sleeps: list[float] = []

    def now(self) -> datetime:
        return self._start + timedelta(seconds=self._elapsed)

    def today(self) -> date:
        return self.now().date()

    def monotonic(self) -> float:
        return self._elapsed

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        if seconds <= 0:
            await asyncio.sleep(0)
            return
        alarm = asyncio.Event()
        sleeper = (self._elapsed + seconds, alarm)
        self._sleepers.append(sleeper)
        self._changed.set()
        try:
            await alarm.wait()
        finally:
            self._sleepers.remove(sleeper)

    async def wait_for_sleepers(self, count: int = 1) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self._sleepers) < count:
                self._changed.clear()
                await self._changed.wait()

    async def advance(self, seconds: float) -> None:
        """Move on, let the woken go their way, and come back."""
        self._elapsed += seconds
        for due, alarm in list(self._sleepers):
            if due <= self._elapsed:
                alarm.set()
        for _ in range(10):
            await asyncio.sleep(0)


class FakeLogger(Logger):
    """Remembers every line as `(level, event, facts)`."""

    def __init__(self, *, is_debugging: bool = True) -> None:
        self._is_debugging = is_debugging
        self.lines: list[tuple[str, str, dict[str, object]]] = []

    @property
    def is_debugging(self) -> bool:
        return self._is_debugging

    def debug(self, event: str, **facts: object) -> None:
        if self._is_debugging:
            self.lines.append(("debug", event, facts))

    def warning(self, event: str, **facts: object) -> None:
        self.lines.append(("warning", event, facts))

    def error(self, event: str, **facts: object) -> None:
        self.lines.append(("error", event, facts))

    def facts(self, event: str) -> list[dict[str, object]]:
        return [facts for _, name, facts in self.lines if name == event]


class FakeCallObserver(CallObserver):
    """Remembers each call at its end, with its failure, replied or raised."""

    def __init__(self) -> None:
        self.ended: list[tuple[ObservedCall, CallFailure | BaseException | None]] = []

    @contextmanager
    def observed(self, call: ObservedCall) -> Iterator[Callable[[CallFailure], None]]:
        failures: list[CallFailure | BaseException] = []
        try:
            yield failures.append
        except BaseException as exc:
            failures.append(exc)
            raise
        finally:
            self.ended.append((call, failures[0] if failures else None))


class FakeTransport(Transport, Channel):
    """Gives what was enqueued and then, after `end()`, None; remembers what was sent. One channel, its own.

    After `stop_reading()` it is a client that leaves everything unread, until `read_again()`.
    """

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.error_codes: list[int | None] = []
        self.withdrawn = 0
        self._is_read = asyncio.Event()
        self._is_read.set()
        self._incoming: asyncio.Queue[bytes | FramingFault | None] = asyncio.Queue()
        self._is_closed = False
        self._was_sent = asyncio.Event()

    def enqueue(self, *messages: dict[str, Any] | bytes | FramingFault) -> None:
        for message in messages:
            self._incoming.put_nowait(json.dumps(message).encode() if isinstance(message, dict) else message)

    def end(self) -> None:
        self._incoming.put_nowait(None)

    def close(self) -> None:
        self._is_closed = True
        self._is_read.set()
        self._incoming.put_nowait(None)

    def stop_reading(self) -> None:
        self._is_read.clear()

    def read_again(self) -> None:
        self._is_read.set()

    def replies(self) -> list[Any]:
        return [json.loads(body) for body in self.sent]

    async def wait_for_sent(self, count: int) -> list[Any]:
        async with asyncio.timeout(WAIT_SECONDS):
            while len(self.sent) < count:
                self._was_sent.clear()
                await self._was_sent.wait()
        return self.replies()

    async def receive(self) -> Received | None:
        await self._is_read.wait()
        message = await self._incoming.get()
        if self._is_closed:
            raise TransportClosed("the client has closed its end")
        return None if message is None else Received(message, self)

    def send(self, body: bytes) -> None:
        if not self._is_closed:
            self.sent.append(body)
            self._was_sent.set()

    def reply(self, body: bytes, error_code: int | None = None) -> None:
        self.error_codes.append(error_code)
        self.send(body)

    def withdraw(self) -> None:
        self.withdrawn += 1

    async def flush(self) -> None:
        await self._is_read.wait()
        if self._is_closed:
            raise TransportClosed("the client has closed its end")
