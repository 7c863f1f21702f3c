"""The real server process over real pipes, as a client sees it: both framings, every wait bounded.

Replies are read by a thread, and so is stderr, so that neither pipe fills up while a test looks elsewhere. A test that
wants to stop reading hands in a stdout of its own and gives the other end to `read_from` when it has waited enough.
"""

import contextlib
import json
import os
import queue
import re
import subprocess
import sys
import threading
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import IO, Any

from tests.fakes import SLOW_SECONDS

WAIT_SECONDS = SLOW_SECONDS
KEY = "sk-planted-0123456789-must-never-be-seen"
COMMAND = (sys.executable, "-m", "openai_responses_mcp")

# What would configure the server, or lead its requests elsewhere.
_CONFIGURING = re.compile(
    r"OPENAI_|OTEL_|MODEL_|ANSWER_|SEARCH_|(MAX_CITATIONS|REQUERY_ATTEMPTS|DEBUG|MCP_LINE_MODE|NO_COLOR|XDG_.*_HOME)$|.*_PROXY$"
)

Message = dict[str, Any]


def environment(home: Path, **variables: str) -> dict[str, str]:
    """Ours (the search path and what measures coverage are in it), with a home of its own and nothing configured."""
    kept = {name: value for name, value in os.environ.items() if not _CONFIGURING.match(name.upper())}
    homes = dict.fromkeys(("HOME", "USERPROFILE", "APPDATA"), str(home))
    return {**kept, **homes, "OPENAI_API_KEY": KEY, **variables}


def run(environ: Mapping[str, str], *options: str, **pipes: Any) -> "subprocess.CompletedProcess[Any]":
    """A command that ends by itself, with nothing on stdin unless `input` or `stdin` is given."""
    if "input" not in pipes:
        pipes.setdefault("stdin", subprocess.DEVNULL)
    if "stdout" not in pipes:
        pipes["capture_output"] = True
    return subprocess.run([*COMMAND, *options], env=dict(environ), timeout=WAIT_SECONDS, **pipes)


def line(message: Message) -> bytes:
    return json.dumps(message, ensure_ascii=False).encode() + b"\n"


def framed(message: Message) -> bytes:
    body = json.dumps(message, ensure_ascii=False).encode()
    return b"Content-Length: %d\r\n\r\n%b" % (len(body), body)


def call(call_id: int | str, question: str, tool: str = "answer", **arguments: Any) -> Message:
    params = {"name": tool, "arguments": {"query": question, **arguments}}
    return {"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": params}


def request(request_id: int | str, method: str, params: Message | None = None) -> Message:
    return {"jsonrpc": "2.0", "id": request_id, "method": method, "params": params or {}}


def cancellation(call_id: object) -> Message:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": call_id}}


def answer_in(reply: Message) -> Message:
    """What the first text of a tool result holds."""
    answer: Message = json.loads(reply["result"]["content"][0]["text"])
    return answer


