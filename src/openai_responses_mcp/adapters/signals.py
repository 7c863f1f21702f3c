"""The signals that ask a command to end, and the exit code for each."""

import asyncio
import signal
import sys
from collections.abc import Callable, Iterable
from functools import partial

EXIT_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}


def listen(react: Callable[[int], None], names: Iterable[str] = EXIT_CODES) -> None:
    """From now on these signals call it, with the exit code, in the running event loop."""
    loop = asyncio.get_running_loop()
    for name in names:
        number = getattr(signal, name, None)
        if number is not None:
            _listen(loop, number, partial(react, EXIT_CODES[name]))


def stopped_by_signal() -> "asyncio.Future[int]":
    """Done with the exit code once one of the signals comes."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    listen(partial(stop, stopped))
    return stopped


def stop(stopped: "asyncio.Future[int]", code: int) -> None:
    """The first reason to end is the one that counts."""
    if not stopped.done():
        stopped.set_result(code)


def _listen(loop: asyncio.AbstractEventLoop, number: signal.Signals, react: Callable[[], None]) -> None:
    if sys.platform == "win32":
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(react))
    else:
        loop.add_signal_handler(number, react)
