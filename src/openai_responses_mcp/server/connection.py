"""The life of a connection: messages are handled until the input ends, then what is in flight is finished."""

from collections.abc import Callable

from openai_responses_mcp.domain.errors import TransportClosed
from openai_responses_mcp.domain.ports import Transport
from openai_responses_mcp.server.dispatch import Dispatcher


async def serve(transport: Transport, dispatcher: Dispatcher, on_end_of_input: Callable[[], None]) -> None:
    """Comes back when everything has been answered, or at once when nobody is left to answer to."""
    try:
        while (arrived := await transport.receive()) is not None:
            dispatcher.handle(arrived)
        on_end_of_input()
        await dispatcher.drain()
        await transport.flush()
    except TransportClosed:
        dispatcher.abort()
