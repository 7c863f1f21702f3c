"""What an observer is told of a call; everything else about calls is as without one."""

from typing import Any

import pytest

from openai_responses_mcp.domain.errors import GatewayTimeout
from openai_responses_mcp.domain.models import CallFailure, ObservedCall
from tests.fakes import FakeCallObserver
from tests.server.wired import CAPABILITIES, ENVELOPE, Wired, cancel, request, tool_call

TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TASKS = {**ENVELOPE, CAPABILITIES: {"extensions": {"io.modelcontextprotocol/tasks": {}}}}


@pytest.fixture
def observer() -> FakeCallObserver:
    return FakeCallObserver()


@pytest.fixture
def wired(observer: FakeCallObserver) -> Wired:
    return Wired(observer=observer)


async def test_a_call_is_told_with_its_tool_id_and_revision(wired: Wired, observer: FakeCallObserver) -> None:
    await wired.reply_to(tool_call("a", tool="answer_quick"))
    await wired.reply_to(tool_call(2, meta=ENVELOPE))
    assert observer.ended == [
        (ObservedCall("answer_quick", "a", "2025-06-18", {}), None),
        (ObservedCall("answer", 2, "2026-07-28", {}), None),
    ]


@pytest.mark.parametrize(
    ("meta", "trace"),
    [
        ({"traceparent": TRACEPARENT, "tracestate": "a=1"}, {"traceparent": TRACEPARENT, "tracestate": "a=1"}),
        ({"traceparent": TRACEPARENT, "baggage": "user=me"}, {"traceparent": TRACEPARENT}),
        ({"traceparent": 7, "tracestate": None}, {}),
        ("no object", {}),
    ],
)
async def test_only_texts_that_name_the_trace_are_handed_on(
    wired: Wired, observer: FakeCallObserver, meta: Any, trace: dict[str, str]
) -> None:
    await wired.reply_to(tool_call(1, meta=meta))
    ((call, _),) = observer.ended
    assert call.trace == trace


async def test_a_failure_is_told_as_the_client_is_told(wired: Wired, observer: FakeCallObserver) -> None:
    wired.gateway.enqueue(GatewayTimeout("late"), GatewayTimeout("late"))
    await wired.reply_to(tool_call(1))
    await wired.reply_to(tool_call(2, meta=ENVELOPE))
    assert [failure for _, failure in observer.ended] == [
        CallFailure("-32001", "answer failed", -32001),
        CallFailure("tool_error"),
    ]


async def test_a_cancelled_call_is_told_and_not_answered(wired: Wired, observer: FakeCallObserver) -> None:
    wired.gateway.hold()
    wired.handle(tool_call(1))
    await wired.gateway.wait_for_calls(1)
    wired.handle(cancel(1))
    assert await wired.drained() == []
    assert len(observer.ended) == 1


async def test_other_requests_are_not_calls(wired: Wired, observer: FakeCallObserver) -> None:
    await wired.reply_to(request(1, "tools/list"))
    await wired.reply_to(request(2, "tasks/get", {"taskId": "none", "_meta": TASKS}))
    assert observer.ended == []
