"""Runs the fuzz targets one after another and tells how often each was executed and what it found.

    python -m tests.tools.fuzz --seconds 60 [target ...]

What is found is kept under `.fuzz`, with the corpus, so that the next run starts where this one ended. An execution is
one input; that of the framer runs it twice, in one piece and cut.
"""

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from pathlib import Path
from typing import NamedTuple

from tests.tools.talking import say

ROOT = Path(__file__).resolve().parents[2]
TARGETS = ("framer", "jsonrpc", "replies")
SLACK_SECONDS = 60.0
PULSE_SECONDS = 15.0

_EXECUTED = re.compile(rb"stat::number_of_executed_units:\s*(\d+)")
_PULSE = re.compile(rb"^#(\d+)\s")
_COVERED = re.compile(rb"\bcov: (\d+)")


class Result(NamedTuple):
    executed: int
    covered: int
    finding: str


def prepare(target: str, home: Path) -> list[str]:
    """What the fuzzer is told: a dictionary, the longest input worth trying, and the folder with the seeds."""
    module = import_module(f"tests.tools.fuzz_{target}")
    folder = home / target
    corpus = folder / "corpus"
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(module.SEEDS):
        (corpus / f"seed-{number}").write_bytes(seed)
    quoted = ["".join(f"\\x{byte:02x}" for byte in word) for word in module.WORDS]
    (folder / "words.dict").write_text("".join(f'"{word}"\n' for word in quoted))
    return [
        f"-max_len={module.LONGEST_INPUT}",
        f"-dict={folder / 'words.dict'}",
        f"-artifact_prefix={folder}/",
        "-print_final_stats=1",
        "-reload=1",
        "-timeout=25",
        "-rss_limit_mb=2048",
        str(corpus),
    ]


def run(target: str, options: list[str], seconds: float) -> Result:
    """One process of one target; a finding is what it wrote last."""
    process = subprocess.Popen(
        [sys.executable, "-m", f"tests.tools.fuzz_{target}", f"-max_total_time={seconds:.0f}", *options],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), str(ROOT)])},
    )
    watchdog = threading.Timer(seconds + SLACK_SECONDS, process.kill)
    watchdog.start()
    assert process.stderr is not None
    executed, covered = 0, 0
    tail: list[str] = []
    told = time.monotonic()
    for line in process.stderr:
        tail = [*tail[-30:], line.decode(errors="replace").rstrip()]
        executed = max([executed, *(int(n) for n in _PULSE.findall(line) + _EXECUTED.findall(line))])
        covered = max([covered, *(int(n) for n in _COVERED.findall(line))])
        if time.monotonic() - told > PULSE_SECONDS:
            told = time.monotonic()
            say(f"  {target}: {executed:,} executions so far")
    is_clean = process.wait() == 0
    watchdog.cancel()
    return Result(executed, covered, "" if is_clean else "\n".join(tail))


def fuzz(target: str, options: argparse.Namespace) -> bool:
    """Whether nothing was found."""
    told = prepare(target, options.folder)
    began = time.monotonic()
    with ThreadPoolExecutor(options.jobs) as pool:
        results = list(pool.map(lambda _: run(target, told, options.seconds), range(options.jobs)))
    executed, covered = sum(result.executed for result in results), max(result.covered for result in results)
    findings = [result.finding for result in results if result.finding]
    say(
        f"{target}: {executed:,} executions in {time.monotonic() - began:.0f} s, {covered} places reached,"
        f" {len(findings)} findings"
    )
    for finding in findings:
        say(finding)
    return not findings


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each target")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes for each target")
    parser.add_argument("--folder", type=Path, default=ROOT / ".fuzz", help="where corpus and findings are kept")
    parser.add_argument("targets", nargs="*", help=f"of {', '.join(TARGETS)}; all when none is named")
    options = parser.parse_args()
    outcomes = [fuzz(target, options) for target in options.targets or TARGETS]
    say(f"{sum(outcomes)} passed, {len(outcomes) - sum(outcomes)} failed")
    return 0 if all(outcomes) else 1


if __name__ == "__main__":
    sys.exit(main())
