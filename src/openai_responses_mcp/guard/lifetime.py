"""How long the guard runs: until the client has gone, the server has ended, or a signal stops it.

Then the server's process is ended, what both sides still wait for is passed on or answered, and the exit code is known.
"""

import asyncio
import select
import threading
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Protocol

from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.guard.relay import Relay

UNUSABLE = 2
SECONDS_TO_BE_ASKED = 10.0
"""How long the first request of a client is awaited, to answer it with what went wrong. Most clients hide stderr."""

# How long messages of a client that has gone are still passed on. Together with the end of the server's process this
# takes less than three seconds.
_PATIENCE_SECONDS, _PATIENCE_WITH_A_FILE = 1.0, 10.0
_SECONDS_TO_WRITE = 1.0
# The other end may close only its half of a socket. Not every system reports that.
_HALF_CLOSED = getattr(select, "POLLRDHUP", 0)


class ServerProcess(Protocol):
    async def ended(self) -> int:
        """Wait until it has ended by itself: its exit code, or 128 plus the number of the signal that ended it."""
        ...

    async def end(self) -> int | None:
        """End it and everything it has started, within two seconds in all; as `ended` after that.

        None for a server that goes on without the guard.
        """
        ...


def words_for_end(code: int | None, last_words: str) -> str:
    """The error for requests that the server has not answered."""
    if code is None:
        return "The session is over"
    said = f"; the last line that it wrote to stderr: {last_words}" if last_words else ""
    return f"The guarded server has ended (exit code {code}){said}"


class Ends:
    """Reasons to end from outside: the client stopped reading or sending, or a signal came."""

    def __init__(self, stopped: "asyncio.Future[int]") -> None:
        self.hung_up = asyncio.Event()
        self.left = asyncio.Event()
        self.stopped = stopped


async def live(
    relay: Relay,
    process: ServerProcess,
    tell: Callable[[str], object],
    ends: Ends,
    failure: Callable[[], Awaitable[str]],
    last_words: Callable[[], Awaitable[str]],
) -> int:
    """Returns the exit code.

    `failure` returns only if no call can ever be decided, and says why. `last_words` are those of the server.
    """

    async def reported_failure() -> str:
        reason = await failure()
        tell(reason)
        return reason

    def patience_seconds() -> float:
        """Not a constant: it may be noticed only after the last message that the client is gone."""
        return _PATIENCE_SECONDS if ends.left.is_set() else _PATIENCE_WITH_A_FILE

    reading = asyncio.create_task(relay.read_client())
    answering = asyncio.create_task(relay.read_server())
    exited = asyncio.create_task(process.ended())
    hung_up, left = asyncio.create_task(ends.hung_up.wait()), asyncio.create_task(ends.left.wait())
    failed = asyncio.create_task(reported_failure())
    tasks = (reading, answering, exited, hung_up, left, failed)
    await asyncio.wait((*tasks, ends.stopped), return_when=asyncio.FIRST_COMPLETED)
    # A client that sends nothing more may still wait for answers to what it has sent.
    may_wait = (reading.done() or left.done()) and not (exited.done() or hung_up.done() or ends.stopped.done())
    if may_wait and await relay.passed_on(reading, patience_seconds):
        with suppress(TimeoutError, TransportClosed):
            await asyncio.wait_for(relay.server.transport.flush(), _SECONDS_TO_WRITE)
    has_ended_alone = not any(one.done() for one in (reading, hung_up, left, failed, ends.stopped))
    code = await process.end()
    with suppress(TimeoutError):
        await asyncio.wait_for(answering, _SECONDS_TO_WRITE)
    if has_ended_alone:
        # A server that ends at once may have done so before the client has sent anything.
        asked = asyncio.create_task(relay.was_asked.wait())
        first = (asked, reading, hung_up, left, failed, ends.stopped)
        await asyncio.wait(first, timeout=SECONDS_TO_BE_ASKED, return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
    reason = words_for_end(code, await last_words())
    if failed.done():
        code, reason = UNUSABLE, failed.result()
    if ends.stopped.done():
        code, reason = ends.stopped.result(), "The guard was stopped by a signal"
    await relay.finish(reason)
    with suppress(TimeoutError, TransportClosed):
        await asyncio.wait_for(relay.client.transport.flush(), _SECONDS_TO_WRITE)
    for task in tasks:
        task.cancel()
    await asyncio.wait(tasks)
    return code or 0


def watch_for_hang_up(descriptor: int, tell: Callable[[], object]) -> None:
    """Calls `tell` in the running loop, at most once. A file never hangs up, and some systems cannot detect it."""
    if hasattr(select, "poll"):  # pragma: no branch - Windows has none
        loop = asyncio.get_running_loop()
        threading.Thread(target=_watch, args=(descriptor, tell, loop), name="hang-up", daemon=True).start()


def _watch(descriptor: int, tell: Callable[[], object], loop: asyncio.AbstractEventLoop) -> None:
    poll = select.poll()
    poll.register(descriptor, _HALF_CLOSED)
    # Else the descriptor was closed on our side.
    if any(flags & (select.POLLHUP | _HALF_CLOSED) for _, flags in poll.poll()):  # pragma: no branch
        with suppress(RuntimeError):  # The loop has ended.
            loop.call_soon_threadsafe(tell)
