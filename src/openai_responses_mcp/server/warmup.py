"""Loads what calls need after the first replies, in a daemon thread: neither the replies nor the exit wait for it."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class _Failure(NamedTuple):
    cause: BaseException


class WarmUp(Generic[T]):
    """Calls `load` once; `result` is what it returned."""

    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._outcome: Future[T | _Failure] = Future()
        self._has_started = False

    def start(self) -> None:
        """Begin, unless it has begun. Raises `RuntimeError` where the system has no thread to give."""
        if not self._has_started:
            threading.Thread(target=self._run, name="warm-up", daemon=True).start()
            self._has_started = True

    async def result(self) -> T:
        """What was loaded; every call gets the same. Raises `RuntimeError` from whatever went wrong."""
        self.start()
        if not self._outcome.done():
            await asyncio.shield(asyncio.wrap_future(self._outcome))
        outcome = self._outcome.result()
        if isinstance(outcome, _Failure):
            # Not the cause itself: raised again and again, it would gather the traceback of every call.
            raise RuntimeError("what a call needs could not be loaded") from outcome.cause
        return outcome

    async def settled(self) -> None:
        """Wait until it is loaded or has failed. Does not begin it."""
        await asyncio.shield(asyncio.wrap_future(self._outcome))

    def _run(self) -> None:
        try:
            self._outcome.set_result(self._load())
        except BaseException as exc:
            self._outcome.set_result(_Failure(exc))
