"""This process: the signals that end it, the limits of the system, and loading in a thread."""

import asyncio
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import Future
from functools import partial
from typing import Generic, NamedTuple, TypeVar

# Signals

EXIT_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}


def listen(react: Callable[[int], None], names: Iterable[str] = EXIT_CODES) -> None:
    """Call `react` with the exit code on these signals, in the running event loop."""
    loop = asyncio.get_running_loop()
    for name in names:
        number = getattr(signal, name, None)
        if number is not None:
            _listen(loop, number, partial(react, EXIT_CODES[name]))


def stopped_by_signal() -> "asyncio.Future[int]":
    """A future that gets the exit code when one of the signals arrives."""
    stopped: asyncio.Future[int] = asyncio.get_running_loop().create_future()
    listen(partial(stop, stopped))
    return stopped


def stop(stopped: "asyncio.Future[int]", code: int) -> None:
    """Only the first exit code counts."""
    if not stopped.done():
        stopped.set_result(code)


def _listen(loop: asyncio.AbstractEventLoop, number: signal.Signals, react: Callable[[], None]) -> None:
    if sys.platform == "win32":
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(react))
    else:
        loop.add_signal_handler(number, react)


# Limits. Nothing here depends on a file that may be missing.


def _limit(name: str) -> int | None:
    """The current limit; None if there is none."""
    if sys.platform == "win32":
        return None
    import resource  # Imported here, because the guard's relay does not need it.

    soft, _ = resource.getrlimit(getattr(resource, name))
    return None if soft == resource.RLIM_INFINITY else soft


LEAST_DESCRIPTORS = 32
LEAST_MEMORY_MIB = 512

# Where the system lists the descriptors of this process: Linux, macOS and BSD.
_DESCRIPTOR_FOLDERS = ("/proc/self/fd", "/dev/fd")
_USUALLY_OPEN = 16


def shortfalls(limit_of: Callable[[str], int | None] = _limit) -> list[str]:
    """The limits that are too low for the server, one sentence each."""
    descriptors, memory = limit_of("RLIMIT_NOFILE"), limit_of("RLIMIT_AS")
    found = []
    if descriptors is not None and descriptors < LEAST_DESCRIPTORS:
        found.append(
            f"only {descriptors} files and connections may be open at once (ulimit -n); calls may fail,"
            f" at least {LEAST_DESCRIPTORS} are needed"
        )
    if memory is not None and memory < LEAST_MEMORY_MIB * 1024 * 1024:
        found.append(
            f"only {memory // (1024 * 1024)} MiB of memory may be reserved (ulimit -v); the server may crash,"
            f" at least {LEAST_MEMORY_MIB} MiB are needed"
        )
    return found


def affordable_connections(wanted: int, limit_of: Callable[[str], int | None] = _limit) -> int:
    """At most half of the free descriptors, because lookups and files need some too."""
    limit = limit_of("RLIMIT_NOFILE")
    return wanted if limit is None else max(1, min(wanted, (limit - _open_descriptors()) // 2))


def _open_descriptors() -> int:
    for path in _DESCRIPTOR_FOLDERS:
        try:
            return len(os.listdir(path))
        except OSError:
            continue
    return _USUALLY_OPEN


# Loading

T = TypeVar("T")


class _Failure(NamedTuple):
    cause: BaseException


class WarmUp(Generic[T]):
    """Calls `load` once, in a thread, and keeps what it returns."""

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._outcome: Future[T | _Failure] = Future()
        self._has_started = False

    def start(self) -> None:
        """Start loading, unless it has started. Raises `RuntimeError` if the system cannot create a thread."""
        if not self._has_started:
            threading.Thread(target=self._run, name="warm-up", daemon=True).start()
            self._has_started = True

    async def result(self) -> T:
        """What was loaded; every call gets the same object. Raises `RuntimeError` if loading failed."""
        self.start()
        if not self._outcome.done():
            await asyncio.shield(asyncio.wrap_future(self._outcome))
        outcome = self._outcome.result()
        if isinstance(outcome, _Failure):
            # Not the cause itself: raised many times, it would collect the traceback of every call.
            raise RuntimeError("what a call needs could not be loaded") from outcome.cause
        return outcome

    async def settled(self) -> None:
        """Wait until it is loaded or has failed. Does not start loading."""
        await asyncio.shield(asyncio.wrap_future(self._outcome))

    def _run(self) -> None:
        try:
            self._outcome.set_result(self._load())
        except BaseException as exc:
            self._outcome.set_result(_Failure(exc))
