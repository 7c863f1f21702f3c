"""Many calls at once, and cancellations that race the replies: nothing is lost, nothing comes twice.

    python -m tests.tools.load [--calls 1000 10000] [--races 100000]

Tells how long a `ping` takes meanwhile and how much memory the server needs at most.
"""

import argparse
import random
import statistics
import sys
import time
from collections import Counter
from collections.abc import Callable
from functools import partial

from tests.tools.talking import Broken, Message, Talk, cancellation, conversation, ping, say, tool_call

DELAY_SECONDS = 0.2
PING_EVERY_SECONDS = 0.05
LONGEST_PING_SECONDS = 1.0
MOST_MEMORY_MIB = 512
PULSE_SECONDS = 10.0


def in_flight(count: int) -> list[str]:
    """What is wrong with the replies to so many calls, sent in one write."""
    with conversation() as talk:
        answered, pings = answers_and_pings(talk, count)
        peak_mib = talk.facts()["VmHWM"] / 1024
    lost, twice = set(range(count)) - answered.keys(), [i for i, times in answered.items() if times > 1]
    behind, *later = pings
    median, worst = statistics.median(later) * 1000, max(later) * 1000
    say(
        f"{count:,} calls in flight: {len(lost)} lost, {len(twice)} answered twice; a ping written right behind them was"
        f" answered after {behind * 1000:.0f} ms, {len(later)} pings later on took {median:.1f} ms in the median,"
        f" {worst:.0f} ms at most; peak memory {peak_mib:.0f} MiB"
    )
    problems = [f"{len(lost)} lost"] * bool(lost) + [f"{len(twice)} answered twice"] * bool(twice)
    problems += [f"a ping took {worst:.0f} ms"] * (worst > LONGEST_PING_SECONDS * 1000)
    return problems + [f"peak memory of {peak_mib:.0f} MiB"] * (peak_mib > MOST_MEMORY_MIB)


def answers_and_pings(talk: Talk, count: int) -> tuple[Counter[int], list[float]]:
    """How often each call was answered, and how long each ping took while calls were in flight."""
    answered: Counter[int] = Counter()
    pings: list[float] = []
    asked_at: dict[str, float] = {}
    talk.send(*(tool_call(number, f"Why? [rehearse: delay={DELAY_SECONDS}]") for number in range(count)))
    next_ping = 0.0
    while len(answered) < count:
        if time.monotonic() >= next_ping and not asked_at:
            name = f"ping {len(pings)}"
            asked_at[name] = time.monotonic()
            talk.send(ping(name))
            next_ping = time.monotonic() + PING_EVERY_SECONDS
        message = talk.maybe_receive(PING_EVERY_SECONDS if not asked_at else 30.0)
        if message is None and asked_at:
            raise Broken("no reply for 30 s")
        if message is not None and isinstance(message["id"], str):
            pings.append(time.monotonic() - asked_at.pop(message["id"]))
        elif message is not None:
            answered[message["id"]] += is_good(message)
    # Whatever was answered twice has been by the time of the reply to one more ping.
    talk.send(ping("last"))
    for message in talk.receive_until(lambda message: message["id"] == "last"):
        if isinstance(message["id"], int):
            answered[message["id"]] += 1
    return answered, pings


def is_good(message: Message) -> bool:
    if "result" not in message:
        raise Broken(f"a call failed: {message['error']}")
    return True


def race(count: int) -> list[str]:
    """Calls and cancellations in batches; whoever comes first wins, and the loser stays silent."""
    chance = random.Random(1)
    answered, cancelled, late, twice, told = 0, 0, 0, 0, time.monotonic()
    over: set[str] = set()
    with conversation() as talk:
        while answered + cancelled < count:
            names = [f"{answered + cancelled + offset}" for offset in range(chance.randint(1, 60))]
            talk.send(*(tool_call(name) for name in names))
            early = [talk.receive()["id"] for _ in range(chance.randint(0, len(names)))]
            chance.shuffle(names)
            talk.send(*(cancellation(name) for name in names), ping("handled"))
            early += [m["id"] for m in talk.receive_until(lambda m: m["id"] == "handled")][:-1]
            # What is answered from here on was answered after its cancellation was handled.
            late += sum(name in over for name in early)
            twice += len(early) - len(set(early))
            over = set(names) - set(early)
            answered, cancelled = answered + len(set(early)), cancelled + len(over)
            if time.monotonic() - told > PULSE_SECONDS:
                told = time.monotonic()
                say(f"  {answered + cancelled:,} races so far")
        talk.send(ping("last"))
        late += len(talk.receive_until(lambda m: m["id"] == "last")) - 1
    say(
        f"{answered + cancelled:,} cancellations racing the reply: {answered:,} answered first, {cancelled:,} cancelled"
        f" first, {twice} answered twice, {late} answered after the cancellation"
    )
    return [f"{twice} answered twice"] * bool(twice) + [f"{late} answered after the cancellation"] * bool(late)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--calls", type=int, nargs="*", default=[1000, 10_000])
    parser.add_argument("--races", type=int, default=100_000)
    options = parser.parse_args()
    rounds: list[Callable[[], list[str]]] = [partial(in_flight, count) for count in options.calls]
    if options.races:
        rounds.append(partial(race, options.races))
    failed = 0
    for take in rounds:
        try:
            problems = take()
        except Broken as exc:
            problems = [str(exc)]
        failed += bool(problems)
        for problem in problems:
            say(f"  FAILED: {problem}")
    say(f"{len(rounds) - failed} passed, {failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
