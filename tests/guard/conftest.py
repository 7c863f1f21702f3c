"""Guards over real pipes in front of the small server, gone after their test."""

import base64
import json
import os
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp.desk.opening import open_desk_parts
from openai_responses_mcp.desk.page.desk import DeskParts
from openai_responses_mcp.gate.sql.sql_stores import open_stores
from openai_responses_mcp.guard.asking import READING_SECONDS
from tests.e2e.client import COMMAND, Message, Server, environment
from tests.guard.keepers import GuardScene

SMALL_SERVER = Path(__file__).with_name("small_server.py")
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {"form": {}, "url": {}}},
}

Guarded = Callable[..., "Guard"]


class Guard(Server):
    """The guard as a client sees it, what reached the server behind it, and its store."""

    def __init__(
        self,
        folder: Path,
        *options: str,
        server: tuple[str, ...] = (),
        shell: str = "",
        stdout: int = subprocess.PIPE,
        **variables: str,
    ) -> None:
        """`shell` redirects its descriptors."""
        self.folder = folder
        self.seen_file = folder / "seen.jsonl"
        behind = server or (sys.executable, str(SMALL_SERVER), str(self.seen_file))
        command = [*COMMAND, "agents", "guard", "--name", "small", *options, "--", *behind]
        redirected = ["sh", "-c", f'exec "$@" {shell}', "sh", *command] if shell else command
        environ = environment(folder, XDG_STATE_HOME=str(folder / "state"), **variables)
        super().__init__(redirected, environ, stdout=stdout)

    @property
    def store(self) -> str:
        return f"sqlite:///{self.folder / 'state' / 'openai-responses-mcp' / 'guard.db'}"

    @property
    def seen(self) -> list[Message]:
        """What has reached the server, less what the guard has asked it."""
        if not self.seen_file.exists():
            return []
        found = [json.loads(line) for line in self.seen_file.read_text().splitlines()]
        return [message for message in found if not str(message.get("id")).startswith("guard-")]

    def calls_seen(self) -> list[Message]:
        return [message["params"] for message in self.seen if message.get("method") == "tools/call"]

    def initialize(self, revision: str = "2025-06-18", **capabilities: Any) -> Message:
        params = {
            "protocolVersion": revision,
            "capabilities": capabilities,
            "clientInfo": {"name": "t", "version": "1"},
        }
        result = self.result_of("initialize", params)
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return result

    def start_call(self, name: str, call_id: int | str = "c", **others: Any) -> None:
        arguments = {"text": others.pop("text", "hi")}
        params = {"name": name, "arguments": arguments, **others}
        self.send({"jsonrpc": "2.0", "id": call_id, "method": "tools/call", "params": params})

    def called(self, name: str, call_id: int | str = "c", **others: Any) -> Message:
        """The reply to a call that no person has to decide on."""
        self.start_call(name, call_id, **others)
        return self.reply_to(call_id)

    def server_writes(self, data: bytes, call_id: int | str = "raw") -> Message:
        """The reply to a call with which the server writes these bytes first."""
        return self.called("raw", call_id, text=base64.b64encode(data).decode())

    def reply_to_any(self) -> Message:
        """The next reply, whichever call it answers."""
        while "method" in (message := self.receive()):
            pass
        return message

    def question(self) -> Message:
        """The next question that the guard puts to the client."""
        while (message := self.receive()).get("method") != "elicitation/create":
            pass
        return message

    def answer(self, question: Message, decision: str, comment: str = "") -> None:
        # As long as a person takes to read: a sooner answer counts as a program's.
        threading.Event().wait(READING_SECONDS * 1.2)
        content = {"decision": decision, "comment": comment}
        self.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "accept", "content": content}})

    async def events(self) -> list[tuple[str, str]]:
        logs = await open_stores(self.store, must_exist=True).logs.query()
        return [(log.event, log.decision) for log in logs]

    def desk(self) -> DeskParts:
        return open_desk_parts(self.store)


def text_of(reply: Message) -> str:
    text: str = reply["result"]["content"][0]["text"]
    return text


def policy_file(folder: Path, text: str) -> str:
    path = folder / "policy.yaml"
    path.write_text(text)
    return os.fspath(path)


ALLOW_ALL = "version: 1\nrules:\n  - {tools: ['*'], decide: allow}\n"


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    with ExitStack() as guards:

        def start(*options: str, policy: str = "", **others: Any) -> Guard:
            given = ("--policy", policy_file(tmp_path, policy)) if policy else ()
            return guards.enter_context(closing(Guard(tmp_path, *given, *options, **others)))

        yield start


@pytest.fixture
async def scene() -> AsyncIterator[GuardScene]:
    """A guard in memory without a policy file."""
    async with GuardScene() as scene:
        yield scene
