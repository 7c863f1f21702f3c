"""`python -m tests.stand_in`: the stand-in as a process of its own.

Writes its base URL as one line to stdout and serves until the end of stdin, SIGTERM or SIGINT.
"""

import asyncio
import contextlib
import os
import signal
import sys
import threading
from collections.abc import Callable

from tests.stand_in.server import StandIn


def main() -> None:
    asyncio.run(_serve())


async def _serve() -> None:
    server = StandIn()
    is_over = asyncio.Event()
    loop = asyncio.get_running_loop()

    def end(*_: object) -> None:
        loop.call_soon_threadsafe(is_over.set)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    base_url = await server.start()
    sys.stdout.write(base_url + "\n")
    sys.stdout.flush()
    # A daemon, because nothing can interrupt its read when a signal ends the process first.
    threading.Thread(target=_read_to_the_end, args=(end,), daemon=True).start()
    await is_over.wait()
    await server.close()


def _read_to_the_end(then: Callable[[], None]) -> None:
    # A terminal that hangs up, or a stdin closed from the start, ends the service like one that is read to its end.
    with contextlib.suppress(OSError):
        while sys.stdin is not None and os.read(sys.stdin.fileno(), 65536):
            pass
    then()


if __name__ == "__main__":
    main()
