import json
from dataclasses import replace
from typing import Any

import pytest

from openai_responses_mcp.domain.errors import AnswerWithheld, GatewayOverloaded, GatewayTimeout, KeyUnusable
from openai_responses_mcp.domain.models import CallFailure, ModelReply, ObservedCall, Source, Usage
from openai_responses_mcp.domain.ports import Received
from openai_responses_mcp.domain.usage import CallerLimits
from openai_responses_mcp.server.calling import CallingRules
from tests.fakes import FakeCallObserver
from tests.rules import CALLING
from tests.server.wired import CAPABILITIES, ENVELOPE, SECRET, SERVER_INFO, Wired, cancel, request, tool_call

AS_RESULT = replace(CALLING, returns_failures_as_results=True)


async def failure(error: Exception, **how: Any) -> Any:
    """What a call is answered with when the gateway fails."""
    meta = how.pop("meta", None)
    wired = Wired(**how)
    wired.gateway.enqueue(error)
    return await wired.reply_to(tool_call(1, meta=meta))


async def refusal(arguments: Any, meta: Any = None, **how: Any) -> Any:
    """What a call with these arguments is answered with, without the model having been asked."""
    wired = Wired(**how)
    reply = await wired.reply_to(request(1, "tools/call", {"name": "answer", "arguments": arguments, "_meta": meta}))
    assert wired.gateway.calls == []
    return reply


async def test_a_question_is_answered_with_exactly_four_fields_and_the_id_beside_them() -> None:
    wired = Wired()
    wired.gateway.enqueue(
        ModelReply(
            text="Because.",
            model="gpt-5.2-x",
            response_id="resp_1",
            cited=(Source("https://a.example", "A", "2026-01-02"),),
            search_count=1,
            usage=Usage(1, 2, 3),
        )
    )
    reply = await wired.reply_to(tool_call(7))
    fields: dict[str, Any] = {
        "answer": "Because.\n\nSources:\n- https://a.example (2026-01-02)",
        "used_search": True,
        "citations": [{"url": "https://a.example", "title": "A", "published_at": "2026-01-02"}],
        "model": "gpt-5.2-x",
    }
    assert (reply["jsonrpc"], reply["id"]) == ("2.0", 7)
    assert json.loads(reply["result"]["content"][0]["text"]) == fields
    assert reply["result"]["content"][1:] == [{"type": "text", "text": "[Response ID: resp_1]"}]
    dated = [{**fields["citations"][0], "date_kind": "published"}]
    assert reply["result"]["structuredContent"] == {**fields, "citations": dated, "response_id": "resp_1"}
    assert reply["result"]["_meta"]["openai-responses-mcp/searches"] == 1


async def test_in_the_new_era_the_result_is_stamped_and_keeps_its_own_meta() -> None:
    result = (await Wired().reply_to(tool_call(1, meta=ENVELOPE)))["result"]
    assert result["resultType"] == "complete"
    assert set(result["_meta"]) == {SERVER_INFO, "openai-responses-mcp/searches"}
    assert "ttlMs" not in result


@pytest.mark.parametrize("arguments", [None, {}])
async def test_null_arguments_are_absent(arguments: Any) -> None:
    assert (await refusal(arguments))["error"] == {
        "code": -32001,
        "message": "answer: invalid arguments",
        "data": {"reason": "query is required"},
    }


@pytest.mark.parametrize("arguments", [[], False])
async def test_arguments_that_are_no_object_are_refused(arguments: Any) -> None:
    assert (await refusal(arguments))["error"]["data"] == {"reason": "arguments must be an object"}


@pytest.mark.parametrize(("rules", "meta"), [(AS_RESULT, None), (CALLING, ENVELOPE)])
async def test_bad_arguments_are_a_tool_result_where_a_model_should_read_them(rules: CallingRules, meta: Any) -> None:
    result = (await refusal({"query": "Q", "max_results": 11}, meta, rules=rules))["result"]
    reason = "answer: invalid arguments: max_results must be a number from 1 to 10"
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": reason}]
    assert ("resultType" in result) is (meta is not None)


