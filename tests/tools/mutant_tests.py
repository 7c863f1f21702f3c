"""Runs tests again and again, each time in a fork: what is slow to import is imported once, and never the code under test.

    python -m tests.tools.mutant_tests

Each line on stdin is a JSON list of the most seconds and pytest's arguments; its exit code, or -1 after so long, is a line on stdout.
"""

import gc
import importlib
import json
import os
import signal
import sys
import time

import pytest

# `agents` because pytest itself imports it on its way to a folder of that name.
SLOW_IMPORTS = ("agents", "hypothesis.strategies", "psycopg", "pytest_asyncio.plugin", "pytest_timeout", "sqlalchemy")
_LOOK_SECONDS = 0.02


def main() -> None:
    for name in SLOW_IMPORTS:
        importlib.import_module(name)
    gc.freeze()  # What is imported is not garbage; looking at it again in each fork takes time.
    for line in sys.stdin:
        sys.stdout.write(f"{_exit_code(*json.loads(line))}\n")
        sys.stdout.flush()


def _exit_code(limit_seconds: float, arguments: list[str]) -> int:
    child = os.fork()
    if child == 0:
        nowhere = os.open(os.devnull, os.O_RDWR)
        for descriptor in range(3):
            os.dup2(nowhere, descriptor)
        os._exit(pytest.main(arguments))
    deadline = time.monotonic() + limit_seconds
    while time.monotonic() < deadline:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            return os.waitstatus_to_exitcode(status)
        time.sleep(_LOOK_SECONDS)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return -1


if __name__ == "__main__":
    main()
