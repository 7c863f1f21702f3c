"""Many calls through the guard: none lost, none twice, each with its records, and the chain of the log whole.

python -m tests.tools.guard_load [--calls 10000] [--at-once 100]
"""

import argparse
import asyncio
import sys
import tempfile
import time
from collections import Counter
from contextlib import closing
from pathlib import Path

from openai_responses_mcp.desk.opening import open_desk_parts
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from tests.guard.conftest import ALLOW_ALL, Guard, policy_file
from tests.tools.talking import say

EVENTS = ("decision", "started", "outcome")


def through_the_guard(folder: Path, count: int, at_once: int) -> list[str]:
    """What is wrong with so many calls, of which so many are under way together."""
    began = time.monotonic()
    with closing(Guard(folder, "--policy", policy_file(folder, ALLOW_ALL))) as guard:
        for number in range(count):
            guard.start_call("echo", number, text=str(number))
            if number >= at_once:
                guard.reply_to_any()
        while len(guard.received) < count:
            guard.reply_to_any()
        code = guard.finish()
        took, store = time.monotonic() - began, guard.store
    answered = Counter(message["id"] for message in guard.received)
    reached = Counter(message["arguments"]["text"] for message in guard.calls_seen())
    problems = [] if code == 0 else [f"exit code {code}"]
    problems += _problems_with("answered", answered, set(range(count)))
    problems += _problems_with("run", reached, set(map(str, range(count))))
    problems += asyncio.run(_problems_in_log(store, count))
    say(f"{count:,} calls through the guard, {at_once} at once: {took:.0f} s, {len(problems)} problems")
    return problems


def _problems_with(what: str, found: Counter[object], wanted: set[object]) -> list[str]:
    lost, twice = wanted - found.keys(), [one for one, times in found.items() if times > 1]
    return [f"{len(lost)} not {what}"] * bool(lost) + [f"{len(twice)} {what} twice"] * bool(twice)


async def _problems_in_log(store: str, count: int) -> list[str]:
    logs = await open_stores(store, must_exist=True).logs.query()
    per_event = Counter(log.event for log in logs)
    problems = [f"{per_event[event]} records of {event}" for event in EVENTS if per_event[event] != count]
    verified = await open_desk_parts(store).audit.verify()
    return problems if verified.is_intact else [*problems, verified.problem]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, default=10_000)
    parser.add_argument("--at-once", type=int, default=100)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        problems = through_the_guard(Path(folder), options.calls, options.at_once)
    for problem in problems:
        say(f"  FAILED: {problem}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
