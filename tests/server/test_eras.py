import json
from typing import Any

import pytest
from mcp_types.jsonrpc import JSONRPCError

from openai_responses_mcp import __version__
from openai_responses_mcp.domain.cancellation import CallsInFlight
from openai_responses_mcp.domain.jsonrpc import Request
from openai_responses_mcp.domain.ports import Received
from openai_responses_mcp.server.calling import Caller
from openai_responses_mcp.server.dispatch import Dispatcher
from openai_responses_mcp.server.eras import ENVELOPE as NEW_ERA
from openai_responses_mcp.server.eras import (
    HANDSHAKE,
    HTTP_HANDSHAKES,
    ClientOfConnection,
    EnvelopeFault,
    HandOver,
    era_of,
)
from tests.server.wired import CAPABILITIES, ENVELOPE, REVISION, SERVER_INFO, Wired, request, tool_call

INFO = {"name": "openai-responses-mcp", "title": "OpenAI Responses MCP", "version": __version__}
SUPPORTED = ["2026-07-28", "2025-06-18"]


def test_a_request_without_a_revision_belongs_to_the_handshake_era() -> None:
    cases: list[dict[str, Any]] = [
        {},
        {"_meta": None},
        {"_meta": {"progressToken": 1, CAPABILITIES: {}}},
    ]
    for params in cases:
        assert era_of(Request(1, "tools/list", params)) is HANDSHAKE


@pytest.mark.parametrize("revision", SUPPORTED)
def test_a_request_with_a_known_revision_belongs_to_the_envelope_era(revision: str) -> None:
    meta = {REVISION: revision, CAPABILITIES: {"roots": {}}}
    assert era_of(Request(1, "tools/list", {"_meta": meta})) is NEW_ERA


@pytest.mark.parametrize("revision", ["2099-01-01", ""])
def test_an_unknown_revision_is_answered_with_the_known_ones(revision: str) -> None:
    assert era_of(Request(1, "tools/list", {"_meta": {REVISION: revision}})) == EnvelopeFault(
        -32022, "Unsupported protocol version", {"supported": SUPPORTED, "requested": revision}
    )


@pytest.mark.parametrize(
    ("method", "meta"),
    [
        ("tools/list", {REVISION: 20260728, CAPABILITIES: {}}),
        ("tools/call", {REVISION: "2026-07-28", CAPABILITIES: []}),
        ("server/discover", {CAPABILITIES: {}}),
    ],
)
def test_an_incomplete_envelope_is_refused_as_invalid_params(method: str, meta: Any) -> None:
    fault = era_of(Request(1, method, {"_meta": meta}))
    assert isinstance(fault, EnvelopeFault)
    assert (fault.code, fault.data) == (-32602, None)
    assert "io.modelcontextprotocol/" in fault.message


async def test_initialize_answers_with_one_revision_whatever_is_asked_for() -> None:
    wired = Wired()
    for asked in ("2025-06-18", "2024-11-05", "2099-01-01", None):
        reply = await wired.reply_to(request(1, "initialize", {"protocolVersion": asked, "capabilities": {}}))
        assert reply["result"]["protocolVersion"] == "2025-06-18"
        assert reply["result"]["capabilities"] == {"tools": {}}
        assert reply["result"]["serverInfo"] == INFO
        assert set(reply["result"]) == {"protocolVersion", "capabilities", "serverInfo", "instructions"}
        assert all(tool in reply["result"]["instructions"] for tool in ("answer", "answer_detailed", "answer_quick"))


async def test_over_http_initialize_agrees_on_a_later_revision() -> None:
    wired = Wired()

    async def unused() -> Caller:
        raise AssertionError

    dispatcher = Dispatcher(CallsInFlight(wired.logger), wired.logger, (), unused, None, HTTP_HANDSHAKES)
    for asked in ("2025-11-25", "2024-11-05"):
        body = json.dumps(request(1, "initialize", {"protocolVersion": asked})).encode()
        dispatcher.handle(Received(body, wired.transport))
    agreed = [reply["result"]["protocolVersion"] for reply in wired.transport.replies()]
    assert agreed == ["2025-11-25", "2025-06-18"]


