"""The command line of one measurement by itself: a table for people, every figure for `make bench`."""

import argparse
import json
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

Found = dict[str, Any]


def main(
    name: str, counted: str, times: int, measured: Callable[[int, Path], Found], as_text: Callable[[Found], str]
) -> None:
    parser = argparse.ArgumentParser(prog=f"python -m tests.tools.bench.{name}")
    parser.add_argument(f"--{counted}", type=int, default=times, dest="times")
    parser.add_argument("--json", action="store_true", help="every figure instead of a table")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        found = measured(options.times, Path(folder))
    sys.stdout.write((json.dumps(found) if options.json else as_text(found)) + "\n")
