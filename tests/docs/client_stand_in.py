"""Plays `claude`, `codex`, `gemini` and `code` for the commands of the pages: parses `mcp add` as they do, and tries the entry.

The server is started with the variables that were named and few others, as Codex does it. It must answer `initialize` and
list a tool. Behind the guard the first tool is called too, and the question is answered with its first choice. Then the
entry is written to the file of Claude Code, where other commands look for it.
"""

import json
import os
import select
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NoReturn

WAIT_SECONDS = 60.0
# Options with a value, and those that name a variable.
VALUES = {"--scope", "-s", "--env", "-e", "--transport", "--header", "--url"}
VARIABLES = {"--env", "-e"}


def main(program: str, words: list[str]) -> None:
    if program == "code":
        (option, text) = words
        entry = json.loads(text)
        assert option == "--add-mcp", words
        try_entry(entry.pop("name"), entry)
        return
    assert words[:2] == ["mcp", "add"], words
    options, given = parsed(words[2:])
    if "--transport" in options:
        (name, url) = given
        assert (options["--transport"], url[:8]) == ("http", "https://"), words
        assert options["--header"].startswith("Authorization: Bearer "), words
        return
    if "--url" in options:  # Codex
        (variable,) = (word.partition("=")[2] for word in given[1:])
        assert (options["--url"][:8], variable in os.environ) == ("https://", True), words
        return
    name, command, *arguments = given
    if "--url" not in arguments:  # A server on another machine is not tried.
        try_entry(name, {"command": command, "args": arguments, "env": options["variables"]})


def parsed(words: list[str]) -> tuple[dict[str, Any], list[str]]:
    """The client's options, and the other words; everything behind `--` belongs to the server."""
    options: dict[str, Any] = {"variables": {}}
    given: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            return options, [*given, *rest]
        if word in VARIABLES:
            variable, _, value = next(rest).partition("=")
            options["variables"][variable] = value
        elif word in VALUES:
            options[word] = next(rest)
        else:
            given.append(word)
    return options, given


def try_entry(name: str, entry: dict[str, Any]) -> None:
    environ = {key: os.environ[key] for key in ("PATH", "HOME")} | entry["env"]
    with subprocess.Popen(
        [entry["command"], *entry["args"]], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as server:
        try:
            opened = request(server, 1, "initialize", client_info())
            assert "serverInfo" in opened["result"], opened
            send(server, {"jsonrpc": "2.0", "method": "notifications/initialized"})
            listed = request(server, 2, "tools/list", {})
            assert listed["result"]["tools"], listed
            if "guard" in entry["args"]:
                called = request(
                    server, 3, "tools/call", {"name": listed["result"]["tools"][0]["name"], "arguments": {}}
                )
                assert not called["result"].get("isError"), called
            assert server.stdin is not None
            server.stdin.close()
            code = server.wait(WAIT_SECONDS)
            # On a busy machine a server may take longer to end than the guard waits.
            assert code in (0, 128 + signal.SIGTERM), f"{name} ended with {code}"
        except BaseException:
            server.kill()
            raise
    file = Path.home() / ".claude.json"
    kept = json.loads(file.read_text()) if file.exists() else {"mcpServers": {}}
    kept["mcpServers"][name] = entry
    file.write_text(json.dumps(kept))
    sys.stdout.write(f"{name}: connected, {len(listed['result']['tools'])} tools\n")


def client_info() -> dict[str, Any]:
    return {
        "protocolVersion": "2025-06-18",
        "capabilities": {"elicitation": {}},
        "clientInfo": {"name": "pages", "version": "1"},
    }


def request(server: "subprocess.Popen[bytes]", number: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    send(server, {"jsonrpc": "2.0", "id": number, "method": method, "params": params})
    assert server.stdout is not None
    while True:
        if not select.select([server.stdout], [], [], WAIT_SECONDS)[0]:
            fail(f"no reply to {method} within {WAIT_SECONDS:.0f} s")
        line = server.stdout.readline()
        if not line:
            fail(f"the server ended before it replied to {method}")
        reply: dict[str, Any] = json.loads(line)
        if reply.get("method") == "elicitation/create":
            send(
                server,
                {"jsonrpc": "2.0", "id": reply["id"], "result": first_choice(reply["params"]["requestedSchema"])},
            )
        elif reply.get("id") == number:
            return reply


def first_choice(schema: dict[str, Any]) -> dict[str, Any]:
    choices = {
        name: part["enum"][0] if "enum" in part else part["oneOf"][0]["const"]
        for name, part in schema["properties"].items()
        if name in schema["required"]
    }
    return {"action": "accept", "content": choices}


def send(server: "subprocess.Popen[bytes]", message: dict[str, Any]) -> None:
    assert server.stdin is not None
    server.stdin.write(json.dumps(message).encode() + b"\n")
    server.stdin.flush()


def fail(why: str) -> NoReturn:
    raise SystemExit(f"Failed to connect: {why}")


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2:])
