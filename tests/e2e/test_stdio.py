"""What a client says to the process and hears from it, in both framings and both eras of the protocol."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from openai_responses_mcp import __version__
from tests.e2e.client import WAIT_SECONDS, Server, call, environment, framed, line, request
from tests.e2e.conftest import Start

HANDSHAKE, ENVELOPE = "2025-06-18", "2026-07-28"
HELLO = {"protocolVersion": "2025-03-26", "capabilities": {}, "clientInfo": {"name": "a test", "version": "1"}}
HEAVY = (
    *("openai", "pydantic", "structlog", "ruamel", "dependency_injector", "importlib.metadata", "httpx2", "backoff"),
    *("aiohttp", "datetime", "openai_responses_mcp.domain.models", "openai_responses_mcp.container"),
)

CONVERSATION = [
    request(1, "initialize", HELLO),
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    request("two", "tools/list"),
    call(3, "HTTP 404 の意味は？"),
]


@pytest.mark.parametrize(("encode", "framing"), [(framed, "framed"), (line, "line")])
def test_a_client_initializes_lists_the_tools_and_calls_one(server: Server, encode: Any, framing: str) -> None:
    for message in CONVERSATION:
        server.send_bytes(encode(message))
    initialized, listed, called = (server.reply_to(name)["result"] for name in (1, "two", 3))
    assert initialized["protocolVersion"] == HANDSHAKE
    assert initialized["capabilities"] == {"tools": {}}
    assert initialized["serverInfo"]["name"] == "openai-responses-mcp"
    assert initialized["serverInfo"]["version"] == __version__
    assert initialized["instructions"]
    assert [tool["name"] for tool in listed["tools"]] == ["answer", "answer_detailed", "answer_quick"]
    assert set(called) == {"content", "structuredContent", "_meta"}
    assert server.finish() == 0
    assert server.framings == [framing] * 3
    assert server.stderr == ""


def test_a_rehearsal_answers_without_a_key_and_says_what_it_is(start: Start) -> None:
    server = start("--rehearse", OPENAI_API_KEY="", OPENAI_BASE_URL="")
    assert "rehearsal" in server.ask("What is HTTP 404?")["result"]["structuredContent"]["answer"]
    assert server.finish() == 0
    assert server.stderr == ""


def test_the_first_replies_wait_for_no_heavy_import(tmp_path: Path) -> None:
    # Imports go to stderr and replies to stdout: one pipe for both keeps their order.
    environ = {name: value for name, value in environment(tmp_path).items() if not name.startswith("COVERAGE_")}
    output = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "openai_responses_mcp", "--stdio"],
        input=line(request(1, "initialize", HELLO)) + line(request(2, "tools/list")),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=environ,
        timeout=WAIT_SECONDS,
        check=True,
    ).stdout.decode()
    before, reply, _ = output.partition('"id":2')
    modules = {entry.rpartition("|")[2].strip() for entry in before.splitlines() if entry.startswith("import time:")}
    assert reply
    assert "openai_responses_mcp.server.dispatch" in modules
    assert not [name for name in modules if name.startswith(tuple(f"{heavy}." for heavy in HEAVY)) or name in HEAVY]
