"""What belongs to the real process alone: its pipes, its environment, its children."""

import asyncio
import os
import sys
import time
from contextlib import closing
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.child_process import ChildProcess
from tests.fakes import SLOW_SECONDS

SPAWNING = "import subprocess, sys\nchild = subprocess.Popen(['sleep', '60'])\nprint(child.pid, flush=True)\n"


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("then", ["", "sys.stdin.read()"], ids=["exits at once", "waits for its end"])
async def test_what_it_has_started_ends_with_it(then: str) -> None:
    process = ChildProcess([sys.executable, "-c", SPAWNING + then], os.environ)
    child = int(os.read(process.wires[0], 100))
    with closing(process):
        assert await asyncio.wait_for(process.end() if then else process.ended(), SLOW_SECONDS) == 0
    deadline = time.monotonic() + SLOW_SECONDS
    while is_running(child):
        assert time.monotonic() < deadline
        await asyncio.sleep(0)


async def test_its_input_can_be_closed_while_somebody_writes() -> None:
    process = ChildProcess([sys.executable, "-c", "import time\nwhile True: time.sleep(1)"], {})
    wire = process.wires[1]
    process.close_input()
    with closing(process):
        assert os.write(wire, b"this goes nowhere") == 17
        assert await asyncio.wait_for(process.end(), SLOW_SECONDS) == 143


async def test_a_command_that_is_not_there_cannot_be_started() -> None:
    with pytest.raises(FileNotFoundError):
        ChildProcess(["/nowhere/at-all"], {})
