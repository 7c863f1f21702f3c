"""Spans and the metric of real calls, through dispatcher, use case and gateway."""

import asyncio
import json
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from openai_responses_mcp.adapters.telemetry.otel import TracedGateway
from openai_responses_mcp.domain.errors import GatewayOverloaded, GatewayTimeout
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, ObservedCall, Usage
from tests.adapters.telemetry.in_memory import InMemoryTelemetry
from tests.fakes import WAIT_SECONDS, FakeGateway
from tests.server.wired import ENVELOPE, Wired, cancel, tool_call

TRACE = 0x4BF92F3577B34DA6A3CE929D0E0E4736
PARENT = 0x00F067AA0BA902B7
TRACEPARENT = f"00-{TRACE:032x}-{PARENT:016x}-01"
REPLY = ModelReply("It is.", model="gpt-5.2-2026-01-01", response_id="resp_1", usage=Usage(11, 7, 18))


class Observed:
    def __init__(self, base_url: str = "https://api.openai.com/v1") -> None:
        self.memory = InMemoryTelemetry(base_url)
        self.fake = FakeGateway()
        traced = TracedGateway(self.fake, self.memory.telemetry)
        self.wired = Wired(gateway=traced, observer=self.memory.telemetry)

    async def reply_to(self, message: dict[str, Any]) -> Any:
        return await self.wired.reply_to(message)

    def span(self, name: str) -> ReadableSpan:
        (span,) = (one for one in self.memory.spans() if one.name == name)
        return span


@pytest.fixture
def observed() -> Observed:
    return Observed()


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def test_a_call_over_http_names_its_caller() -> None:
    memory = InMemoryTelemetry()
    with memory.telemetry.observed(ObservedCall("answer", 1, "2026-07-28", {}, "ann")):
        pass
    assert attributes_of(memory.spans()[0])["enduser.id"] == "ann"


async def test_a_call_is_a_server_span_with_the_attributes_of_the_conventions(observed: Observed) -> None:
    await observed.reply_to(tool_call(7, tool="answer_quick"))
    span = observed.span("tools/call answer_quick")
    assert span.kind is SpanKind.SERVER
    assert attributes_of(span) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-06-18",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "answer_quick",
        "jsonrpc.request.id": "7",
        "network.transport": "pipe",
    }
    assert span.status.status_code is StatusCode.UNSET
    assert span.parent is None


async def test_the_trace_context_of_the_client_is_the_parent(observed: Observed) -> None:
    await observed.reply_to(tool_call(1, meta={"traceparent": TRACEPARENT, "tracestate": "rojo=1"}))
    span = observed.span("tools/call answer")
    assert span.parent is not None
    assert (span.parent.trace_id, span.parent.span_id, span.parent.is_remote) == (TRACE, PARENT, True)
    assert span.context is not None
    assert span.context.trace_state.get("rojo") == "1"


async def test_a_call_that_the_client_does_not_sample_has_no_spans(observed: Observed) -> None:
    await observed.reply_to(tool_call(1, meta={"traceparent": TRACEPARENT[:-1] + "0"}))
    assert observed.memory.spans() == []


@pytest.mark.parametrize("parent", ["", "00-zz", 7, "\ud800", TRACEPARENT[:-3]])
async def test_an_invalid_trace_context_is_ignored(observed: Observed, parent: Any) -> None:
    reply = await observed.reply_to(tool_call(1, meta={"traceparent": parent, "tracestate": parent}))
    assert "result" in reply
    assert observed.span("tools/call answer").parent is None


async def test_the_request_to_the_api_is_a_child_span_with_its_token_counts(observed: Observed) -> None:
    observed.fake.enqueue(REPLY)
    await observed.reply_to(tool_call(1))
    call, asking = observed.span("tools/call answer"), observed.span("chat gpt-5.2")
    assert asking.kind is SpanKind.CLIENT
    assert call.context is not None
    assert asking.parent == call.context
    assert attributes_of(asking) == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "openai",
        "openai.api.type": "responses",
        "gen_ai.request.model": "gpt-5.2",
        "gen_ai.response.model": "gpt-5.2-2026-01-01",
        "gen_ai.response.id": "resp_1",
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 11,
        "gen_ai.usage.output_tokens": 7,
        "server.address": "api.openai.com",
        "server.port": 443,
    }


