"""`--stdio`: serves one client on stdin and stdout until its input ends, it goes away, or a signal comes."""

import asyncio
import gc
import signal
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from openai_responses_mcp.adapters.stdio.transport import claim_wire
from openai_responses_mcp.adapters.system_limits import shortfalls
from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.start import Basis, basis_of, connect

_EXIT_CODES = {"SIGHUP": 129, "SIGINT": 130, "SIGTERM": 143}


def serve_stdio(configuration: Configuration, environ: Mapping[str, str], *, rehearses: bool) -> int:
    """The exit code."""
    # Until everything is loaded: looking for garbage would only hold up the first replies.
    gc.disable()
    wire = claim_wire()
    basis = basis_of(configuration, environ)
    for shortfall in shortfalls():
        basis.logger.warning(shortfall)
    is_line_mode = environ.get("MCP_LINE_MODE") == "1"
    # Not asyncio.run: it would wait for name look-ups in threads, and the process is about to end anyway.
    loop = asyncio.new_event_loop()
    code = loop.run_until_complete(_serve(wire, basis, is_line_mode=is_line_mode, rehearses=rehearses))
    basis.logger.close()
    return code


async def _serve(wire: tuple[int, int], basis: Basis, *, is_line_mode: bool, rehearses: bool) -> int:
    stopped = _signals(asyncio.get_running_loop())
    if rehearses:
        basis = await basis.rehearsed()
    connection = connect(
        basis,
        wire,
        is_line_mode=is_line_mode,
        # Also while calls are finished after the end of input: then there is no client to answer any more.
        on_closed=partial(_stop, stopped, 0),
        on_loaded=_collect_garbage,
    )
    served = asyncio.ensure_future(connection.serve())
    ends: set[asyncio.Future[Any]] = {served, stopped}
    await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    if served.done():
        served.result()
        return 0
    await connection.abort()
    return stopped.result()


def _collect_garbage() -> None:
    """From now on, and never in what was loaded until now: that is there to stay, and looking through it takes long."""
    gc.freeze()
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
