"""Calls in flight, the cancel use case, and waiting for an event or a while.

A call is in flight from `start` until `finish`; both happen on one event loop, so that of a reply and a cancellation
exactly one comes first. The one who gets `True` from `finish` owns the reply; after a cancellation there is none.
"""

import asyncio
from collections.abc import Callable

from openai_responses_mcp.domain.errors import CallInFlight
from openai_responses_mcp.domain.ports import Logger, WallClock

CallId = int | str


class Call:
    """One call; compared by identity, since a later call may take over the id of a cancelled one."""

    __slots__ = ("abort", "id")

    def __init__(self, call_id: CallId, abort: Callable[[], object]) -> None:
        self.id = call_id
        self.abort = abort


class CallsInFlight:
    def __init__(self, logger: Logger) -> None:
        self._logger = logger
        self._calls: dict[CallId, Call] = {}

    def __len__(self) -> int:
        return len(self._calls)

    def __contains__(self, call: Call) -> bool:
        return self._calls.get(call.id) is call

    def require_free(self, call_id: CallId) -> None:
        """Raises `CallInFlight` while another call with that id is in flight."""
        if call_id in self._calls:
            raise CallInFlight(f"A request with the id {call_id!r} is already in flight")

    def start(self, call_id: CallId, abort: Callable[[], object]) -> Call:
        self.require_free(call_id)
        call = self._calls[call_id] = Call(call_id, abort)
        return call

    def finish(self, call: Call) -> bool:
        """Whether the call was still in flight. Only then may it be answered."""
        if call not in self:
            return False
        del self._calls[call.id]
        return True

    def cancel(self, call_id: CallId, reason: str | None = None) -> None:
        """Abort the call and silence it for good; unknown, finished and repeated ids are ignored."""
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        self._logger.debug("cancelled", requestId=call_id, reason=reason)
        call.abort()

    def cancel_all(self, reason: str) -> None:
        for call_id in list(self._calls):
            self.cancel(call_id, reason)


async def has_happened_within(event: asyncio.Event, seconds: float, clock: WallClock) -> bool:
    """Whether the event is set; comes back as soon as it is, at the latest when the time has passed."""
    if event.is_set():
        return True
    happening = asyncio.ensure_future(event.wait())
    passing = asyncio.ensure_future(clock.sleep(seconds))
    try:
        await asyncio.wait({happening, passing}, return_when=asyncio.FIRST_COMPLETED)
        return event.is_set()
    finally:
        happening.cancel()
        passing.cancel()
