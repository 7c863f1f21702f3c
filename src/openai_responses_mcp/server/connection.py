"""The life of a connection: messages are handled until the input ends, then what is in flight is finished."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.ports import Transport
from openai_responses_mcp.server.dispatch import Dispatcher

# The process has a second to end; a little of it goes elsewhere.
LONGEST_ABORT_SECONDS = 0.7


class Connection:
    """One client. `is_ending` is set with the end of its input: from then on none of its calls is tried again.

    `settle` waits a moment: until dropped calls are cancelled at the API, and a collector has heard of the last calls.
    """

    def __init__(
        self,
        transport: Transport,
        dispatcher: Dispatcher,
        is_ending: asyncio.Event,
        settle: Callable[[], Awaitable[object]],
    ) -> None:
        self._transport = transport
        self._dispatcher = dispatcher
        self._is_ending = is_ending
        self._settle = settle

    async def serve(self) -> None:
        """Comes back when everything has been answered, or at once when the client has gone."""
        try:
            while (received := await self._transport.receive()) is not None:
                self._dispatcher.handle(received)
            self._is_ending.set()
            await self._dispatcher.drain()
            await self._transport.flush()
            await self._settle()
        except TransportClosed:
            await self.abort()

    async def abort(self) -> None:
        """Drop every call in flight, unanswered, and have it cancelled at the API as far as the time allows.

        What was answered before is written meanwhile, so that the client does not get half a message.
        """
        self._dispatcher.abort()
        with suppress(TimeoutError):
            async with asyncio.timeout(LONGEST_ABORT_SECONDS):
                await self._dispatcher.drain()
                await asyncio.gather(self._settle(), self._flush())

    async def _flush(self) -> None:
        with suppress(TransportClosed):
            await self._transport.flush()
