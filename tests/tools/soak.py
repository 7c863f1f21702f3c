"""A long life in short: many calls, one in ten failing, one in twenty cancelled, one in four with progress; nothing grows.

    python -m tests.tools.soak [--calls 100000]

Anonymous memory, descriptors, threads and tasks are compared at the end with what they were after the first thousand
calls.
"""

import argparse
import random
import signal
import sys
import time
from collections import Counter

from tests.tools.talking import Broken, Message, Talk, cancellation, conversation, ping, say, tool_call

WARM_UP_CALLS = 1000
AT_ONCE = 50
MORE_MEMORY_KIB = 16 * 1024
# How many of the up to fifty connections are kept open for later is a matter of the moment.
MORE_DESCRIPTORS = 15
PULSE_SECONDS = 15.0

# The server as it is, but telling how many tasks there are when it gets the signal.
COUNTING = """
import asyncio, os, signal
from openai_responses_mcp.__main__ import entry_point

def tell(number, frame):
    os.write(2, b"tasks=%d\\n" % len(asyncio.all_tasks(asyncio.get_running_loop())))

signal.signal(signal.SIGUSR1, tell)
entry_point()
"""

FAILURES = (
    "status=401",
    "status=400",
    "drop=reset",
    "body=not-json",
    "outcome=failed",
    "status=503; retry_after=0; times=1",
)


class Soak:
    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self._chance = random.Random(1)
        self._started = 0
        self._waiting: set[int] = set()
        self._cancelled: set[int] = set()
        self.counts: Counter[str] = Counter()

    def run(self, total: int) -> None:
        """Until so many calls have been started, and all that will be answered are."""
        told = time.monotonic()
        while self._started < total or self._waiting:
            while self._started < total and len(self._waiting) < AT_ONCE:
                self._start()
            # With nothing left to wait for but what was just cancelled, a ping tells that it was handled.
            if self._waiting:
                self._note(self._talk.receive())
            if time.monotonic() - told > PULSE_SECONDS:
                told = time.monotonic()
                say(f"  {self._started:,} calls so far, {self._talk.facts()['RssAnon'] / 1024:.1f} MiB")
        self._talk.send(ping("settled"))
        for message in self._talk.receive_until(lambda message: message.get("id") == "settled")[:-1]:
            self._note(message)

    def _start(self) -> None:
        number, lot = self._started, self._chance.random()
        self._started += 1
        failure = f" [rehearse: {self._chance.choice(FAILURES)}]" if lot < 0.10 else ""
        call = tool_call(number, f"Why {number}?{failure}", reports_progress=number % 4 == 0)
        if lot >= 0.95:
            # In one piece, or the answer may be quicker than the cancellation.
            self._talk.send(call, cancellation(number))
            self._cancelled.add(number)
            self.counts["cancelled"] += 1
        else:
            self._talk.send(call)
            self._waiting.add(number)

    def _note(self, message: Message) -> None:
        if "method" in message:  # Progress.
            return
        number = message["id"]
        if number in self._cancelled:
            raise Broken(f"call {number} was answered after its cancellation")
        if number not in self._waiting:
            raise Broken(f"call {number} was answered twice")
        self._waiting.remove(number)
        self.counts["answered" if "result" in message else "failed"] += 1


def state_of(talk: Talk) -> dict[str, int]:
    talk.process.send_signal(signal.SIGUSR1)
    talk.send(ping("counted"))
    talk.receive()
    deadline = time.monotonic() + 30.0
    while b"tasks=" not in talk.stderr and time.monotonic() < deadline:
        talk.maybe_receive(0.1)
    tasks = int(talk.stderr.rpartition(b"tasks=")[2].split()[0])
    complaints = [line for line in talk.stderr.splitlines() if not line.startswith(b"tasks=")]
    if complaints:
        raise Broken(f"the server complains: {complaints[0].decode(errors='replace')[:300]}")
    talk.stderr = b""
    facts = talk.facts()
    names = {"RssAnon": "memory_kib", "Threads": "threads", "descriptors": "descriptors"}
    return {"tasks": tasks, **{name: facts[fact] for fact, name in names.items()}}


def soak(calls: int) -> list[str]:
    began = time.monotonic()
    with conversation(("-c", COUNTING, "--stdio")) as talk:
        life = Soak(talk)
        life.run(min(WARM_UP_CALLS, calls))
        before = state_of(talk)
        say(f"after {WARM_UP_CALLS:,} calls: {before}")
        life.run(calls)
        after = state_of(talk)
    took = time.monotonic() - began
    say(f"after {calls:,} calls: {after}")
    say(f"{calls:,} calls in {took:.0f} s: " + ", ".join(f"{count:,} {what}" for what, count in life.counts.items()))
    problems = [] if sum(life.counts.values()) == calls else ["calls were lost"]
    grown = after["memory_kib"] - before["memory_kib"]
    problems += [f"memory grew by {grown / 1024:.1f} MiB"] * (grown > MORE_MEMORY_KIB)
    problems += [f"{after['descriptors']} descriptors"] * (
        after["descriptors"] > before["descriptors"] + MORE_DESCRIPTORS
    )
    problems += [f"{after['tasks']} tasks"] * (after["tasks"] > before["tasks"])
    return problems + [f"{after['threads']} threads"] * (after["threads"] > before["threads"])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=100_000)
    options = parser.parse_args()
    try:
        problems = soak(options.calls)
    except Broken as exc:
        problems = [str(exc)]
    for problem in problems:
        say(f"  FAILED: {problem}")
    say("0 passed, 1 failed" if problems else "1 passed, 0 failed")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
