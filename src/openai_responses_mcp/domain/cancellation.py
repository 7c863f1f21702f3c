"""Calls in flight, and cancelling them.

A call is in flight from `start` until `finish` or `cancel`, whichever comes first; all run on one event loop. Only a
caller that gets `True` from `finish` may send the reply.
"""

import asyncio
from collections.abc import Callable

from openai_responses_mcp.domain.errors import CallInFlight
from openai_responses_mcp.domain.ports import Logger, WallClock

CallId = int | str


class Call:
    """Compared by identity: a later call may reuse the id of a cancelled one."""

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
        """True if the call was still in flight. Only then may it be answered."""
        if call not in self:
            return False
        del self._calls[call.id]
        return True

    def cancel(self, call_id: CallId, reason: str | None = None) -> None:
        """Abort the call, which then gets no reply. No effect for an unknown or finished call."""
        call = self._calls.pop(call_id, None)
        if call is None:
            return
        self._logger.debug("cancelled", requestId=call_id, reason=reason)
        call.abort()

    def cancel_all(self, reason: str) -> None:
        for call_id in list(self._calls):
            self.cancel(call_id, reason)


async def has_happened_within(event: asyncio.Event, seconds: float, clock: WallClock) -> bool:
    """Wait for the event, at most that long. True if it is set."""
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
