"""`--stdio`: serves one client on stdin and stdout until its input ends, it disconnects, or a signal comes."""

import asyncio
import gc
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from openai_responses_mcp.adapters.process import WarmUp, shortfalls, stop, stopped_by_signal
from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.adapters.stdio.transport import StdioTransport, claim_wire
from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.domain.cancellation import CallsInFlight
from openai_responses_mcp.server.dispatch import Connection, Dispatcher
from openai_responses_mcp.start import Basis, basis_of, prepared, settle

if TYPE_CHECKING:
    from openai_responses_mcp.container import Container
    from openai_responses_mcp.server.calling import Caller

# After its first reply a client asks for the tools. Loading at once would delay that.
WARM_UP_AFTER_SECONDS = 0.05


def serve_stdio(configuration: Configuration, environ: Mapping[str, str], *, rehearses: bool) -> int:
    """The exit code."""
    # Until everything is loaded, garbage collection would only delay the first replies.
    gc.disable()
    wire = claim_wire()
    basis = basis_of(configuration, environ)
    for shortfall in shortfalls():
        basis.logger.warning(shortfall)
    is_line_mode = environ.get("MCP_LINE_MODE") == "1"
    # Not asyncio.run, which would wait at the end for name look-ups in threads.
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(_serve(wire, basis, is_line_mode=is_line_mode, rehearses=rehearses))
    basis.logger.close()
    return code


async def _serve(wire: tuple[int, int], basis: Basis, *, is_line_mode: bool, rehearses: bool) -> int:
    stopped = stopped_by_signal()
    if rehearses:
        basis = await basis.rehearsed()
    # The client may also disconnect while calls finish after the end of input: nothing is left to answer.
    connection = _connected(basis, wire, is_line_mode=is_line_mode, on_closed=partial(stop, stopped, 0))
    served = asyncio.ensure_future(connection.serve())
    ends: set[asyncio.Future[Any]] = {served, stopped}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if served.done():
        served.result()
        return 0
    await connection.abort()
    return stopped.result()


def _connected(
    basis: Basis, wire: tuple[int, int], *, is_line_mode: bool, on_closed: Callable[[], object]
) -> Connection:
    """Starts reading from the client on these two descriptors."""
    server, logger, is_ending = basis.configuration.settings.server, basis.logger, asyncio.Event()
    logger.debug("start", tools=list(server.tools), lineMode=is_line_mode)
    loaded: list[Container] = []
    warm_up = WarmUp(lambda: load_caller(basis, is_ending, loaded))
    loop = asyncio.get_running_loop()
    transport = StdioTransport(
        *wire,
        StdioFramer(server.max_message_bytes, line_mode=is_line_mode),
        logger,
        on_closed=on_closed,
        on_first_send=lambda: loop.call_later(WARM_UP_AFTER_SECONDS, warm_up.start),
    )
    dispatcher = Dispatcher(
        CallsInFlight(logger), logger, server.tools, load_caller=warm_up.result, hand_over=server.hand_over_after_s
    )
    return Connection(transport, dispatcher, is_ending, lambda: asyncio.gather(*map(settle, loaded)))


def load_caller(basis: Basis, is_ending: asyncio.Event, loaded: "list[Container]") -> "Caller":
    """Imports everything that calls need, in a thread after the first reply. The container is added to `loaded`."""
    try:
        # Now: once descriptors or memory run out, nothing can be imported.
        basis.logger.prepare()
        container = basis.load_container(is_observed=True, is_ending=is_ending)
        caller = prepared(container)
        loaded.append(container)
        return caller
    finally:
        # Collect from now on, but never scan what is loaded: it stays, and scanning it is slow.
        gc.freeze()
        gc.enable()
