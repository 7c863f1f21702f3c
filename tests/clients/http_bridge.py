"""A server on stdin and stdout behind HTTP, for a suite that asks over HTTP only.

One process for each session of the handshake era, and one for all requests without a session. Ids are made unique on the
way in and put back on the way out, because clients without a session share a process. What the process sends unasked goes to
the request that came last and is still open.
"""

import itertools
import json
import queue
import subprocess
import threading
import uuid
from collections.abc import Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

WAIT_SECONDS = 30.0


class Session:
    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [*command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=dict(environ)
        )
        self._numbers = itertools.count(1)
        self._open: dict[int, tuple[Any, queue.Queue[dict[str, Any]]]] = {}
        self._lock = threading.Lock()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def request(self, message: dict[str, Any]) -> "queue.Queue[dict[str, Any]]":
        number, answers = next(self._numbers), queue.Queue[dict[str, Any]]()
        with self._lock:
            self._open[number] = (message["id"], answers)
        self.tell({**message, "id": number})
        return answers

    def tell(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        with self._lock:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
            self._process.stdin.flush()

    def close(self) -> None:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(WAIT_SECONDS)
        self._reader.join(WAIT_SECONDS)
        self._process.stdout.close()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            message = json.loads(line)
            with self._lock:
                if "method" not in message and message.get("id") in self._open:
                    theirs, answers = self._open.pop(message["id"])
                    answers.put({**message, "id": theirs})
                elif self._open:
                    self._open[max(self._open)][1].put(message)


class Bridge(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, command: Sequence[str], environ: Mapping[str, str]) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.command, self.environ = command, environ
        self.sessions: dict[str, Session] = {}
        self._opening = threading.Lock()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/mcp"

    def session(self, name: str) -> Session:
        with self._opening:
            if name not in self.sessions:
                self.sessions[name] = Session(self.command, self.environ)
            return self.sessions[name]

    def close(self) -> None:
        self.shutdown()
        self.server_close()
        for session in self.sessions.values():
            session.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Bridge

    def log_message(self, format: str, *args: Any) -> None:
        pass

    def do_GET(self) -> None:
        self._status(405)

    def do_DELETE(self) -> None:
        session = self.server.sessions.pop(self.headers.get("Mcp-Session-Id", ""), None)
        if session is not None:
            session.close()
        self._status(200 if session else 404)

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        if not self._is_local():
            self._status(403)
            return
        message = json.loads(body)
        name = self.headers.get("Mcp-Session-Id", "")
        if message.get("method") == "initialize":
            name = uuid.uuid4().hex
        elif name and name not in self.server.sessions:
            self._status(404)
            return
        session = self.server.session(name)
        if "method" in message and "id" in message:
            self._stream(session.request(message), name if message["method"] == "initialize" else "")
        else:
            session.tell(message)
            self._status(202)

    def _is_local(self) -> bool:
        places = [self.headers.get("Host", ""), self.headers.get("Origin", "").partition("://")[2]]
        return all(not place or place.startswith(("127.0.0.1", "localhost")) for place in places)

    def _stream(self, answers: "queue.Queue[dict[str, Any]]", session: str) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        if session:
            self.send_header("Mcp-Session-Id", session)
        self.end_headers()
        self.close_connection = True
        while True:
            message = answers.get(timeout=WAIT_SECONDS)
            self.wfile.write(f"event: message\ndata: {json.dumps(message)}\n\n".encode())
            self.wfile.flush()
            if "method" not in message:
                return

    def _status(self, code: int) -> None:
        self.send_response(code)
        self.send_header("Content-Length", "0")
        self.end_headers()
