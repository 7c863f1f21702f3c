"""The stdio server: opens the wire, answers what needs no model at once, loads the rest behind the first reply."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from openai_responses_mcp.adapters.stdio.framing import StdioFramer
from openai_responses_mcp.adapters.stdio.transport import StdioTransport, claim_wire
from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.server.dispatch import Dispatcher
from openai_responses_mcp.server.session import serve
from openai_responses_mcp.server.warmup import WarmUp
from openai_responses_mcp.start import Surroundings, surroundings

if TYPE_CHECKING:
    from openai_responses_mcp.server.calling import ToolCaller

# A client that has its first reply asks for the tools next; the imports would only hold that up.
WARM_UP_AFTER_SECONDS = 0.05

_EXIT_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}


def serve_stdio(configuration: Configuration, environ: Mapping[str, str], *, rehearses: bool) -> int:
    """The exit code, once the input has ended, the client has gone, or a signal has come."""
    wire = claim_wire()
    around = surroundings(configuration, environ)
    is_line_mode = environ.get("MCP_LINE_MODE") == "1"
    # Not asyncio.run: it would wait for name look-ups in threads, and the process is about to end anyway.
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(_serve(wire, around, is_line_mode=is_line_mode, rehearses=rehearses))
    around.logger.close()
    return code


async def _serve(wire: tuple[int, int], around: Surroundings, *, is_line_mode: bool, rehearses: bool) -> int:
    loop = asyncio.get_running_loop()
    stopped = _signals(loop)
    if rehearses:
        around = await around.rehearsed()
    server = around.configuration.settings.server
    around.logger.debug("start", tools=list(server.tools), lineMode=is_line_mode)
    warm_up = WarmUp(partial(_load, around))
    framer = StdioFramer(server.max_message_bytes, line_mode=is_line_mode)
    # Also while what is in flight is finished, after the end of input: nobody is left to answer to.
    transport = StdioTransport(*wire, framer, around.logger, on_closed=partial(_stop, stopped, 0))
    dispatcher = Dispatcher(
        transport,
        around.logger,
        server.tools,
        load_caller=warm_up.result,
        on_first_reply=lambda: loop.call_later(WARM_UP_AFTER_SECONDS, warm_up.start),
    )
    session = asyncio.ensure_future(serve(transport, dispatcher, around.is_ending.set))
    ends: set[asyncio.Future[Any]] = {session, stopped}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if session.done():
        session.result()
        return 0
    dispatcher.abort()
    return stopped.result()


def _load(around: Surroundings) -> "Iterator[ToolCaller]":
    try:
        container = around.load_container()
        container.openai_gateway().prepare()
        yield container.tool_caller()
    finally:
        gc.enable()


def _signals(loop: asyncio.AbstractEventLoop) -> "asyncio.Future[int]":
    """Done, with the exit code, when a signal asks us to stop."""
    stopped: asyncio.Future[int] = loop.create_future()

    for name, code in _EXIT_CODES.items():
        number = getattr(signal, name, None)
        if number is not None:
            _listen(loop, number, partial(_stop, stopped, code))
    return stopped


def _stop(stopped: "asyncio.Future[int]", code: int) -> None:
    if not stopped.done():
        stopped.set_result(code)


def _listen(loop: asyncio.AbstractEventLoop, number: signal.Signals, react: Callable[[], None]) -> None:
    if sys.platform == "win32":
        signal.signal(number, lambda *_: loop.call_soon_threadsafe(react))
    else:
        loop.add_signal_handler(number, react)
