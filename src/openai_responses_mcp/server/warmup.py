"""Loads what calls need behind the first replies, in a daemon thread, so that neither they nor the end wait for it."""

import asyncio
import contextlib
import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class _Failure(NamedTuple):
    cause: BaseException


class WarmUp(Generic[T]):
    """Calls wait for what `load` yields first; it is run to its end, but nobody waits for that."""

    def __init__(self, load: Callable[[], Iterator[T]]) -> None:
        self._load = load
        self._outcome: Future[T | _Failure] = Future()
        self._has_started = False

    def start(self) -> None:
        """Begin if nobody has yet."""
        if not self._has_started:
            self._has_started = True
            threading.Thread(target=self._run, name="warm-up", daemon=True).start()

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

    def _run(self) -> None:
        loading = self._load()
        try:
            self._outcome.set_result(next(loading))
        except BaseException as exc:
            self._outcome.set_result(_Failure(exc))
        with contextlib.suppress(Exception):  # It goes wrong again, and is told, when a call needs it.
            deque(loading, maxlen=0)
