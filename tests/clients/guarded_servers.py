"""Servers of other projects, with and without the guard in between: the same messages.

`make clients` runs this; it needs the packages in node_modules. Each server is asked the same things over plain pipes. What
the server sends unasked may come a little earlier or later, so the messages are compared as a set.
"""

import json
import os
import socket
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.client import COMMAND, Message, Server, environment

HERE = Path(__file__).parent
SERVERS = HERE / "node_modules" / ".bin"
GUARD = (*COMMAND, "agents", "guard", "--policy", str(HERE / "allow_all.yaml"), "--")

ANSWERS: dict[str, Message] = {
    "roots/list": {"roots": []},
    "sampling/createMessage": {"role": "assistant", "content": {"type": "text", "text": "x"}, "model": "m"},
    "elicitation/create": {"action": "decline"},
}
OPENING: list[Message] = [
    {
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-06-18",
            "capabilities": {"roots": {}, "sampling": {}, "elicitation": {}},
            "clientInfo": {"name": "trial", "version": "1"},
        },
    },
    {"method": "notifications/initialized"},
    {"id": 2, "method": "tools/list"},
    {"id": 3, "method": "resources/list"},
    {"id": 4, "method": "prompts/list"},
    {"id": 5, "method": "ping"},
    {"id": "6", "method": "no/such/method"},
]


def call(call_id: int, name: str, **arguments: Any) -> Message:
    params = {"name": name, "arguments": arguments, "_meta": {"progressToken": call_id}}
    return {"id": call_id, "method": "tools/call", "params": params}


def filesystem(folder: Path) -> tuple[list[str], list[Message]]:
    (folder / "a.txt").write_text("hello")
    return [str(SERVERS / "mcp-server-filesystem"), str(folder)], [
        call(10, "read_text_file", path=str(folder / "a.txt")),
        call(11, "list_directory", path=str(folder)),
        call(12, "read_text_file", path="/etc/passwd"),
        call(13, "write_file", path=str(folder / "b.txt"), content="é \u2028"),
        call(14, "read_text_file", path=str(folder / "b.txt")),
        call(15, "read_text_file", wrong=1),
    ]


def everything(folder: Path) -> tuple[list[str], list[Message]]:
    return [str(SERVERS / "mcp-server-everything")], [
        call(10, "echo", message="hi \u2028 \u0085 é"),
        call(11, "get-sum", a=1, b=2.5),
        # Long enough for the server to ask for the roots meanwhile. Without an answer it stays a minute after its input ends.
        call(12, "trigger-long-running-operation", duration=1.5, steps=3),
        call(13, "trigger-sampling-request", prompt="x", maxTokens=5),
        call(14, "trigger-elicitation-request"),
        call(15, "get-tiny-image"),
        call(16, "echo", wrong=1),
    ]


def memory(folder: Path) -> tuple[list[str], list[Message]]:
    return [str(SERVERS / "mcp-server-memory")], [
        call(10, "create_entities", entities=[{"name": "a", "entityType": "t", "observations": ["o"]}]),
        call(11, "read_graph"),
        call(12, "delete_entities", entityNames=["a"]),
        call(13, "read_graph"),
    ]


@pytest.mark.parametrize("server", [filesystem, everything, memory])
def test_the_guard_changes_nothing(server: Callable[[Path], tuple[list[str], list[Message]]], tmp_path: Path) -> None:
    plain = exchanged(server, tmp_path)
    guarded = exchanged(server, tmp_path, *GUARD)
    assert guarded == plain
    assert sum(plain.values()) > len(OPENING)


def test_a_remote_server_behind_the_guard_answers_as_one_behind_a_pipe(tmp_path: Path) -> None:
    """Over Streamable HTTP, with a session, the server's own stream, its questions and its progress."""
    for name in ("piped", "remote"):
        (tmp_path / name).mkdir()
    piped = exchanged(everything, tmp_path / "piped", *GUARD)
    with served_everything(tmp_path) as url:
        remote = exchanged(lambda folder: (["--url", url], everything(folder)[1]), tmp_path / "remote", *GUARD[:-1])
    # The server says this as soon as it is initialized, when no stream can be open yet.
    del piped[json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}, sort_keys=True)]
    assert remote == piped


@contextmanager
def served_everything(home: Path) -> Iterator[str]:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    environ = environment(home, PORT=str(port))
    command = [str(SERVERS / "mcp-server-everything"), "streamableHttp"]
    process = subprocess.Popen(command, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    try:
        assert process.stderr is not None
        for line in process.stderr:
            if str(port).encode() in line:
                break
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.communicate()


def exchanged(server: Callable[[Path], tuple[list[str], list[Message]]], tmp_path: Path, *guard: str) -> Counter[str]:
    """Every message that the client got, and that the process has ended well."""
    home, folder = tmp_path / ("guarded" if guard else "plain"), tmp_path / "files"
    home.mkdir()
    folder.mkdir(exist_ok=True)
    command, calls = server(folder)
    environ = environment(home, XDG_STATE_HOME=str(home), MEMORY_FILE_PATH=str(home / "memory.json"))
    with closing(Server([*guard, *command], environ)) as talking:
        for message in (*OPENING, *calls):
            talking.send({"jsonrpc": "2.0", **message})
            if "id" in message:
                _await_reply(talking, message["id"])
        assert talking.finish() == 0
        received = [json.dumps(message, sort_keys=True) for message in talking.received]
    for name in os.listdir(folder):
        (folder / name).unlink()
    return Counter(received)


def _await_reply(talking: Server, request_id: int | str) -> None:
    while True:
        message = talking.receive()
        if "method" in message and "id" in message:
            talking.send({"jsonrpc": "2.0", "id": message["id"], "result": ANSWERS[message["method"]]})
        elif message.get("id") == request_id:
            return
