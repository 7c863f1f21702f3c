"""One server process and the talk with it, one JSON message per line; every wait ends at a deadline.

Neither pipe is ever waited for alone, so a server may answer while a thousand calls are still being written to it.
"""

import json
import os
import selectors
import subprocess
import time
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from tests.tools.bench.stand_in import SIGN

WAIT_SECONDS = 30.0
_CHUNK_BYTES = 256 * 1024

_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Broken(Exception):
    """The server failed; the text says how, in a few words."""


class Conversation:
    """Starts the process at once; `started` is the moment before."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self.started = time.perf_counter()
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=environ, bufsize=0
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._in, self._out = self._process.stdin.fileno(), self._process.stdout.fileno()
        os.set_blocking(self._in, False)
        os.set_blocking(self._out, False)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._out, selectors.EVENT_READ)
        self._to_write = memoryview(b"")
        self._read = bytearray()
        self._last_id = 0

    def __enter__(self) -> "Conversation":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, exc: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._process.kill()
        self._process.wait(WAIT_SECONDS)
        self._selector.close()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                stream.close()

    @property
    def pid(self) -> int:
        return self._process.pid

    def initialize(self) -> float:
        """The moment of the reply."""
        replied = self._ask(self._request("initialize", _HELLO))
        self._write(_line({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        return replied

    def list_tools(self) -> float:
        return self._ask(self._request("tools/list", {}))

    def call(self, tool: str, arguments: Mapping[str, str]) -> float:
        """The moment of the reply to one call."""
        return self._ask(self._call(tool, arguments), sign=SIGN)

    def call_at_once(self, count: int, tool: str, arguments: Mapping[str, str], within_seconds: float) -> list[float]:
        """The moments of the good replies that came in time, in the order they came."""
        requests = [self._call(tool, arguments) for _ in range(count)]
        waiting = {message["id"] for message in requests}
        deadline = time.perf_counter() + within_seconds
        self._write(b"".join(map(_line, requests)))
        moments: list[float] = []
        while waiting:
            try:
                moment, line = self._next_line(deadline)
            except Broken:
                break
            reply = _object_in(line)
            if reply.get("id") in waiting and "method" not in reply:
                waiting.remove(reply["id"])
                moments += [moment] * (SIGN in line)
        return moments

    def _call(self, tool: str, arguments: Mapping[str, str]) -> dict[str, Any]:
        """With a progress token, as the clients that people use send it with every call."""
        token = {"progressToken": self._last_id + 1}
        return self._request("tools/call", {"name": tool, "arguments": arguments, "_meta": token})

    def _request(self, method: str, params: Mapping[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        return {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}

    def _ask(self, request: dict[str, Any], sign: bytes = b'"result"') -> float:
        deadline = time.perf_counter() + WAIT_SECONDS
        self._write(_line(request))
        while True:
            moment, line = self._next_line(deadline)
            reply = _object_in(line)
            if reply.get("id") == request["id"] and "method" not in reply:
                break
        if sign not in line:
            raise Broken(f"{request['method']} was answered with {line[:200].decode(errors='replace')}")
        return moment

    def _write(self, data: bytes) -> None:
        """As much as goes now; the rest while a reply is awaited."""
        self._to_write = memoryview(bytes(self._to_write) + data)
        self._write_some()

    def _write_some(self) -> None:
        try:
            while self._to_write:
                self._to_write = self._to_write[os.write(self._in, self._to_write) :]
        except BlockingIOError:
            if self._in not in self._selector.get_map():
                self._selector.register(self._in, selectors.EVENT_WRITE)
        except BrokenPipeError:
            self._to_write = memoryview(b"")  # The end of its output says that it is gone.
        if not self._to_write and self._in in self._selector.get_map():
            self._selector.unregister(self._in)

    def _next_line(self, deadline: float) -> tuple[float, bytes]:
        searched = 0
        while (end := self._read.find(b"\n", searched)) < 0:
            searched = len(self._read)
            self._wait(deadline)
        moment = time.perf_counter()
        line = bytes(self._read[:end])
        del self._read[: end + 1]
        return moment, line

    def _wait(self, deadline: float) -> None:
        """Until something was read or written."""
        ready = self._selector.select(max(0.0, deadline - time.perf_counter()))
        if not ready:
            raise Broken("no reply in time")
        for key, _ in ready:
            if key.fd == self._in:
                self._write_some()
            else:
                data = os.read(self._out, _CHUNK_BYTES)
                if not data:
                    raise Broken("the server ended")
                self._read += data


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


def _object_in(line: bytes) -> dict[str, Any]:
    """Empty for a line that is no message; one peer writes a greeting to stdout."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
