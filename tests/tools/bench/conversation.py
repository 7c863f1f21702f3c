"""One server process and the talk with it, timed; every wait ends at a deadline."""

import json
import time
from collections.abc import Mapping, Sequence
from typing import Any

from tests.tools.bench.stand_in import SIGN
from tests.tools.talking import Broken, Pipes

WAIT_SECONDS = 30.0

_HELLO = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}


class Conversation(Pipes):
    """Starts the process at once; `started` is the moment before. Moments are those of `time.perf_counter()`."""

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self.started = time.perf_counter()
        super().__init__(command, environ, keeps_stderr=False)
        self._last_id = 0

    def initialize(self) -> float:
        """The moment of the reply."""
        replied = self._ask(self._request("initialize", _HELLO))
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return replied

    def list_tools(self) -> float:
        return self._ask(self._request("tools/list", {}))

    def call(self, tool: str, arguments: Mapping[str, str], sign: bytes = SIGN) -> float:
        """The moment of the reply to one call. A reply without the sign is an error, whatever its shape."""
        return self._ask(self._call(tool, arguments), sign)

    def call_at_once(self, count: int, tool: str, arguments: Mapping[str, str], within_seconds: float) -> list[float]:
        """The moments of the good replies that came in time, in the order they came."""
        requests = [self._call(tool, arguments) for _ in range(count)]
        waiting = {message["id"] for message in requests}
        deadline = time.monotonic() + within_seconds
        self.send(*requests)
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
        deadline = time.monotonic() + WAIT_SECONDS
        self.send(request)
        while True:
            moment, line = self._next_line(deadline)
            reply = _object_in(line)
            if reply.get("id") == request["id"] and "method" not in reply:
                break
        if sign not in line:
            raise Broken(f"{request['method']} was answered with {line[:200].decode(errors='replace')}")
        return moment

    def _next_line(self, deadline: float) -> tuple[float, bytes]:
        line = self.maybe_line(deadline)
        if line is None:
            raise Broken("no reply in time")
        return time.perf_counter(), line


def _object_in(line: bytes) -> dict[str, Any]:
    """Empty for a line that is no message; one peer writes a greeting to stdout."""
    try:
        value = json.loads(line)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
