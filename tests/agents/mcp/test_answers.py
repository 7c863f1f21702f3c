"""An error that a server answered with, and one that the SDK made up because there was no answer, over HTTP."""

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from openai_responses_mcp.agents.mcp.connections import open_client
from openai_responses_mcp.agents.mcp.gateway import McpServerConfig
from openai_responses_mcp.gate.errors import AgentsError
from tests.agents.mcp.wild_server import ECHO, ERRORS
from tests.stand_in.http_server import HttpServer
from tests.stand_in.http_wire import Ending, RecordedRequest, Reply

JSON, EVENTS = {"content-type": "application/json"}, {"content-type": "text/event-stream"}
INFO = {
    "protocolVersion": "2025-06-18",
    "capabilities": {"tools": {}},
    "serverInfo": {"name": "web", "version": "1"},
}


def as_error(number: Any, error: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": number, "error": error}).encode()


async def nothing_more() -> AsyncIterator[bytes]:
    yield b": thinking\n\n"


# What a call is replied to, given its id, and whether that is an answer.
REPLIES: dict[str, tuple[Any, str]] = {
    "an error of its own as JSON": (lambda number: Reply(200, JSON, as_error(number, ERRORS["says-own"])), "rejected"),
    "an error of its own with a status": (
        lambda number: Reply(400, JSON, as_error(number, ERRORS["refuses"])),
        "rejected",
    ),
    "an error of its own as an event": (
        lambda number: Reply(200, EVENTS, b"data: " + as_error(number, ERRORS["says-own"]) + b"\n\n"),
        "rejected",
    ),
    "a stream that is cut": (lambda number: Reply(200, EVENTS, nothing_more(), ending=Ending.CUT), "broken"),
    "a gateway's error": (lambda number: Reply(502, {"content-type": "text/html"}, b"<h1>Bad gateway</h1>"), "broken"),
    "an event that cannot be read": (lambda number: Reply(200, EVENTS, b"data: {]\n\n"), "broken"),
    "nothing": (lambda number: Reply(ending=Ending.HANG_UP), "broken"),
}


@pytest.mark.parametrize("name", REPLIES)
async def test_only_what_the_server_said_is_an_answer(name: str) -> None:
    make_reply, reason = REPLIES[name]
    calls = 0

    async def answer(request: RecordedRequest) -> Reply:
        nonlocal calls
        if request.method != "POST":
            return Reply(405)
        method, number = request.json.get("method"), request.json.get("id")
        if number is None:
            return Reply(202)
        if method == "tools/call":
            calls += 1
            reply: Reply = make_reply(number)
            return reply
        results = {"initialize": INFO, "tools/list": {"tools": [ECHO]}}
        if method not in results:
            return Reply(200, JSON, as_error(number, {"code": -32601, "message": "no such method"}))
        return Reply(200, JSON, json.dumps({"jsonrpc": "2.0", "id": number, "result": results[method]}).encode())

    web = HttpServer(answer)
    client = open_client(McpServerConfig("web", url=f"{await web.start()}/mcp", timeout_ms=10_000))
    with pytest.raises(AgentsError) as caught:
        await client.call_tool("echo", {"text": "hi"})
    await client.close()
    await web.close()
    assert (caught.value.code, caught.value.details["reason"]) == ("AGENTS-E-MCP-EXEC", reason)
    assert calls == 1
