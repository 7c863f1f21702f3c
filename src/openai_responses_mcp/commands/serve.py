"""`--stdio`: serves one client on stdin and stdout until its input ends, it goes away, or a signal comes."""

import asyncio
import gc
from collections.abc import Mapping
from functools import partial
from typing import Any

from openai_responses_mcp.adapters.process import shortfalls, stop, stopped_by_signal
from openai_responses_mcp.adapters.stdio.transport import claim_wire
from openai_responses_mcp.config.loading import Configuration
from openai_responses_mcp.start import Basis, basis_of, connect


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
    stopped = stopped_by_signal()
    if rehearses:
        basis = await basis.rehearsed()
    connection = connect(
        basis,
        wire,
        is_line_mode=is_line_mode,
        # Also while calls are finished after the end of input: then there is no client to answer any more.
        on_closed=partial(stop, stopped, 0),
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