@pytest.mark.parametrize(
    "error", [GatewayTimeout("Too slow. Ask again."), KeyUnusable("Missing API key: set X"), AnswerWithheld("Nothing.")]
)
async def test_a_failure_is_an_error_that_says_what_went_wrong(error: Exception) -> None:
    assert (await failure(error))["error"] == {
        "code": -32001,
        "message": "answer failed",
        "data": {"message": str(error)},
    }


@pytest.mark.parametrize(("rules", "meta"), [(AS_RESULT, None), (CALLING, ENVELOPE)])
async def test_a_failure_is_a_tool_result_where_a_model_should_read_it(rules: CallingRules, meta: Any) -> None:
    result = (await failure(GatewayTimeout("Too slow."), rules=rules, meta=meta))["result"]
    assert result["isError"] is True
    assert result["content"] == [{"type": "text", "text": "answer failed: Too slow."}]
    assert ("resultType" in result) is (meta is not None)


async def test_retries_are_counted_where_they_happened() -> None:
    error = GatewayOverloaded("busy", status=429)
    error.retries = 3
    assert (await failure(error))["error"]["data"] == {"message": "busy", "retries": 3}


@pytest.mark.parametrize(
    ("error", "facts"),
    [
        (
            GatewayOverloaded("busy", status=429, kind="rate_limit", code="slow", name="RateLimitError"),
            {"status": 429, "type": "rate_limit", "name": "RateLimitError"},
        ),
        (GatewayOverloaded("busy", code="server_error"), {"status": "server_error", "name": "GatewayOverloaded"}),
        (GatewayTimeout("busy"), {"name": "GatewayTimeout"}),
        (KeyUnusable("busy"), {"name": "KeyUnusable"}),
    ],
)
async def test_in_debug_a_failure_also_has_status_type_and_name_as_far_as_known(
    error: Exception, facts: dict[str, Any]
) -> None:
    assert (await failure(error, is_debugging=True))["error"]["data"] == {"message": "busy", **facts}


async def test_a_secret_shows_in_no_part_of_a_failure() -> None:
    error = GatewayOverloaded(f"key {SECRET}", kind=f"kind {SECRET}", code=f"code {SECRET}", name=f"name {SECRET}")
    assert (await failure(error, is_debugging=True))["error"]["data"] == {
        "message": "key ***",
        "status": "code ***",
        "type": "kind ***",
        "name": "name ***",
    }
    assert SECRET not in json.dumps(await failure(error, rules=AS_RESULT))


@pytest.mark.parametrize("rules", [CALLING, AS_RESULT])
async def test_a_long_message_is_masked_first_and_then_cut(rules: CallingRules) -> None:
    # Cut first, half of the key would be left at the end, where no mask recognises it.
    reply = await failure(GatewayTimeout("x" * 390 + SECRET + "y" * 100), rules=rules)
    shown = "x" * 390 + "***" + "y" * 7
    assert len(shown) == 400
    if rules is AS_RESULT:
        assert reply["result"]["content"][0]["text"] == f"answer failed: {shown}"
    else:
        assert reply["error"]["data"]["message"] == shown


async def test_the_debug_log_names_the_arguments_but_not_what_they_say() -> None:
    wired = Wired(is_debugging=True)
    arguments = {"query": "private", "colour": "red", "domains": ["hidden.example"]}
    await wired.reply_to(request(1, "tools/call", {"name": "answer", "arguments": arguments}))
    assert wired.logger.facts("tools/call") == [
        {"name": "answer", "argsKeys": ["query", "colour", "domains"], "queryLen": 7}
    ]
    assert wired.logger.facts("ignored arguments") == [{"name": "answer", "argsKeys": ["colour"]}]
    assert not any(word in repr(wired.logger.lines) for word in ("private", "red'", "hidden.example"))


REPLY = ModelReply(text="Well.", usage=Usage(60, 40, 100))


