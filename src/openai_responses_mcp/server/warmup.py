"""Loads what calls need behind the first replies, in a daemon thread, so that neither they nor the end wait for it."""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import Generic, TypeVar

T = TypeVar("T")


class WarmUp(Generic[T]):
    def __init__(self, load: Callable[[], T]) -> None:
        self._load = load
        self._loaded: Future[T] = Future()
        self._has_started = False

    def start(self) -> None:
        """Begin if nobody has yet."""
        if not self._has_started:
            self._has_started = True
            threading.Thread(target=self._run, name="warm-up", daemon=True).start()

    async def result(self) -> T:
        """What was loaded; every call gets the same, also the same failure."""
        self.start()
        return await asyncio.shield(asyncio.wrap_future(self._loaded))

    def _run(self) -> None:
        try:
            self._loaded.set_result(self._load())
        except BaseException as exc:
            self._loaded.set_exception(exc)
