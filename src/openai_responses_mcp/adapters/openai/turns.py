"""Lets questions begin one after another, each in a turn of the event loop of its own.

Of many that come at once, the first is on its way while the next is still prepared. If all were prepared first, all would be
sent late, and all answers would come together.
"""

import asyncio
from collections import deque


class Turns:
    def __init__(self) -> None:
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_taken = False

    async def next(self) -> None:
        """Wait for a turn of the loop in which no other question has begun. Often that is this one."""
        loop = asyncio.get_running_loop()
        if self._is_taken:
            turn = loop.create_future()
            self._waiting.append(turn)
            try:
                await turn
            except asyncio.CancelledError:
                if not turn.cancelled():
                    self._pass_on()  # Its turn had come, and it is not going to use it.
                raise
        self._is_taken = True
        loop.call_soon(self._pass_on)

    def _pass_on(self) -> None:
        self._is_taken = False
        while self._waiting and not self._is_taken:
            turn = self._waiting.popleft()
            if not turn.done():
                self._is_taken = True
                turn.set_result(None)