async def test_discover_has_both_revisions_and_how_long_to_keep_them() -> None:
    result = (await Wired().reply_to(request(1, "server/discover", {"_meta": ENVELOPE})))["result"]
    assert result["supportedVersions"] == SUPPORTED
    assert result["capabilities"] == {"tools": {}, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    assert result["instructions"]
    assert (result["ttlMs"], result["cacheScope"]) == (3_600_000, "private")
    assert (result["resultType"], result["_meta"]) == ("complete", {SERVER_INFO: INFO})


async def test_tools_are_listed_bare_in_one_era_and_stamped_in_the_other() -> None:
    wired = Wired(tools=("answer", "answer_quick"))
    old = (await wired.reply_to(request(1, "tools/list")))["result"]
    new = (await wired.reply_to(request(2, "tools/list", {"_meta": ENVELOPE})))["result"]
    assert set(old) == {"tools"}
    assert [tool["name"] for tool in old["tools"]] == ["answer", "answer_quick"]
    stamps = {"resultType": "complete", "ttlMs": 3_600_000, "cacheScope": "private", "_meta": {SERVER_INFO: INFO}}
    assert new == {**old, **stamps}


@pytest.mark.parametrize(
    ("message", "code", "text"),
    [
        (request(1, "nope"), -32601, "Unknown method"),
        (request(1, "ping", {"_meta": ENVELOPE}), -32601, "Unknown method"),
        (tool_call(1, tool="iris"), -32601, "Unknown tool"),
        (request(1, "tools/call", {"name": ["answer"]}), -32601, "Unknown tool"),
        (tool_call(1, tool="nope", meta=ENVELOPE), -32602, "Unknown tool"),
        (
            request(1, "tools/call", {"name": "answer", "_meta": {REVISION: "1"}}),
            -32022,
            "Unsupported protocol version",
        ),
        (
            request(1, "server/discover"),
            -32602,
            "server/discover needs _meta with io.modelcontextprotocol/protocolVersion",
        ),
    ],
)
async def test_an_unservable_request_gets_the_error_of_its_era(message: dict[str, Any], code: int, text: str) -> None:
    reply = await Wired(tools=("answer",)).reply_to(message)
    assert reply["id"] == 1
    assert reply["error"]["code"] == code
    assert reply["error"]["message"] == text
    JSONRPCError.model_validate(reply)


TOOLS = ("answer",)
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
TASKS = "io.modelcontextprotocol/tasks"
DESKTOP = {"name": "claude-ai", "version": "0.1.0"}
OTHER = {"name": "codex-mcp-client", "version": "1"}


def hello(info: Any) -> Request:
    return Request(1, "initialize", {"clientInfo": info})


def enveloped(**meta: Any) -> Request:
    return Request(1, "tools/list", {"_meta": {**ENVELOPE, **meta}})


def test_a_configured_time_holds_for_all_and_else_the_name_decides() -> None:
    cases: list[tuple[HandOver, Any, float | None]] = [
        ("auto", DESKTOP, 50),
        ("auto", OTHER, None),
        ("auto", {"name": ["claude-ai"]}, None),
        (7.5, OTHER, 7.5),
        (7.5, None, 7.5),
    ]
    for hand_over, info, seconds in cases:
        shaken = ClientOfConnection(hand_over, TOOLS).seen_in(hello(info), HANDSHAKE)
        sealed = ClientOfConnection(hand_over, TOOLS).seen_in(enveloped(**{CLIENT_INFO: info}), NEW_ERA)
        assert shaken.hand_over_seconds == sealed.hand_over_seconds == seconds
        assert shaken.may_fetch == sealed.may_fetch == (seconds is not None)


def test_the_name_is_remembered_until_another_is_given() -> None:
    client = ClientOfConnection("auto", TOOLS)
    listing = Request(2, "tools/list", {"clientInfo": DESKTOP})
    assert client.seen_in(listing, HANDSHAKE).hand_over_seconds is None
    client.seen_in(hello(DESKTOP), HANDSHAKE)
    assert client.seen_in(listing, HANDSHAKE).hand_over_seconds == 50
    assert client.seen_in(enveloped(), NEW_ERA).hand_over_seconds == 50
    client.seen_in(enveloped(**{CLIENT_INFO: OTHER}), NEW_ERA)
    assert client.seen_in(listing, HANDSHAKE).hand_over_seconds is None


@pytest.mark.parametrize(
    ("capabilities", "takes_tasks"),
    [
        ({"extensions": {TASKS: {}, "other": {}}, "roots": {}}, True),
        ({"extensions": {TASKS: None}}, False),
        ({"extensions": [TASKS]}, False),
        ({TASKS: {}}, False),
    ],
)
def test_tasks_are_for_requests_that_declare_them(capabilities: Any, takes_tasks: bool) -> None:
    client = ClientOfConnection(None, TOOLS)
    assert client.seen_in(enveloped(**{CAPABILITIES: capabilities}), NEW_ERA).takes_tasks is takes_tasks
    # Not remembered, and not known in the other era.
    assert not client.seen_in(enveloped(), NEW_ERA).takes_tasks
    old = Request(1, "tools/list", {"_meta": {CAPABILITIES: capabilities}})
    assert not client.seen_in(old, HANDSHAKE).takes_tasks


async def listed(wired: Wired, **meta: Any) -> list[str]:
    reply = await wired.reply_to(request(9, "tools/list", {"_meta": meta}))
    return [tool["name"] for tool in reply["result"]["tools"]]


async def test_answer_result_is_listed_where_hand_over_is_on() -> None:
    wired = Wired(tools=("answer",), hand_over="auto")
    assert await listed(wired) == ["answer"]
    await wired.reply_to(request(1, "initialize", {"clientInfo": OTHER}))
    assert await listed(wired) == ["answer"]
    await wired.reply_to(request(1, "initialize", {"clientInfo": DESKTOP}))
    assert await listed(wired) == ["answer", "answer_result"]
    assert await listed(wired, **ENVELOPE, **{CLIENT_INFO: OTHER}) == ["answer"]
    assert await listed(wired, **ENVELOPE, **{CLIENT_INFO: DESKTOP}) == ["answer", "answer_result"]


async def test_answer_result_is_listed_once_and_in_its_place_when_it_is_configured() -> None:
    assert await listed(Wired(tools=("answer_result", "answer"))) == ["answer_result", "answer"]
    assert await listed(Wired(tools=("answer_result", "answer"), hand_over=5)) == ["answer_result", "answer"]
