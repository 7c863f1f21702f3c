"""A real child process: its pipes, its children, and what it writes to stderr."""

import asyncio
import logging
import os
import sys
import threading
import time
from contextlib import closing
from pathlib import Path

import pytest

from openai_responses_mcp.adapters.child_process import LONGEST_LINE, ChildProcess, StderrLines
from tests.fakes import SLOW_SECONDS, WAIT_SECONDS

SPAWNING = "import subprocess, sys\nchild = subprocess.Popen(['sleep', '60'])\nprint(child.pid, flush=True)\n"


def is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("then", ["", "sys.stdin.read()"], ids=["exits at once", "waits for its end"])
async def test_the_children_of_the_process_end_with_it(then: str) -> None:
    process = ChildProcess([sys.executable, "-c", SPAWNING + then], os.environ)
    child = int(os.read(process.wires[0], 100))
    with closing(process):
        assert await asyncio.wait_for(process.end() if then else process.ended(), SLOW_SECONDS) == 0
    deadline = time.monotonic() + SLOW_SECONDS
    while is_running(child):
        assert time.monotonic() < deadline
        await asyncio.sleep(0)


async def test_writing_after_its_input_was_closed_does_not_fail() -> None:
    process = ChildProcess([sys.executable, "-c", "import time\nwhile True: time.sleep(1)"], {})
    wire = process.wires[1]
    process.close_input()
    with closing(process):
        assert os.write(wire, b"this goes nowhere") == 17
        assert await asyncio.wait_for(process.end(), SLOW_SECONDS) == 143


async def test_a_missing_command_cannot_be_started() -> None:
    with pytest.raises(FileNotFoundError):
        ChildProcess(["/nowhere/at-all"], {})


# Its stderr


def followed(*chunks: bytes) -> list[str]:
    """The lines that come out when the server writes these chunks and ends."""
    theirs, ours = os.pipe(), os.pipe()
    lines = StderrLines("guard", ours[1])
    lines.follow(theirs[0])
    for chunk in chunks:
        os.write(theirs[1], chunk)
    os.close(theirs[1])
    for thread in threading.enumerate():
        if thread.name == "server-stderr":
            thread.join(WAIT_SECONDS)
    lines.close(WAIT_SECONDS)
    os.close(ours[1])
    with open(ours[0], encoding="utf-8", newline="\n") as opened:
        return opened.read().split("\n")[:-1]


@pytest.mark.parametrize(
    ("chunks", "lines"),
    [
        ([b"one\ntw", b"o\nthr\xc3", b"\xa9e"], ["one", "two", "thrée"]),
        (["\x1b[31mred\x07 \u202eturned\r\n".encode()], ["[31mred turned"]),
        ([b"\xff\xfe\n"], ["��"]),
        ([*[b"x" * 10_000] * 5, b"\nnext\n"], ["x" * LONGEST_LINE, "next"]),
    ],
    ids=["cut", "control characters", "no text", "no end"],
)
def test_stderr_lines_of_a_server_are_bounded_and_have_no_control_characters(
    chunks: list[bytes], lines: list[str]
) -> None:
    assert followed(*chunks) == lines


def test_the_last_nonblank_line_is_known_at_the_end() -> None:
    theirs, ours = os.pipe(), os.pipe()
    lines = StderrLines("guard", ours[1])
    followed = lines.follow(theirs[0])
    os.write(theirs[1], b"one\n  no \x1btoken\n\n   ")
    os.close(theirs[1])
    assert followed.last_line(WAIT_SECONDS) == "no token"
    lines.close(WAIT_SECONDS)
    for descriptor in (theirs[0], *ours):
        os.close(descriptor)


def test_log_warnings_become_lines_of_the_guard() -> None:
    reading, writing = os.pipe()
    lines, before = StderrLines("guard", writing), logging.getLogger().handlers[:]
    try:
        lines.take_over_logging()
        logging.getLogger("openai_responses_mcp.agents").warning("look\nat %s", "this")
    finally:
        logging.basicConfig(handlers=before, force=True)
    lines.close(WAIT_SECONDS)
    assert os.read(reading, 1000) == b"guard: look at this\n"
    os.close(reading)
    os.close(writing)
