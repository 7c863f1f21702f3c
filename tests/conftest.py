"""Fixtures that every folder shares."""

import sys
from collections.abc import Iterator

import pytest

from tests.stand_in.server import StandInThread

# Signals, closed descriptors and terminals as only POSIX has them.
_POSIX_ONLY = [
    "agents/adapters/test_system_paths.py",
    *(f"agents/terminal/test_{name}.py" for name in ("command_line", "deciding", "desk_page", "policy", "showing")),
    "commands/test_asking_options.py",
    *(f"agents/guard/test_guard_{name}.py" for name in ("bytes", "faults", "process")),
    *(f"docs/test_{name}.py" for name in ("guard_pictures", "recording")),
    *(f"e2e/test_{name}.py" for name in ("completions", "process", "terminal")),
]
collect_ignore = _POSIX_ONLY if sys.platform == "win32" else []


@pytest.fixture
def rehearsal() -> Iterator[StandInThread]:
    """The stand-in for the API, on a thread of its own; it remembers what it was asked."""
    with StandInThread(keep_requests=2000) as rehearsal:
        yield rehearsal