class Limited(Wired):
    def __init__(self, limits: CallerLimits) -> None:
        super().__init__(limits=limits)

    def ask(self, number: int, caller: str = "ann", meta: Any = None) -> None:
        self.dispatcher.handle(Received(json.dumps(tool_call(number, meta=meta)).encode(), self.transport, caller))

    async def answer(self, number: int, caller: str = "ann", meta: Any = None) -> str:
        """The text of the result, and whether it is an error."""
        before = len(self.transport.sent)
        self.ask(number, caller, meta)
        (reply,) = (await self.drained())[before:]
        text: str = reply["result"]["content"][0]["text"]
        return text if reply["result"].get("isError") else "answered"


@pytest.mark.parametrize("meta", [None, ENVELOPE], ids=["handshake", "envelope"])
async def test_calls_in_a_minute_are_counted_for_each_caller(meta: Any) -> None:
    wired = Limited(CallerLimits(calls_per_minute=2))
    assert [await wired.answer(number, meta=meta) for number in (1, 2)] == ["answered"] * 2
    assert await wired.answer(3, meta=meta) == "You may call 2 times a minute. Come back in 60 s."
    assert await wired.answer(4, "bob", meta) == "answered"
    await wired.clock.advance(60)
    assert await wired.answer(5, meta=meta) == "answered"


async def test_calls_at_once_are_bounded() -> None:
    wired = Limited(CallerLimits(calls_at_once=1))
    wired.gateway.hold()
    wired.ask(1)
    await wired.gateway.wait_for_calls(1)
    wired.ask(2)
    (refused,) = await wired.transport.wait_for_sent(1)
    text = refused["result"]["content"][0]["text"]
    assert text == "You already have 1 call in flight, which is the limit. Wait for one to end."
    wired.gateway.release()
    await wired.drained()
    assert await wired.answer(3) == "answered"


async def test_tokens_of_a_day_are_counted_until_the_next_day() -> None:
    wired = Limited(CallerLimits(tokens_per_day=150))
    wired.gateway.enqueue(REPLY, REPLY, REPLY)
    assert [await wired.answer(number) for number in (1, 2)] == ["answered"] * 2
    assert (await wired.answer(3)).startswith("You have used all 150 tokens for today. Come back in ")
    await wired.clock.advance(24 * 3600)
    assert await wired.answer(4) == "answered"


TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
TASKS = {**ENVELOPE, CAPABILITIES: {"extensions": {"io.modelcontextprotocol/tasks": {}}}}


async def test_a_call_is_observed_with_its_tool_id_and_revision() -> None:
    observer = FakeCallObserver()
    wired = Wired(observer=observer)
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
async def test_only_texts_that_name_the_trace_are_passed_on(meta: Any, trace: dict[str, str]) -> None:
    observer = FakeCallObserver()
    wired = Wired(observer=observer)
    await wired.reply_to(tool_call(1, meta=meta))
    ((call, _),) = observer.ended
    assert call.trace == trace


async def test_a_failure_is_observed_as_the_client_gets_it() -> None:
    observer = FakeCallObserver()
    wired = Wired(observer=observer)
    wired.gateway.enqueue(GatewayTimeout("late"), GatewayTimeout("late"))
    await wired.reply_to(tool_call(1))
    await wired.reply_to(tool_call(2, meta=ENVELOPE))
    assert [failure for _, failure in observer.ended] == [
        CallFailure("-32001", "answer failed", -32001),
        CallFailure("tool_error"),
    ]


async def test_a_cancelled_call_is_observed_and_not_answered() -> None:
    observer = FakeCallObserver()
    wired = Wired(observer=observer)
    wired.gateway.hold()
    wired.handle(tool_call(1))
    await wired.gateway.wait_for_calls(1)
    wired.handle(cancel(1))
    assert await wired.drained() == []
    assert len(observer.ended) == 1


async def test_other_requests_are_not_observed() -> None:
    observer = FakeCallObserver()
    wired = Wired(observer=observer)
    await wired.reply_to(request(1, "tools/list"))
    await wired.reply_to(request(2, "tasks/get", {"taskId": "none", "_meta": TASKS}))
    assert observer.ended == []
