"""Lines for stderr: those of the guarded server, bounded and without anything that would steer a terminal, and our own.

A thread writes them, so that an unread stderr holds nothing up.
"""

import logging
import os
import threading
from collections.abc import Callable

from openai_responses_mcp.adapters.log.line_sink import Descriptor, LineSink
from openai_responses_mcp.domain.texts import harmless, one_line

LONGEST_LINE = 4096
_CHUNK_BYTES = 64 * 1024


class StderrLines:
    def __init__(self, prefix: str, stderr: int = 2) -> None:
        self._prefix = prefix
        self._sink = LineSink(Descriptor(stderr), describe_lost=lambda count: b"%d lines are lost\n" % count)

    def tell(self, line: str) -> None:
        """Returns at once, whatever happens to stderr."""
        self._put(f"{self._prefix}: {one_line(line)}")

    def follow(self, descriptor: int) -> "FollowedStderr":
        """Write down what a guarded server says there, until it ends."""
        return FollowedStderr(descriptor, self._put)

    def take_over_logging(self) -> None:
        """Warnings of this library become lines here; the standard handler would block while stderr is not read."""
        logging.basicConfig(handlers=[_Forwarding(self)], level=logging.WARNING, force=True)

    def close(self, timeout_seconds: float = 0.5) -> None:
        self._sink.close(timeout_seconds)

    def _put(self, line: str) -> None:
        self._sink.put(f"{line[:LONGEST_LINE]}\n".encode("utf-8", "backslashreplace"))


class FollowedStderr:
    """The stderr of one guarded server, read in a thread."""

    def __init__(self, descriptor: int, put: Callable[[str], None]) -> None:
        self._descriptor = descriptor
        self._put = put
        self._last_line = ""
        self._following = threading.Thread(target=self._follow, name="server-stderr", daemon=True)
        self._following.start()

    def last_line(self, timeout_seconds: float = 0.3) -> str:
        """The last line that is not blank, once the server has ended. Waits for it."""
        self._following.join(timeout_seconds)
        return self._last_line

    def _follow(self) -> None:
        rest = b""
        while chunk := _read_some(self._descriptor):
            *lines, rest = (rest + chunk).split(b"\n")
            for line in lines:
                self._put_foreign(line)
            # The end of a line that is too long is thrown away with the next newline, not kept.
            rest = rest[: LONGEST_LINE * 4]
        if rest:
            self._put_foreign(rest)

    def _put_foreign(self, line: bytes) -> None:
        text = harmless(line.decode("utf-8", "replace")).replace("\n", " ")[:LONGEST_LINE]
        self._last_line = text.strip() or self._last_line
        self._put(text)


class _Forwarding(logging.Handler):
    def __init__(self, lines: StderrLines) -> None:
        super().__init__()
        self._lines = lines

    def emit(self, record: logging.LogRecord) -> None:
        self._lines.tell(record.getMessage())


def _read_some(descriptor: int) -> bytes:
    try:
        return os.read(descriptor, _CHUNK_BYTES)
    except OSError:
        return b""
