"""The stand-in that plays faults, ready to start: on the running event loop, or on a thread of its own."""

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import Any

from tests.stand_in.api import FaultyApi
from tests.stand_in.http_server import WAIT_SECONDS, HttpServer


class StandIn(HttpServer):
    """The stand-in on loopback; `keep_requests` is how many requests stay readable in `requests`."""

    def __init__(self, *, keep_requests: int = 0) -> None:
        self.api = FaultyApi()
        super().__init__(self.api.answer, keep_requests=keep_requests)

    async def close(self) -> None:
        self.api.background.stop()
        await super().close()

    async def wait_until_nothing_runs(self) -> None:
        """Return once no response is worked on in the background."""
        async with asyncio.timeout(WAIT_SECONDS):
            await self.api.background.wait_until_nothing_runs()


class StandInThread:
    """Runs a stand-in on its own event loop in a daemon thread, for callers without a loop."""

    def __init__(self, *, keep_requests: int = 0) -> None:
        self.server = StandIn(keep_requests=keep_requests)
        self.base_url = ""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="rehearsal", daemon=True)

    def __enter__(self) -> "StandInThread":
        self._thread.start()
        self.base_url = self._run(self.server.start())
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._run(self.server.close())
        self._stop()

    def wait_for_requests(self, count: int = 1) -> None:
        self._run(self.server.wait_for_requests(count))

    def wait_for_disconnect(self, count: int = 1) -> None:
        self._run(self.server.wait_for_disconnect(count))

    def wait_for_abort(self, count: int = 1) -> None:
        self._run(self.server.wait_for_abort(count))

    def wait_until_nothing_runs(self) -> None:
        self._run(self.server.wait_until_nothing_runs())

    def _run(self, work: Coroutine[Any, Any, Any]) -> Any:
        # A little longer than the wait itself, so that its own error is the one that is seen.
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(WAIT_SECONDS + 1)

    def _stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(WAIT_SECONDS)
        self._loop.close()
