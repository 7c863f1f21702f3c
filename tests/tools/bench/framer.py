"""The framer alone: a large body in 1 KiB chunks and many small messages, each at several sizes to see how they grow.

Runs on its own, in the environment of the installed package, and writes its results as JSON.
"""

import json
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial

from openai_responses_mcp.adapters.stdio.framing import StdioFramer

MIB = 1024 * 1024
BODIES_MIB = (1, 2, 4, 8, 16)  # up to the longest message that is taken by default
MESSAGE_COUNTS = (25_000, 50_000, 100_000)
CHUNK_BYTES = 1024
REPEATS = 4

_SMALL = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'


def framed(body: bytes) -> bytes:
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def line(body: bytes) -> bytes:
    return body + b"\n"


def seconds(frame: Callable[[bytes], bytes], body: bytes, count: int, chunk_bytes: int) -> float:
    wire = frame(body) * count
    chunks = [wire[start : start + chunk_bytes] for start in range(0, len(wire), chunk_bytes)]
    framer = StdioFramer(64 * MIB)
    found = 0
    began = time.process_time()  # no I/O: what others do meanwhile is not its cost
    for chunk in chunks:
        framer.receive(chunk)
        while framer.next_message() is not None:
            found += 1
    took = time.process_time() - began
    assert found == count
    return took


def fastest(runs: Mapping[int, Callable[[], float]]) -> dict[int, float]:
    """For each size the fastest run of some: what disturbs a loop without I/O only makes it slower.

    The sizes take turns, so that a slow minute of the machine does not look like growth.
    """
    rounds = [{size: run() for size, run in runs.items()} for _ in range(REPEATS)]
    return {size: min(found[size] for found in rounds) for size in runs}


def main() -> None:
    results = {}
    for frame in (framed, line):
        bodies = {size: partial(seconds, frame, b"{%b}" % (b"x" * (size * MIB - 2)), 1) for size in BODIES_MIB}
        messages = {count: partial(seconds, frame, _SMALL, count) for count in MESSAGE_COUNTS}
        results[frame.__name__] = {
            "bodies": fastest({size: partial(run, CHUNK_BYTES) for size, run in bodies.items()}),
            "messages": fastest({count: partial(run, CHUNK_BYTES) for count, run in messages.items()}),
            "messages_at_once": fastest({count: partial(run, 1024 * MIB) for count, run in messages.items()}),
        }
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
