"""The real server process behind HTTP, and what a client sends to it."""

import queue
import subprocess
import threading
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import httpx2

from tests.e2e.client import COMMAND, WAIT_SECONDS

REVISION = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"
ENVELOPE: dict[str, Any] = {REVISION: "2026-07-28", CAPABILITIES: {}}
BOTH = {"accept": "application/json, text/event-stream", "content-type": "application/json"}

Message = dict[str, Any]


class HttpProcess:
    """Started on a free port of this machine. `url` is where it serves. `verb` is the command word, if there is one."""

    def __init__(self, environ: Mapping[str, str], *options: str, where: str = "0", verb: str = "") -> None:
        self.process = subprocess.Popen(
            [*COMMAND, *([verb] if verb else []), "--http", where, *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(environ),
        )
        self._lines: queue.Queue[str] = queue.Queue()
        self.complaints: list[str] = []
        self._thread = threading.Thread(target=self._read, daemon=True)
        self._thread.start()
        first = self._lines.get(timeout=WAIT_SECONDS)
        assert "serving on " in first, first
        self.url = first.partition("serving on ")[2].strip()

    @property
    def port(self) -> int:
        return urlsplit(self.url).port or 0

    @property
    def root(self) -> str:
        return self.url.removesuffix("/mcp")

    def _read(self) -> None:
        assert self.process.stderr is not None
        for line in self.process.stderr:
            if self._lines.empty() and not self.complaints and b"serving on" in line:
                self._lines.put(line.decode())
            else:
                self.complaints.append(line.decode())
        self._lines.put(f"ended: {''.join(self.complaints)}")

    def wait(self) -> int:
        code = self.process.wait(WAIT_SECONDS)
        self._thread.join(WAIT_SECONDS)
        return code

    def close(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.wait()
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        self.process.stdout.close()
        self.process.stderr.close()


def request(request_id: int | str, method: str, params: Message | None = None) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


def enveloped(request_id: int | str, method: str, **params: Any) -> Message:
    meta = {**ENVELOPE, **params.pop("_meta", {})}
    return request(request_id, method, {**params, "_meta": meta})


def routed(message: Message, **changes: str | None) -> dict[str, str]:
    """The headers that repeat what a message of the newer era says."""
    headers = {**BOTH, "mcp-protocol-version": "2026-07-28", "mcp-method": message["method"]}
    if "name" in message.get("params", {}):
        headers["mcp-name"] = message["params"]["name"]
    named = {name.replace("_", "-"): value for name, value in changes.items()}
    return {name: value for name, value in {**headers, **named}.items() if value is not None}


def call(request_id: int | str, question: str, **meta: Any) -> Message:
    return enveloped(request_id, "tools/call", name="answer", arguments={"query": question}, _meta=meta)


def events_in(lines: Iterable[str]) -> list[str]:
    return [line.removeprefix("data:").strip() for line in lines if line.startswith("data:")]


def client(**options: Any) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(timeout=WAIT_SECONDS, trust_env=False, **options)


INITIALIZE = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "test", "version": "1"},
}


async def opened(http: httpx2.AsyncClient, url: str, revision: str = "2025-11-25", **headers: str) -> dict[str, str]:
    """A session; what its requests carry."""
    params = {**INITIALIZE, "protocolVersion": revision}
    reply = await http.post(url, json=request(0, "initialize", params), headers={**BOTH, **headers})
    assert reply.status_code == 200, reply.text
    agreed = reply.json()["result"]["protocolVersion"]
    return {**BOTH, **headers, "mcp-session-id": reply.headers["mcp-session-id"], "mcp-protocol-version": agreed}
