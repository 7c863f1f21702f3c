"""What the guarded server writes to stderr arrives bounded and without anything that steers a terminal."""

import logging
import os
import threading

from openai_responses_mcp.adapters.child_process import LONGEST_LINE, StderrLines
from tests.fakes import WAIT_SECONDS


def followed(*chunks: bytes) -> list[str]:
    """What comes out when the server writes this and ends."""
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


def test_lines_pass_however_they_are_cut() -> None:
    assert followed(b"one\ntw", b"o\nthr\xc3", b"\xa9e") == ["one", "two", "thrée"]


def test_what_steers_a_terminal_is_left_out() -> None:
    assert followed("\x1b[31mred\x07 \u202eturned\r\n".encode()) == ["[31mred turned"]


def test_bytes_that_are_no_text_are_replaced() -> None:
    assert followed(b"\xff\xfe\n") == ["��"]


def test_a_line_without_an_end_is_cut() -> None:
    found = followed(*[b"x" * 10_000] * 5, b"\nnext\n")
    assert found == ["x" * LONGEST_LINE, "next"]


def test_lines_of_the_guard_come_whole_and_in_order() -> None:
    reading, writing = os.pipe()
    lines = StderrLines("guard", writing)
    for number in range(100):
        lines.tell(f"line {number}")
    lines.close(WAIT_SECONDS)
    os.close(writing)
    with open(reading, encoding="utf-8") as opened:
        assert opened.read().splitlines() == [f"guard: line {number}" for number in range(100)]


def test_the_last_line_that_says_something_is_known_at_the_end() -> None:
    theirs, ours = os.pipe(), os.pipe()
    lines = StderrLines("guard", ours[1])
    followed = lines.follow(theirs[0])
    os.write(theirs[1], b"one\n  no \x1btoken\n\n   ")
    os.close(theirs[1])
    assert followed.last_line(WAIT_SECONDS) == "no token"
    lines.close(WAIT_SECONDS)
    for descriptor in (theirs[0], *ours):
        os.close(descriptor)


def test_warnings_of_the_library_become_lines() -> None:
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