class Server:
    """One process and the conversation with it. `received` holds every message so far, `framings` how each came."""

    def __init__(
        self,
        command: Iterable[str],
        environ: Mapping[str, str],
        *,
        stdout: int = subprocess.PIPE,
        stderr: int = subprocess.PIPE,
    ) -> None:
        self.process = subprocess.Popen(
            [*command], stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, env=dict(environ)
        )
        self.received: list[Message] = []
        self.framings: list[str] = []
        self._arrived: queue.Queue[tuple[str, bytes] | None] = queue.Queue()
        self._complaints: list[bytes] = []
        self._threads: list[threading.Thread] = []
        self._streams: list[IO[bytes]] = []
        self._last_id = 0
        if self.process.stdout is not None:
            self.read_from(self.process.stdout)
        if self.process.stderr is not None:
            self._in_thread(self.process.stderr, self._collect)

    def read_from(self, stdout: IO[bytes]) -> None:
        self._in_thread(stdout, self._read)

    def send(self, *messages: Message) -> None:
        """As lines, all in one write."""
        self.send_bytes(b"".join(map(line, messages)))

    def send_bytes(self, data: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(data)
        self.process.stdin.flush()

    def end_input(self) -> None:
        assert self.process.stdin is not None
        self.process.stdin.close()

    def receive(self, within_seconds: float = WAIT_SECONDS) -> Message:
        """The next message, whatever it is."""
        arrived = self._arrived.get(timeout=within_seconds)
        if arrived is None:
            raise AssertionError(f"the server ended instead of replying; its stderr: {self.stderr}")
        return self._note(*arrived)

    def reply_to(self, request_id: int | str | None, within_seconds: float = WAIT_SECONDS) -> Message:
        """The reply with this id, now or from what has arrived before."""
        for message in self.received:
            if _is_reply_to(request_id, message):
                return message
        while not _is_reply_to(request_id, message := self.receive(within_seconds)):
            pass
        return message

    def replies_to(self, request_ids: Iterable[int | str], within_seconds: float = WAIT_SECONDS) -> list[Message]:
        return [self.reply_to(request_id, within_seconds) for request_id in request_ids]

    def ask(self, question: str, tool: str = "answer", **arguments: Any) -> Message:
        """The reply to one call of a tool."""
        return self.ask_all([question], tool, **arguments)[0]

    def ask_all(self, questions: Iterable[str], tool: str = "answer", **arguments: Any) -> list[Message]:
        """The replies to calls that are in flight together, in the order of the questions."""
        calls = [call(self._next_id(), question, tool, **arguments) for question in questions]
        self.send(*calls)
        return self.replies_to([message["id"] for message in calls])

    def request(self, method: str, params: Message | None = None) -> Message:
        """The reply to one request."""
        message = request(self._next_id(), method, params)
        self.send(message)
        return self.reply_to(message["id"])

    def result_of(self, method: str, params: Message | None = None) -> Message:
        result: Message = self.request(method, params)["result"]
        return result

    def exit_code(self) -> int:
        """Once the process has ended by itself; everything it has sent is then in `received`."""
        code = self.process.wait(WAIT_SECONDS)
        for thread in self._threads:
            thread.join(WAIT_SECONDS)
        while not self._arrived.empty():
            arrived = self._arrived.get_nowait()
            if arrived is not None:
                self._note(*arrived)
        return code

    def finish(self) -> int:
        """End the input and give the exit code."""
        self.end_input()
        return self.exit_code()

    @property
    def stderr(self) -> str:
        """What has been written so far; all of it once the process has ended."""
        return b"".join(self._complaints).decode()

    def close(self) -> None:
        """Let it end, or end it; nothing stays behind, and the key has been seen nowhere."""
        with contextlib.suppress(OSError):  # What was never read cannot be flushed.
            self.end_input()
        try:
            self.process.wait(WAIT_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait(WAIT_SECONDS)
        for thread in self._threads:
            thread.join(WAIT_SECONDS)
        for stream in self._streams:
            stream.close()
        assert KEY not in json.dumps(self.received)
        assert KEY not in self.stderr

    def _note(self, framing: str, body: bytes) -> Message:
        message: Message = json.loads(body)
        self.received.append(message)
        self.framings.append(framing)
        return message

    def _next_id(self) -> int:
        self._last_id += 1
        return self._last_id

    def _in_thread(self, stream: IO[bytes], work: Any) -> None:
        thread = threading.Thread(target=work, args=(stream,), daemon=True)
        self._streams.append(stream)
        self._threads.append(thread)
        thread.start()

    def _read(self, stdout: IO[bytes]) -> None:
        while (message := _read_message(stdout)) is not None:
            self._arrived.put(message)
        self._arrived.put(None)

    def _collect(self, stderr: IO[bytes]) -> None:
        while data := os.read(stderr.fileno(), 65536):
            self._complaints.append(data)


def _is_reply_to(request_id: int | str | None, message: Message) -> bool:
    return "method" not in message and message["id"] == request_id and type(message["id"]) is type(request_id)


def _read_message(stream: IO[bytes]) -> tuple[str, bytes] | None:
    """The next message with its framing, None at the end. Stray bytes are returned as a line, which is not JSON."""
    first = stream.readline()
    length = re.fullmatch(rb"Content-Length: (\d+)\r\n", first)
    if length is None:
        return ("line", first) if first else None
    return "framed", stream.read(int(length[1]) + 2).removeprefix(b"\r\n")
