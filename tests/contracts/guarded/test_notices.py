"""Lines for whoever reads stderr: whole, one each, and harmless."""

import os
from collections.abc import Callable, Iterator

import pytest

from openai_responses_mcp.guard.ports import Notices
from openai_responses_mcp.guard.stderr_lines import StderrLines
from tests.guard.fake_process import FakeNotices

Told = tuple[Notices, Callable[[], list[str]]]


@pytest.fixture(params=["fake", "stderr"])
def told(request: pytest.FixtureRequest) -> Iterator[Told]:
    """Something to tell, and what has been told."""
    if request.param == "fake":
        notices = FakeNotices()
        yield notices, lambda: notices.lines
        return
    reading, writing = os.pipe()
    lines = StderrLines("guard", writing)

    def read() -> list[str]:
        lines.close(5.0)
        os.close(writing)
        with open(reading, encoding="utf-8", closefd=False) as opened:
            return [line.removeprefix("guard: ") for line in opened.read().splitlines()]

    yield lines, read
    os.close(reading)


def test_lines_come_whole_and_in_order(told: Told) -> None:
    notices, read = told
    for number in range(100):
        notices.tell(f"line {number}")
    assert read() == [f"line {number}" for number in range(100)]
