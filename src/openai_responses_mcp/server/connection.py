"""The life of a connection: messages are handled until the input ends, then what is in flight is finished."""

import asyncio

from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.ports import Transport
from openai_responses_mcp.server.dispatch import Dispatcher


class Connection:
    """One client. `is_ending` is set with the end of its input: from then on no call of its is tried again."""

    def __init__(self, transport: Transport, dispatcher: Dispatcher, is_ending: asyncio.Event) -> None:
        self._transport = transport
        self._dispatcher = dispatcher
        self._is_ending = is_ending

    async def serve(self) -> None:
        """Comes back when everything has been answered, or at once when the client has gone."""
        try:
            while (arrived := await self._transport.receive()) is not None:
                self._dispatcher.handle(arrived)
            self._is_ending.set()
            await self._dispatcher.drain()
            await self._transport.flush()
        except TransportClosed:
            self.abort()

    def abort(self) -> None:
        """Drop every call in flight, unanswered."""
        self._dispatcher.abort()
