"""Conversations with the real process in both eras, as the transcripts show them and the wire types judge them.

A scene is a function that talks; `play` gives it a fresh server, on the built-in rehearsal, and returns every turn.
"""

import json
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal, NamedTuple

from tests.clients.wire_types import Conversation, Message, Sender
from tests.e2e.client import COMMAND, Server, environment

Framing = Literal["framed", "line"]

CLIENT = {"name": "example-client", "version": "1.0.0"}
QUESTION = "What does HTTP 404 mean?"
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
WITH_TASKS = {
    **ENVELOPE,
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}


class Turn(NamedTuple):
    sender: Sender
    framing: str
    body: bytes


class Listener(Server):
    """Keeps the bytes of every message too."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.bodies: list[bytes] = []

    def _note(self, framing: str, body: bytes) -> Message:
        self.bodies.append(body)
        return super()._note(framing, body)


class Talk:
    def __init__(self, server: Listener, framing: Framing) -> None:
        self._server = server
        self._framing = framing
        self.turns: list[Turn] = []

    def say(self, method: str, params: Message | None = None, **request_id: int | str) -> None:
        """A request when it is given an id, else a notification."""
        message = {"jsonrpc": "2.0", **request_id, "method": method} | ({"params": params} if params else {})
        body = json.dumps(message, ensure_ascii=False, separators=(",", ":")).encode()
        head = b"Content-Length: %d\r\n\r\n" % len(body) if self._framing == "framed" else b""
        self._server.send_bytes(head + body + (b"" if head else b"\n"))
        self.turns.append(Turn("client", self._framing, body))

    def hear(self) -> Message:
        message = self._server.receive()
        self.turns.append(Turn("server", self._server.framings[-1], self._server.bodies[-1].rstrip(b"\n")))
        return message

    def ask(self, request_id: int | str, method: str, params: Message | None = None) -> Message:
        """The reply; what comes before it is heard as well."""
        self.say(method, params, id=request_id)
        while (message := self.hear()).get("id") != request_id:
            pass
        return message


class Scene(NamedTuple):
    title: str
    told: str
    framing: Framing
    act: Callable[[Talk], None]


@cache
def play(scene: Scene) -> Sequence[Turn]:
    """Played once per process."""
    with TemporaryDirectory() as home:
        command = [*COMMAND, "--stdio", "--rehearse"]
        with closing(Listener(command, environment(Path(home)))) as server:
            talk = Talk(server, scene.framing)
            scene.act(talk)
            assert server.finish() == 0
            assert len(server.received) == sum(turn.sender == "server" for turn in talk.turns)
    return tuple(talk.turns)


def conversation(turns: Sequence[Turn]) -> Conversation:
    return [(turn.sender, json.loads(turn.body)) for turn in turns]


def _shake_hands(talk: Talk, request_id: int = 1) -> None:
    talk.ask(request_id, "initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": CLIENT})
    talk.say("notifications/initialized")


def _question(text: str = QUESTION, token: str = "", meta: Message | None = None, **arguments: Any) -> Message:
    meta = (meta or {}) | ({"progressToken": token} if token else {})
    return {"name": "answer", "arguments": {"query": text, **arguments}} | ({"_meta": meta} if meta else {})


def _framed_handshake(talk: Talk) -> None:
    _shake_hands(talk)
    talk.ask(2, "ping")


def _handshake(talk: Talk) -> None:
    _shake_hands(talk)
    talk.ask(2, "tools/list")
    talk.ask(3, "tools/call", _question(token="p3"))


def _handshake_cancelled(talk: Talk) -> None:
    talk.say("tools/call", _question(f"{QUESTION} [rehearse: delay=30]", token="p1"), id=1)
    talk.hear()
    talk.say("notifications/cancelled", {"requestId": 1, "reason": "the user pressed Escape"})
    talk.ask(2, "ping")


def _handshake_refused(talk: Talk) -> None:
    talk.ask(1, "tools/call", _question(max_results=11))
    talk.ask(2, "tools/call", _question(f"{QUESTION} [rehearse: status=401]"))
    talk.ask(3, "tools/call", {"name": "nope"})
    talk.ask(4, "resources/list")


def _envelope(talk: Talk) -> None:
    talk.ask("d1", "server/discover", {"_meta": ENVELOPE})
    talk.ask("d2", "tools/list", {"_meta": ENVELOPE})
    talk.ask("d3", "tools/call", _question(token="p3", meta=ENVELOPE))


def _envelope_cancelled(talk: Talk) -> None:
    talk.say("tools/call", _question(f"{QUESTION} [rehearse: delay=30]", token="p1", meta=ENVELOPE), id="d1")
    talk.hear()
    talk.say("notifications/cancelled", {"requestId": "d1", "reason": "the user pressed Escape"})
    talk.ask("d2", "tools/call", {"name": "nope", "_meta": ENVELOPE})


def _envelope_refused(talk: Talk) -> None:
    unknown = {**ENVELOPE, "io.modelcontextprotocol/protocolVersion": "2027-01-01"}
    incomplete = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    talk.ask("d1", "tools/call", _question(max_results=11, meta=ENVELOPE))
    talk.ask("d2", "tools/call", _question(f"{QUESTION} [rehearse: status=401]", meta=ENVELOPE))
    talk.ask("d3", "ping", {"_meta": ENVELOPE})
    talk.ask("d4", "tools/list", {"_meta": unknown})
    talk.ask("d5", "tools/list", {"_meta": incomplete})
    talk.ask("d6", "server/discover")


def _both_eras(talk: Talk) -> None:
    talk.ask("d1", "server/discover", {"_meta": ENVELOPE})
    _shake_hands(talk)
    talk.ask("d2", "server/discover", {"_meta": ENVELOPE})
    talk.ask(2, "ping")


def _tasks(talk: Talk) -> None:
    call = {"name": "answer_detailed", "arguments": {"query": f"{QUESTION} [rehearse: delay=60]"}}
    task = talk.ask("d1", "tools/call", {**call, "_meta": WITH_TASKS})["result"]["taskId"]
    talk.ask("d2", "tasks/get", {"taskId": task, "_meta": WITH_TASKS})
    talk.ask("d3", "tasks/cancel", {"taskId": task, "_meta": WITH_TASKS})
    talk.ask("d4", "tasks/get", {"taskId": task, "_meta": WITH_TASKS})
    talk.ask("d5", "tasks/get", {"taskId": "task_made-up", "_meta": WITH_TASKS})
    talk.ask("d6", "tasks/get", {"taskId": task, "_meta": ENVELOPE})


FRAMED_HANDSHAKE = Scene(
    "A handshake with Content-Length",
    "Headers end with `\\r\\n`; nothing stands between a body and the next header.",
    "framed",
    _framed_handshake,
)
HANDSHAKE = Scene(
    "A handshake and a question, line by line",
    "The same hello, the list of tools, and a question with progress.",
    "line",
    _handshake,
)
HANDSHAKE_CANCELLED = Scene(
    "A cancelled call without an envelope",
    "The next reply belongs to the next request: for the cancelled one there is none.",
    "line",
    _handshake_cancelled,
)
HANDSHAKE_REFUSED = Scene(
    "Refused without an envelope",
    "A bad argument, a failure of the API, an unknown tool, an unknown method.",
    "line",
    _handshake_refused,
)
ENVELOPE_CALLS = Scene(
    "A question in envelopes", "The probe, the list of tools, and a question with progress.", "line", _envelope
)
ENVELOPE_CANCELLED = Scene(
    "A cancelled call in an envelope",
    "As in the other era; the request after it names an unknown tool, and is refused as this revision wants it.",
    "line",
    _envelope_cancelled,
)
ENVELOPE_REFUSED = Scene(
    "Refused in an envelope",
    "A bad argument and a failure of the API are results for the model to read. Then: a method that is gone, a revision"
    " that the server does not know, an envelope that lacks a member, and a probe without one.",
    "line",
    _envelope_refused,
)
BOTH_ERAS = Scene(
    "Both eras on one connection", "A probe, then a handshake, then both eras in turn.", "line", _both_eras
)

TASKS = Scene(
    "A research as a task",
    "The client declares the extension, so a task comes back. It is looked at, cancelled, and looked at again. Then: an"
    " id that was made up, and a request that does not declare the extension.",
    "line",
    _tasks,
)

SCENES = (
    FRAMED_HANDSHAKE,
    HANDSHAKE,
    HANDSHAKE_CANCELLED,
    HANDSHAKE_REFUSED,
    ENVELOPE_CALLS,
    ENVELOPE_CANCELLED,
    ENVELOPE_REFUSED,
    TASKS,
    BOTH_ERAS,
)
