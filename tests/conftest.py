"""Fixtures that every folder shares."""

import sys
from collections.abc import Iterator

import pytest

from tests.stand_in.server import StandInThread

# Signals, closed descriptors and terminals as only POSIX has them.
collect_ignore = (
    ["e2e/test_process.py", "e2e/test_terminal.py", "e2e/test_completions.py"] if sys.platform == "win32" else []
)


@pytest.fixture
def rehearsal() -> Iterator[StandInThread]:
    """The stand-in for the API, on a thread of its own; it remembers what it was asked."""
    with StandInThread(keep_requests=2000) as rehearsal:
        yield rehearsal
