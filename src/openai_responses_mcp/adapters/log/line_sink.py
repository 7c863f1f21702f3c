"""Where log lines go. A thread writes them, so a slow destination cannot hold up a call.

A `LineSink` buffers at most a few megabytes of whole lines. Lines are lost if the buffer is full or the destination
fails; the number of lost lines is written in their place once writing works again.
"""

import collections
import contextlib
import errno
import os
import select
import stat
import threading
from collections.abc import Callable
from typing import Protocol

from openai_responses_mcp.domain.ports import Logger

MOST_WAITING_BYTES = 4 * 1024 * 1024
ROTATE_AT_BYTES = 10 * 1000 * 1000

# After these errors, writing stops: the number of a closed descriptor may soon belong to another file.
_FATAL_ERRORS = {errno.EBADF, errno.EPIPE}


class Destination(Protocol):
    """Used from one thread, and allowed to block it."""

    def write(self, data: memoryview) -> int:
        """Write some of the bytes and return how many. Raises `OSError`."""
        ...

    def close(self) -> None: ...


class LineSink:
    """The thread starts with the first line. It ends at `close`, or when the destination is closed."""

    def __init__(
        self,
        destination: Destination,
        *,
        describe_lost: Callable[[int], bytes],
        on_first_failure: Callable[[OSError], None] = lambda _: None,
    ) -> None:
        self._destination = destination
        self._describe_lost = describe_lost
        self._on_first_failure = on_first_failure
        self._changed = threading.Condition()
        self._lines: collections.deque[bytes] = collections.deque()
        self._waiting_bytes = 0
        self._dropped = 0
        self._is_closed = False
        self._thread: threading.Thread | None = None
        # The fields below are used by the thread only.
        self._lost = 0
        self._has_failed = False
        self._is_mid_line = False

    def put(self, line: bytes) -> None:
        """Queue a line that ends with a newline. After `close` it is dropped."""
        with self._changed:
            if self._is_closed:
                return
            # Once the buffer is full, lines are dropped until it is empty, so that the lost ones are in one place. A
            # line longer than the limit is taken if the buffer is empty.
            is_full = self._lines and self._waiting_bytes + len(line) > MOST_WAITING_BYTES
            if not self._is_running() or is_full or self._dropped:
                self._dropped += 1
            else:
                self._lines.append(line)
                self._waiting_bytes += len(line)
            self._changed.notify()

    def close(self, timeout_seconds: float) -> None:
        """Write what is waiting, up to the timeout."""
        with self._changed:
            self._is_closed = True
            self._changed.notify()
        if self._thread is not None:
            self._thread.join(timeout_seconds)

    def _is_running(self) -> bool:
        if self._thread is None:
            thread = threading.Thread(target=self._run, name="log", daemon=True)
            try:
                thread.start()
            except RuntimeError:  # No thread is available; the next line tries again.
                return False
            self._thread = thread
        return True

    def _run(self) -> None:
        while (line := self._next_line()) is not None:
            try:
                self._write(line)
            except OSError as exc:
                self._note_failure(exc)
        with contextlib.suppress(OSError):
            self._destination.close()

    def _next_line(self) -> bytes | None:
        """The next line; an empty one if only the number of lost lines is left to write; None at the end."""
        with self._changed:
            self._changed.wait_for(lambda: self._lines or self._dropped or self._is_closed)
            if self._lines:
                line = self._lines.popleft()
                self._waiting_bytes -= len(line)
                return line
            if not self._dropped:
                return None
            self._lost += self._dropped
            self._dropped = 0
            return b""

    def _write(self, line: bytes) -> None:
        lost, self._lost = self._lost, self._lost + bool(line)
        start = b"\n" if self._is_mid_line else b""
        unwritten = memoryview(start + (self._describe_lost(lost) if lost else b"") + line)
        while unwritten:
            unwritten = unwritten[self._destination.write(unwritten) :]
            self._is_mid_line = bool(unwritten)
        self._lost = 0

    def _note_failure(self, error: OSError) -> None:
        if not self._has_failed:
            self._has_failed = True
            self._on_first_failure(error)
        if error.errno in _FATAL_ERRORS:
            with self._changed:
                self._is_closed = True
                self._dropped = 0
                self._lines.clear()


class Descriptor(Destination):
    """An open descriptor of the process; it stays open."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, data: memoryview) -> int:
        while True:
            try:
                return os.write(self._descriptor, data)
            except BlockingIOError:  # Another process that shares the pipe has made it non-blocking.
                select.select([], [self._descriptor], [])

    def close(self) -> None:
        pass


class RotatingFile(Destination):
    """A file that only its owner can read, opened with the first write. When it is long, it becomes `<path>.1`."""

    def __init__(self, path: str) -> None:
        self._path = os.path.expanduser(path)
        self._descriptor: int | None = None

    def write(self, data: memoryview) -> int:
        descriptor = self._open() if self._descriptor is None else self._descriptor
        state = os.fstat(descriptor)
        is_too_long = state.st_size and state.st_size + len(data) > ROTATE_AT_BYTES
        # Only a regular file: /dev/null and named pipes must not be renamed.
        if is_too_long and stat.S_ISREG(state.st_mode):
            descriptor = self._rotate(state)
        return os.write(descriptor, data)

    def close(self) -> None:
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def _open(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0) | getattr(os, "O_NOCTTY", 0)
        try:
            with contextlib.suppress(FileExistsError):  # Opening the file gives the clearer error.
                os.makedirs(os.path.dirname(self._path) or os.curdir, exist_ok=True)
            self._descriptor = os.open(self._path, flags, 0o600)
        except ValueError as exc:  # Not a valid path: it contains a NUL, or cannot be encoded.
            raise OSError(errno.EINVAL, str(exc)) from exc
        # An existing file may be readable by others, and answers will be written into it. Windows cannot change the
        # mode by descriptor, so the path is used. It fails for a file of another user, which keeps its mode.
        if stat.S_ISREG(os.fstat(self._descriptor).st_mode):
            with contextlib.suppress(OSError):
                os.chmod(self._path, 0o600)
        return self._descriptor

    def _rotate(self, state: os.stat_result) -> int:
        """Start a new file. If another server with the same debug file did so already, use that one."""
        self.close()
        with contextlib.suppress(OSError):  # If it cannot be renamed, keep appending to it.
            if os.path.samestat(os.stat(self._path), state):
                os.replace(self._path, self._path + ".1")
        return self._open()


class SilentLogger(Logger):
    """Writes nothing, for a process whose stderr belongs to another server."""

    @property
    def is_debugging(self) -> bool:
        return False

    def debug(self, event: str, **facts: object) -> None:
        pass

    def warning(self, event: str, **facts: object) -> None:
        pass

    def error(self, event: str, **facts: object) -> None:
        pass
