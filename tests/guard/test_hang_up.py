"""That the client has closed its end is learnt also while nobody reads."""

import asyncio
import os
import socket

from openai_responses_mcp.guard.hang_up import watch_for_hang_up
from tests.agents.fakes import within


async def test_a_pipe_that_is_closed_is_told_with_bytes_still_in_it() -> None:
    ours, theirs = os.pipe()
    told = asyncio.Event()
    watch_for_hang_up(ours, told.set)
    os.write(theirs, b"more")
    assert not told.is_set()
    os.close(theirs)
    await within(told.wait())
    os.close(ours)


async def test_half_a_socket_that_is_closed_is_told() -> None:
    ours, theirs = socket.socketpair()
    told = asyncio.Event()
    watch_for_hang_up(ours.fileno(), told.set)
    theirs.shutdown(socket.SHUT_WR)
    await within(told.wait())
    ours.close()
    theirs.close()
