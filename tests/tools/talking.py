"""Server and stand-in for the API as two processes, and the talk with the first, made for many calls.

A server may answer while calls are still being written to it. Every wait has an end.
"""

import json
import os
import selectors
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import TracebackType
from typing import Any, Self

ROOT = Path(__file__).resolve().parents[2]
WAIT_SECONDS = 60.0
SERVE = ("-m", "openai_responses_mcp", "--stdio")

Message = dict[str, Any]


def say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def tool_call(call_id: int | str, question: str = "Why?", *, reports_progress: bool = False) -> Message:
    params: Message = {"name": "answer", "arguments": {"query": question}}
    if reports_progress:
        params["_meta"] = {"progressToken": call_id}
    return {"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": params}


def ping(call_id: int | str) -> Message:
    return {"jsonrpc": "2.0", "id": call_id, "method": "ping"}


def cancellation(call_id: int | str) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call_id}}


def environment(home: str, **variables: str) -> dict[str, str]:
    """Nothing that would configure the server but what is given."""
    kept = {name: os.environ[name] for name in ("PATH", "LANG", "TMPDIR") if name in os.environ}
    path = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    return {**kept, "PYTHONPATH": path, "HOME": home, "OPENAI_API_KEY": "sk-made-up-0123456789", **variables}


@contextmanager
def stand_in(module: str = "tests.stand_in") -> Iterator[str]:
    """Its base URL."""
    process = subprocess.Popen(
        [sys.executable, "-m", module],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env=environment("/nonexistent"),
    )
    assert process.stdin is not None
    assert process.stdout is not None
    try:
        yield process.stdout.readline().decode().strip()
    finally:
        process.stdin.close()
        process.stdout.close()
        process.wait(WAIT_SECONDS)


class Broken(Exception):
    """The server did not do what it promises; the text says what."""


class Pipes:
    """A process that is written to and read from in lines. Neither pipe is ever waited for alone."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str], *, keeps_stderr: bool) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE if keeps_stderr else subprocess.DEVNULL,
            env=environ,
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._err = self.process.stderr.fileno() if self.process.stderr is not None else -1
        self._selector = selectors.DefaultSelector()
        for descriptor in (self._out, self._err)[: 1 + keeps_stderr]:
            self._selector.register(descriptor, selectors.EVENT_READ)
        for descriptor in (self._in, self._out, self._err)[: 2 + keeps_stderr]:
            os.set_blocking(descriptor, False)
        self._to_write: deque[memoryview] = deque()
        self._read = bytearray()
        self.stderr = b""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.process.kill()
        self.process.wait(WAIT_SECONDS)
        self._selector.close()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            if stream is not None:
                stream.close()

    @property
    def pid(self) -> int:
        return self.process.pid

    def send(self, *messages: Message) -> None:
        """As much as goes now; the rest while a line is awaited."""
        self._to_write.append(memoryview(b"".join(json.dumps(message).encode() + b"\n" for message in messages)))
        self._write_some()

    def maybe_line(self, deadline: float) -> bytes | None:
        """The next line. None when the time is up, in `time.monotonic()`."""
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            if not self._wait(deadline):
                return None
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return line

    def _write_some(self) -> None:
        try:
            while self._to_write:
                rest = self._to_write[0][os.write(self._in, self._to_write[0]) :]
                if rest:
                    self._to_write[0] = rest
                else:
                    self._to_write.popleft()
        except BlockingIOError:
            if self._in not in self._selector.get_map():
                self._selector.register(self._in, selectors.EVENT_WRITE)
        except BrokenPipeError:
            self._to_write.clear()  # The end of its output says that it is gone.
        if not self._to_write and self._in in self._selector.get_map():
            self._selector.unregister(self._in)

    def _wait(self, deadline: float) -> bool:
        """Until something was read or written; false when the time is up."""
        ready = self._selector.select(max(0.0, deadline - time.monotonic()))
        for key, _ in ready:
            if key.fd == self._in:
                self._write_some()
            elif key.fd == self._err:
                self._read_stderr()
            else:
                self._read_stdout()
        return bool(ready)

    def _read_stdout(self) -> None:
        data = os.read(self._out, 256 * 1024)
        if not data:
            said = f"; its stderr: {self.stderr.decode(errors='replace')[-500:]}" if self.stderr else ""
            raise Broken(f"the server ended{said}")
        self._read += data

    def _read_stderr(self) -> None:
        data = os.read(self._err, 64 * 1024)
        if not data:
            self._selector.unregister(self._err)
        self.stderr += data


class Talk(Pipes):
    """One server process of ours. Every line that it sends is a message."""

    def __init__(self, environ: Mapping[str, str], arguments: Sequence[str] = SERVE) -> None:
        super().__init__([sys.executable, *arguments], environ, keeps_stderr=True)

    def receive(self, within_seconds: float = WAIT_SECONDS) -> Message:
        """The next message. Raises `Broken` when none comes."""
        message = self.maybe_receive(within_seconds)
        if message is None:
            raise Broken(f"nothing came for {within_seconds:g} s")
        return message

    def maybe_receive(self, within_seconds: float) -> Message | None:
        line = self.maybe_line(time.monotonic() + within_seconds)
        return None if line is None else json.loads(line)

    def receive_until(self, is_last: Callable[[Message], bool]) -> list[Message]:
        """Everything up to the message for which that is true, which is the last one given."""
        messages = [self.receive()]
        while not is_last(messages[-1]):
            messages.append(self.receive())
        return messages

    def facts(self) -> dict[str, int]:
        """What the system says of the process: its memory in KiB, its threads and its descriptors."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        lines = dict(line.split(":", 1) for line in status.splitlines())
        numbers = {name: int(lines[name].split()[0]) for name in ("VmHWM", "RssAnon", "Threads")}
        return {**numbers, "descriptors": len(os.listdir(f"/proc/{self.pid}/fd"))}


@contextmanager
def conversation(arguments: Sequence[str] = SERVE, **variables: str) -> Iterator[Talk]:
    """A server with a home of its own that asks a stand-in of its own, ready and warmed up."""
    with TemporaryDirectory() as home, stand_in() as base_url:
        environ = environment(home, OPENAI_BASE_URL=base_url, **variables)
        with Talk(environ, arguments) as talk:
            talk.send(tool_call("warm"))
            talk.receive()
            yield talk
