"""An MCP server as a child process in a group of its own, so that it and everything it starts can be ended together.

To end it, its input is closed; then it gets SIGTERM, then SIGKILL. Its exit is noticed without reaping it at once:
until it is reaped, no other process can get its id, so signals cannot reach the wrong one.

Its stderr is copied to ours line by line. Long lines are cut, and control characters are removed. A thread writes the
lines, so that nothing waits if our stderr is not read.
"""

import asyncio
import contextlib
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence

from openai_responses_mcp.adapters.log.line_sink import Descriptor, LineSink
from openai_responses_mcp.domain.texts import harmless, one_line

LONGEST_LINE = 4096

_CHUNK_BYTES = 64 * 1024
_SECONDS_BETWEEN_CHECKS = 0.02
_NEW_GROUP = getattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0)  # Windows; elsewhere a session of its own


class ChildProcess:
    """Create it inside the running event loop. Raises `OSError` if the command cannot be started.

    `grace_seconds` are the waits after its input is closed, after SIGTERM and after SIGKILL. The default is less than
    two seconds in all, because clients do not wait longer for a guard.
    """

    def __init__(
        self,
        command: Sequence[str],
        environ: Mapping[str, str],
        *,
        cwd: str | os.PathLike[str] | None = None,
        shares_stderr: bool = False,
        grace_seconds: tuple[float, float, float] = (1.0, 0.6, 0.3),
    ) -> None:
        self._process = subprocess.Popen(  # noqa: S603 -- running the server that the user names is the point
            [*command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=None if shares_stderr else subprocess.PIPE,
            bufsize=0,
            cwd=cwd,
            env=dict(environ),
            start_new_session=sys.platform != "win32",
            creationflags=_NEW_GROUP,
        )
        self._after_closing, self._after_sigterm, self._after_sigkill = grace_seconds
        self._loop = asyncio.get_running_loop()
        self._has_exited = asyncio.Event()
        threading.Thread(target=self._wait_for_exit, name="server-exit", daemon=True).start()

    @property
    def wires(self) -> tuple[int, int, int]:
        """The descriptors of its output, input and stderr; -1 for a stderr that it shares with us."""
        pipes = (self._process.stdout, self._process.stdin, self._process.stderr)
        output, input_, stderr = (-1 if pipe is None else pipe.fileno() for pipe in pipes)
        return output, input_, stderr

    async def ended(self) -> int:
        await self._has_exited.wait()
        await self._end_group()
        code = self._process.wait()
        return code if code >= 0 else 128 - code

    def close_input(self) -> None:
        """Point it at the null device: another thread may still write to the descriptor."""
        null = os.open(os.devnull, os.O_RDWR)
        os.dup2(null, self.wires[1], inheritable=False)
        os.close(null)

    async def end(self) -> int:
        self.close_input()
        if not await self._exits_within(self._after_closing):
            self._signal("SIGTERM")
            if not await self._exits_within(self._after_sigterm):
                self._signal("SIGKILL")
                await self._exits_within(self._after_sigkill)
        return await self.ended() if self._has_exited.is_set() else 128 + 9

    def close(self) -> None:
        """Close its pipes. They must not be used after that."""
        for pipe in (self._process.stdin, self._process.stdout, self._process.stderr):
            if pipe is not None:
                pipe.close()

    async def _exits_within(self, seconds: float) -> bool:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._has_exited.wait(), seconds)
        return self._has_exited.is_set()

    async def _end_group(self) -> None:
        """End the processes that the server has left behind. Without /proc it is not known whether any are left."""
        if self._process.returncode is not None or not self._signal("SIGTERM"):
            return
        for _ in range(int(self._after_sigkill / _SECONDS_BETWEEN_CHECKS)):
            if _living_members(self._process.pid) == 0:
                return
            await asyncio.sleep(_SECONDS_BETWEEN_CHECKS)
        self._signal("SIGKILL")

    def _signal(self, name: str) -> bool:
        """False if no process is left to get it."""
        try:
            if sys.platform == "win32":
                self._process.terminate()
            else:
                os.killpg(self._process.pid, getattr(signal, name))
        except (ProcessLookupError, PermissionError):
            return False
        return True

    def _wait_for_exit(self) -> None:
        if hasattr(os, "waitid"):
            with contextlib.suppress(ChildProcessError):
                os.waitid(os.P_PID, self._process.pid, os.WEXITED | os.WNOWAIT)
        else:
            self._process.wait()
        with contextlib.suppress(RuntimeError):  # The loop has ended.
            self._loop.call_soon_threadsafe(self._has_exited.set)


def _living_members(group: int) -> int | None:
    """How many processes of the group still run. None without /proc."""
    try:
        processes = [name for name in os.listdir("/proc") if name.isdigit()]
    except OSError:
        return None
    living = 0
    for name in processes:
        with contextlib.suppress(OSError, ValueError), open(f"/proc/{name}/stat", "rb") as opened:
            # State, parent and group come after the name in brackets, which may contain anything.
            state, _, its_group = opened.read().rpartition(b")")[2].split()[:3]
            living += int(its_group) == group and state not in (b"Z", b"X")
    return living


# ---------------------------------------------------------------------------------------------------------------------
# Lines for stderr


class StderrLines:
    def __init__(self, prefix: str, stderr: int = 2) -> None:
        self._prefix = prefix
        self._sink = LineSink(Descriptor(stderr), describe_lost=lambda count: b"%d lines are lost\n" % count)

    def tell(self, line: str) -> None:
        """Returns at once, whatever happens to stderr."""
        self._put(f"{self._prefix}: {one_line(line)}")

    def follow(self, descriptor: int) -> "FollowedStderr":
        """Copy what a guarded server writes there, until it ends."""
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
                self._put_server_line(line)
            # The rest of a line that is too long is dropped.
            rest = rest[: LONGEST_LINE * 4]
        if rest:
            self._put_server_line(rest)

    def _put_server_line(self, line: bytes) -> None:
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
