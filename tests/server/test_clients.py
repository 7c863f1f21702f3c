from typing import Any

import pytest

from openai_responses_mcp.domain.jsonrpc import Request
from openai_responses_mcp.server.clients import IMPATIENT, USUAL_HAND_OVER_SECONDS, ClientOfConnection, HandOver
from openai_responses_mcp.server.eras import ENVELOPE, HANDSHAKE
from tests.server.wired import CAPABILITIES, Wired, request
from tests.server.wired import ENVELOPE as META

TOOLS = ("answer",)
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
TASKS = "io.modelcontextprotocol/tasks"
DESKTOP = {"name": "claude-ai", "version": "0.1.0"}
OTHER = {"name": "codex-mcp-client", "version": "1"}


def hello(info: Any) -> Request:
    return Request(1, "initialize", {"clientInfo": info})


def enveloped(**meta: Any) -> Request:
    return Request(1, "tools/list", {"_meta": {**META, **meta}})


def test_every_impatient_client_is_there_for_a_reason() -> None:
    assert "claude-ai" in IMPATIENT
    assert all(reason.strip() for reason in IMPATIENT.values())
    assert USUAL_HAND_OVER_SECONDS == 50


@pytest.mark.parametrize(
    ("hand_over", "info", "seconds"),
    [
        ("auto", DESKTOP, 50),
        ("auto", OTHER, None),
        ("auto", None, None),
        ("auto", "claude-ai", None),
        ("auto", {"name": ["claude-ai"]}, None),
        (None, DESKTOP, None),
        (7.5, DESKTOP, 7.5),
        (7.5, OTHER, 7.5),
        (7.5, None, 7.5),
    ],
)
def test_a_configured_time_holds_for_all_and_else_the_name_decides(
    hand_over: HandOver, info: Any, seconds: float | None
) -> None:
    shaken = ClientOfConnection(hand_over, TOOLS).seen_in(hello(info), HANDSHAKE)
    sealed = ClientOfConnection(hand_over, TOOLS).seen_in(enveloped(**{CLIENT_INFO: info}), ENVELOPE)
    assert shaken.hand_over_seconds == sealed.hand_over_seconds == seconds
    assert shaken.may_fetch == sealed.may_fetch == (seconds is not None)


def test_the_name_is_remembered_until_another_is_given() -> None:
    client = ClientOfConnection("auto", TOOLS)
    listing = Request(2, "tools/list", {"clientInfo": DESKTOP})
    assert client.seen_in(listing, HANDSHAKE).hand_over_seconds is None
    client.seen_in(hello(DESKTOP), HANDSHAKE)
    assert client.seen_in(listing, HANDSHAKE).hand_over_seconds == 50
    assert client.seen_in(enveloped(), ENVELOPE).hand_over_seconds == 50
    client.seen_in(enveloped(**{CLIENT_INFO: OTHER}), ENVELOPE)
    assert client.seen_in(listing, HANDSHAKE).hand_over_seconds is None


def test_the_configured_tools_may_name_the_one_that_fetches() -> None:
    assert ClientOfConnection(None, ("answer", "answer_result")).seen_in(hello(OTHER), HANDSHAKE).may_fetch


@pytest.mark.parametrize(
    ("capabilities", "takes_tasks"),
    [
        ({"extensions": {TASKS: {}}}, True),
        ({"extensions": {TASKS: {}, "other": {}}, "roots": {}}, True),
        ({"extensions": {TASKS: None}}, False),
        ({"extensions": {"other": {}}}, False),
        ({"extensions": [TASKS]}, False),
        ({TASKS: {}}, False),
        ({}, False),
    ],
)
def test_tasks_are_for_requests_that_declare_them(capabilities: Any, takes_tasks: bool) -> None:
    client = ClientOfConnection(None, TOOLS)
    assert client.seen_in(enveloped(**{CAPABILITIES: capabilities}), ENVELOPE).takes_tasks is takes_tasks
    # Not remembered, and not known in the other era.
    assert not client.seen_in(enveloped(), ENVELOPE).takes_tasks
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
    assert await listed(wired, **META, **{CLIENT_INFO: OTHER}) == ["answer"]
    assert await listed(wired, **META, **{CLIENT_INFO: DESKTOP}) == ["answer", "answer_result"]


async def test_answer_result_is_listed_once_and_in_its_place_when_it_is_configured() -> None:
    assert await listed(Wired(tools=("answer_result", "answer"))) == ["answer_result", "answer"]
    assert await listed(Wired(tools=("answer_result", "answer"), hand_over=5)) == ["answer_result", "answer"]