async def test_following_a_background_response_has_its_own_span() -> None:
    memory, fake = InMemoryTelemetry(), FakeGateway()
    fake.enqueue(REPLY)
    gateway = TracedGateway(fake, memory.telemetry)
    request = ModelRequest("gpt-5.2", "", "Why?", background=True)
    reply = await asyncio.wait_for(gateway.respond(request), WAIT_SECONDS)
    await asyncio.wait_for(gateway.follow(reply.response_id or ""), WAIT_SECONDS)
    assert [span.name for span in memory.spans()] == ["chat gpt-5.2", "chat"]
    assert attributes_of(memory.spans()[1])["gen_ai.response.id"] == reply.response_id


@pytest.mark.parametrize(
    ("base_url", "address", "port"),
    [("http://proxy/v1", "proxy", 80), ("https://u:p@h/", "h", 443)],
)
async def test_a_span_has_only_the_host_and_port_of_the_api(base_url: str, address: str, port: int) -> None:
    observed = Observed(base_url)
    await observed.reply_to(tool_call(1))
    attributes = attributes_of(observed.span("chat gpt-5.2"))
    assert (attributes["server.address"], attributes["server.port"]) == (address, port)


# Failures


async def test_the_error_type_of_a_json_rpc_error_is_its_code(observed: Observed) -> None:
    observed.fake.enqueue(GatewayOverloaded("busy", status=503))
    await observed.reply_to(tool_call(1))
    call, asking = observed.span("tools/call answer"), observed.span("chat gpt-5.2")
    assert attributes_of(call)["error.type"] == attributes_of(call)["rpc.response.status_code"] == "-32001"
    assert (call.status.status_code, call.status.description) == (StatusCode.ERROR, "answer failed")
    assert attributes_of(asking)["error.type"] == "503"
    assert asking.status.status_code is StatusCode.ERROR


async def test_a_failed_result_is_a_tool_error(observed: Observed) -> None:
    observed.fake.enqueue(GatewayTimeout("late"))
    await observed.reply_to(tool_call(1, meta=ENVELOPE))
    call, asking = observed.span("tools/call answer"), observed.span("chat gpt-5.2")
    assert attributes_of(call)["error.type"] == "tool_error"
    assert "rpc.response.status_code" not in attributes_of(call)
    assert attributes_of(asking)["error.type"] == "GatewayTimeout"


async def test_the_error_type_of_a_cancelled_call_is_cancelled(observed: Observed) -> None:
    observed.fake.hold()
    observed.wired.handle(tool_call(1))
    await observed.fake.wait_for_calls(1)
    observed.wired.handle(cancel(1))
    assert await observed.wired.drained() == []
    kinds = {span.name: attributes_of(span)["error.type"] for span in observed.memory.spans()}
    assert kinds == {"tools/call answer": "cancelled", "chat gpt-5.2": "cancelled"}


async def test_the_error_type_of_an_unexpected_exception_is_its_class(observed: Observed) -> None:
    observed.fake.enqueue(ZeroDivisionError("with a secret in it"))
    await observed.reply_to(tool_call(1))
    span = observed.span("tools/call answer")
    assert attributes_of(span)["error.type"] == "ZeroDivisionError"
    assert not span.events


async def test_spans_contain_no_question_answer_or_error_body(observed: Observed) -> None:
    observed.fake.enqueue(ModelReply("the planted answer"), GatewayOverloaded("a planted body", status=500))
    await observed.reply_to(tool_call(1, "a planted question"))
    await observed.reply_to(tool_call(2, "a planted question"))
    assert "planted" not in "".join(span.to_json() for span in observed.memory.spans())


# The metric


async def test_the_duration_of_each_call_is_measured_by_tool_and_failure(observed: Observed) -> None:
    observed.fake.enqueue(REPLY, REPLY, GatewayTimeout("late"))
    for number in range(3):
        await observed.reply_to(tool_call(number, meta={"traceparent": TRACEPARENT}))
    points = observed.memory.points()
    assert {name for name, _ in points} == {"mcp.server.operation.duration"}
    shared = {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-06-18",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "answer",
        "network.transport": "pipe",
    }
    failed = {"error.type": "-32001", "rpc.response.status_code": "-32001"}
    counted = {json.dumps(dict(point.attributes), sort_keys=True): point.count for _, point in points}
    assert counted == {json.dumps(shared, sort_keys=True): 2, json.dumps(shared | failed, sort_keys=True): 1}
    assert points[0][1].explicit_bounds[-1] == 300


async def test_a_call_that_is_not_sampled_is_still_measured(observed: Observed) -> None:
    await observed.reply_to(tool_call(1, meta={"traceparent": TRACEPARENT[:-1] + "0"}))
    assert [point.count for _, point in observed.memory.points()] == [1]
