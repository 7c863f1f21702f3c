"""Notices that the client has closed our input, even while messages from it still wait to be read."""

import asyncio
import contextlib
import select
import threading
from collections.abc import Callable

# Of a socket only one half may be closed, which not every system can tell.
_HALF_CLOSED = getattr(select, "POLLRDHUP", 0)


def watch_for_hang_up(descriptor: int, tell: Callable[[], object]) -> None:
    """Calls `tell` in the running loop, at most once. A file never hangs up; and some systems cannot tell."""
    if hasattr(select, "poll"):
        loop = asyncio.get_running_loop()
        threading.Thread(target=_watch, args=(descriptor, tell, loop), name="hang-up", daemon=True).start()


def _watch(descriptor: int, tell: Callable[[], object], loop: asyncio.AbstractEventLoop) -> None:
    poll = select.poll()
    poll.register(descriptor, _HALF_CLOSED)
    if any(flags & (select.POLLHUP | _HALF_CLOSED) for _, flags in poll.poll()):
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            loop.call_soon_threadsafe(tell)
