"""The framer alone: a large body in 1 KiB chunks and many small messages, each at several sizes to see how they grow.

Runs on its own, in the environment of the installed package, and writes its results as JSON.
"""

import json
import sys
import time
from collections.abc import Callable

from openai_responses_mcp.adapters.stdio_framing import StdioFramer

MIB = 1024 * 1024
BODIES_MIB = (8, 16, 32, 64)
MESSAGE_COUNTS = (25_000, 50_000, 100_000)
CHUNK_BYTES = 1024
REPEATS = 3

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


def best(*arguments: object) -> float:
    """The fastest of some: whatever disturbs a loop without I/O only makes it slower."""
    return min(seconds(*arguments) for _ in range(REPEATS))  # type: ignore[arg-type]


def main() -> None:
    results = {}
    for frame in (framed, line):
        large = {size: best(frame, b"{%b}" % (b"x" * (size * MIB - 2)), 1, CHUNK_BYTES) for size in BODIES_MIB}
        small = {count: best(frame, _SMALL, count, CHUNK_BYTES) for count in MESSAGE_COUNTS}
        at_once = {count: best(frame, _SMALL, count, 1024 * MIB) for count in MESSAGE_COUNTS}
        results[frame.__name__] = {"bodies": large, "messages": small, "messages_at_once": at_once}
    json.dump(results, sys.stdout)


if __name__ == "__main__":
    main()
