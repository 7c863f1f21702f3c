"""Starts and ends, many times: the process exits within a second, says nothing, and leaves nothing behind.

    python -m tests.tools.starts [--starts 1000]

The ways to end take turns. Where a call is in flight it has reached the stand-in, which would answer a minute later.
"""

import argparse
import json
import os
import select
import signal
import statistics
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

from tests.tools.talking import SERVE, environment, ping, say, stand_in, tool_call

LONGEST_END_SECONDS = 1.0
WAIT_SECONDS = 30.0
PULSE_SECONDS = 15.0

HELD = tool_call("held", "Why? [rehearse: delay=60]")
WAITING = tool_call("waiting", "Why? [rehearse: status=503; retry_after=50]")


class Wrong(Exception):
    """What a start or an end did that it must not."""


class Started:
    def __init__(self, environ: dict[str, str], stderr: int = subprocess.PIPE) -> None:
        self.process = subprocess.Popen(
            [sys.executable, *SERVE],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            env=environ,
            bufsize=0,
            start_new_session=True,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.stdin: IO[bytes] = self.process.stdin
        self.stdout: IO[bytes] = self.process.stdout

    def send(self, *messages: object) -> None:
        for message in messages:
            self.stdin.write(json.dumps(message).encode() + b"\n")

    def await_reply(self) -> None:
        if not select.select([self.stdout], [], [], WAIT_SECONDS)[0]:
            raise Wrong("no reply")
        self.stdout.readline()


def end_of_input(started: Started) -> int:
    started.stdin.close()
    return 0


def end_of_input_after_a_reply(started: Started) -> int:
    started.send(ping(1))
    started.await_reply()
    return end_of_input(started)


def end_of_input_in_a_message(started: Started) -> int:
    started.stdin.write(b'Content-Length: 100\r\n\r\n{"jsonrpc":')
    return end_of_input(started)


def end_of_input_while_waiting_for_a_retry(started: Started) -> int:
    """Two good calls come back: one when everything is loaded, one when the other has most likely been refused."""
    started.send(tool_call("loaded"))
    started.await_reply()
    started.send(WAITING, tool_call("other"))
    started.await_reply()
    return end_of_input(started)


def end_of_input_and_then_gone(started: Started) -> int:
    started.send(tool_call("loaded"))
    started.await_reply()
    started.send(HELD, tool_call("other"))
    started.await_reply()
    started.stdin.close()
    started.stdout.close()
    return 0


def closed_stdout(started: Started) -> int:
    started.send(ping(1))
    started.await_reply()
    started.stdout.close()
    return 0


def closed_stdout_with_a_call_in_flight(started: Started) -> int:
    started.send(HELD, ping(1))
    started.await_reply()
    started.stdout.close()
    return 0


def closed_both(started: Started) -> int:
    started.send(HELD)
    started.stdout.close()
    started.stdin.close()
    return 0


def killed_by(number: signal.Signals, *messages: object) -> Callable[[Started], int]:
    def end(started: Started) -> int:
        started.send(*messages, ping(1))
        started.await_reply()
        started.process.send_signal(number)
        return 128 + number

    return end


def unread(started: Started) -> int:
    """A client that reads nothing any more, and then goes away."""
    started.send(*(tool_call(number, "Why? [rehearse: size=100000]") for number in range(8)), ping(1))
    started.await_reply()
    started.stdin.close()
    started.stdout.close()
    return 0


WAYS: dict[str, Callable[[Started], int]] = {
    "end of input": end_of_input,
    "end of input after a reply": end_of_input_after_a_reply,
    "end of input inside a message": end_of_input_in_a_message,
    "end of input while a retry is waited for": end_of_input_while_waiting_for_a_retry,
    "end of input, then stdout closed with a call in flight": end_of_input_and_then_gone,
    "stdout closed": closed_stdout,
    "stdout closed with a call in flight": closed_stdout_with_a_call_in_flight,
    "both closed": closed_both,
    "replies left unread": unread,
    "SIGTERM": killed_by(signal.SIGTERM),
    "SIGINT": killed_by(signal.SIGINT),
    "SIGHUP": killed_by(signal.SIGHUP),
    "SIGTERM with calls in flight": killed_by(signal.SIGTERM, HELD, WAITING),
    "SIGINT with calls in flight": killed_by(signal.SIGINT, HELD, WAITING),
}


def live(way: str, base_url: str, *, stderr_is_closed: bool) -> float:
    """Start, end in that way, and tell how long the end took. Raises `Wrong`."""
    with TemporaryDirectory() as home:
        stderr = os.open(os.devnull, os.O_RDONLY) if stderr_is_closed else subprocess.PIPE
        started = Started(environment(home, OPENAI_BASE_URL=base_url), stderr)
        try:
            expected = WAYS[way](started)
            asked = time.monotonic()
            code = started.process.wait(WAIT_SECONDS)
            took = time.monotonic() - asked
            said = started.process.stderr.read() if started.process.stderr else b""
        except subprocess.TimeoutExpired:
            raise Wrong(f"still there after {WAIT_SECONDS:g} s") from None
        finally:
            clean_up(started, stderr)
        if code != expected:
            raise Wrong(f"exit code {code}, not {expected}; it said: {said.decode(errors='replace')[-300:]}")
        if said:
            raise Wrong(f"it said: {said.decode(errors='replace')[-300:]}")
        if left := [*children_of(started.process.pid), *map(str, Path(home).rglob("*"))]:
            raise Wrong(f"it left behind: {left}")
    return took


def clean_up(started: Started, stderr: int) -> None:
    if started.process.poll() is None:
        started.process.kill()
        started.process.wait(WAIT_SECONDS)
    for stream in (started.stdin, started.stdout, started.process.stderr):
        if stream is not None and not stream.closed:
            stream.close()
    if stderr != subprocess.PIPE:
        os.close(stderr)


def children_of(session: int) -> list[str]:
    """Processes that are still in the session the server was the leader of."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = entry.read_text()
        except OSError:
            continue  # It has ended meanwhile.
        if int(text.rpartition(")")[2].split()[3]) == session:
            found.append(f"process {entry.parent.name}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--starts", type=int, default=1000)
    options = parser.parse_args()
    took: dict[str, list[float]] = defaultdict(list)
    problems: dict[str, str] = {}
    with stand_in() as base_url, ThreadPoolExecutor(os.cpu_count() or 1) as pool:

        def start(number: int) -> None:
            way = list(WAYS)[number % len(WAYS)]
            try:
                took[way].append(live(way, base_url, stderr_is_closed=number // len(WAYS) % 4 == 3))
            except (Wrong, OSError) as exc:
                problems[f"{way} (start {number})"] = str(exc)

        told = time.monotonic()
        for done, _ in enumerate(pool.map(start, range(options.starts)), 1):
            if time.monotonic() - told > PULSE_SECONDS:
                told = time.monotonic()
                say(f"  {done:,} of {options.starts:,}")
    for way, seconds in took.items():
        slowest = max(seconds)
        say(f"{way}: {len(seconds)} times, {statistics.median(seconds) * 1000:.0f} ms, at most {slowest * 1000:.0f} ms")
        if slowest > LONGEST_END_SECONDS:
            problems[way] = f"took {slowest:.2f} s"
    for way, problem in problems.items():
        say(f"  FAILED: {way}: {problem}")
    say(f"{options.starts - len(problems)} passed, {len(problems)} failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
