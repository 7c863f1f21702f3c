"""The transport to a server over stdio, without the SDK above it."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from mcp.client.stdio import StdioServerParameters

from openai_responses_mcp.agents.mcp.stdio_server import streams_of

# Holds the pipe open for as long as it lives, and does not care whether its input ends.
DEAF = """
import sys, time
file = open(sys.argv[1], "w")
print("here", file=file, flush=True)
print("ready", flush=True)
time.sleep(60)
"""


def params(command: list[str]) -> StdioServerParameters:
    return StdioServerParameters(command=command[0], args=command[1:])


async def test_a_server_is_ended_even_if_its_caller_is_cancelled(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    reading = asyncio.create_task(asyncio.to_thread((tmp_path / "pipe").read_text))
    is_leaving = asyncio.Event()

    async def visit() -> None:
        async with streams_of(params([sys.executable, "-c", DEAF, str(tmp_path / "pipe")])) as (incoming, _):
            await incoming.receive()
            is_leaving.set()

    visiting = asyncio.create_task(visit())
    await asyncio.wait_for(is_leaving.wait(), 30)
    visiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(visiting, 30)
    assert await asyncio.wait_for(reading, 30) == "here\n"


async def test_a_command_that_does_not_exist_leaves_nothing_open() -> None:
    before = len(os.listdir("/dev/fd"))
    for _ in range(3):
        with pytest.raises(FileNotFoundError):
            async with streams_of(params(["there-is-no-such-program"])):
                pass
    await asyncio.sleep(0)
    assert len(os.listdir("/dev/fd")) == before
