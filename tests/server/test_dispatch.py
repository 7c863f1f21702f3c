import asyncio
import json
from typing import Any

import pytest

from openai_responses_mcp.domain.cancellation import CallsInFlight
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, ProgressListener, StartListener, Usage
from openai_responses_mcp.domain.ports import FramingFault, Received
from openai_responses_mcp.server.calling import Caller
from openai_responses_mcp.server.dispatch import Connection, Dispatcher
from tests.fakes import WAIT_SECONDS, FakeGateway
from tests.server.wired import ENVELOPE, Wired, cancel, request, tool_call

PONG = {"jsonrpc": "2.0", "id": "p", "result": {}}


async def held(*messages: dict[str, Any], calls: int) -> Wired:
    """A dispatcher with that many calls waiting at the gateway."""
    wired = Wired(is_debugging=True)
    wired.gateway.hold()
    wired.handle(*messages)
    await wired.gateway.wait_for_calls(calls)
    return wired


async def test_ping_and_list_are_answered_at_once_while_a_thousand_calls_are_in_flight() -> None:
    wired = await held(*(tool_call(number) for number in range(1000)), calls=1000)
    wired.handle(request("p", "ping"), request("l", "tools/list"))
    first, second = wired.transport.replies()
    assert first == PONG
    assert len(second["result"]["tools"]) == 4
    wired.gateway.release()
    replies = (await wired.drained())[2:]
    assert sorted(reply["id"] for reply in replies) == list(range(1000))
    assert all("result" in reply for reply in replies)


async def test_replies_come_in_the_order_of_completion() -> None:
    slow = FakeGateway()
    slow.hold()
    wired = Wired(gateway=Switch({"slow": slow, "quick": FakeGateway()}))
    wired.handle(tool_call(1, "slow"), tool_call(2, "quick"))
    assert [reply["id"] for reply in await wired.transport.wait_for_sent(1)] == [2]
    slow.release()
    assert [reply["id"] for reply in await wired.drained()] == [2, 1]


class Switch(FakeGateway):
    """Asks the gateway named by the first word of the question."""

    def __init__(self, gateways: dict[str, FakeGateway]) -> None:
        super().__init__()
        self._gateways = gateways

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        return await self._gateways[request.input_text.split()[0]].respond(request, on_progress, on_started)


@pytest.mark.parametrize(
    "second",
    [
        tool_call(1, "again"),
        tool_call(1, meta=ENVELOPE),
        request(1, "ping"),
        request(1, "nope"),
    ],
)
async def test_an_id_in_flight_is_refused_for_the_second_and_the_first_is_unharmed(second: dict[str, Any]) -> None:
    wired = await held(tool_call(1, "first"), calls=1)
    wired.handle(second)
    refusal = wired.transport.replies()[0]
    assert refusal["id"] == 1
    assert refusal["error"] == {
        "code": -32600,
        "message": "Invalid request: A request with the id 1 is already in flight",
    }
    wired.gateway.release()
    replies = await wired.drained()
    assert len(replies) == 2
    assert "result" in replies[1]
    assert len(wired.gateway.calls) == 1


async def test_a_cancelled_call_is_aborted_and_sends_no_response() -> None:
    wired = await held(tool_call(1), calls=1)
    wired.handle(cancel(1, reason="changed my mind"))
    wired.gateway.release()
    assert await wired.drained() == []
    assert len(wired.gateway.cancelled) == 1
    assert wired.logger.facts("cancelled") == [{"requestId": 1, "reason": "changed my mind"}]


class StubbornGateway(FakeGateway):
    """Ignores cancellation, and answers in the end."""

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        try:
            return await super().respond(request, on_progress, on_started)
        except asyncio.CancelledError:
            await self._released.wait()
            return ModelReply(text="all the same")


async def test_a_cancelled_call_is_silent_even_if_the_gateway_goes_on() -> None:
    gateway = StubbornGateway()
    gateway.hold()
    wired = Wired(gateway=gateway)
    wired.handle(tool_call(1, meta={"progressToken": "t"}))
    await gateway.wait_for_calls(1)
    await wired.clock.wait_for_sleepers()
    before = len(wired.transport.sent)
    wired.handle(cancel(1))
    for _ in range(20):
        await wired.clock.advance(1)
    gateway.release()
    assert len(await wired.drained()) == before


async def test_a_call_cancelled_before_it_began_never_reaches_the_gateway() -> None:
    wired = Wired()
    wired.handle(tool_call(1), cancel(1))
    assert await wired.drained() == []
    assert wired.gateway.calls == []


@pytest.mark.parametrize("unfit", [2, "1", True, 1.0, None, [1], {"id": 1}])
async def test_a_cancellation_that_names_no_call_leaves_every_call_alone(unfit: Any) -> None:
    wired = await held(tool_call(1), calls=1)
    wired.handle(cancel(unfit))
    assert wired.transport.sent == []
    wired.gateway.release()
    assert [reply["id"] for reply in await wired.drained()] == [1]


@pytest.mark.parametrize(
    "notification",
    [
        {"jsonrpc": "2.0", "method": "notifications/cancelled"},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "method": "tools/call", "params": {"name": "answer", "arguments": {"query": "Q"}}},
        {"jsonrpc": "2.0", "id": 1, "result": {}},
    ],
)
async def test_notifications_and_responses_are_not_answered(notification: dict[str, Any]) -> None:
    wired = Wired()
    wired.handle(notification)
    assert await wired.drained() == []
    assert await wired.reply_to(request("p", "ping")) == PONG
    assert wired.gateway.calls == []


async def test_cancelling_twice_or_after_the_reply_does_nothing() -> None:
    wired = await held(tool_call(1), calls=1)
    wired.handle(cancel(1, reason={"not": "a text"}), cancel(1))
    wired.gateway.release()
    await wired.reply_to(tool_call(2))
    wired.handle(cancel(2))
    assert [reply["id"] for reply in await wired.drained()] == [2]
    assert wired.logger.facts("cancelled") == [{"requestId": 1, "reason": None}]


async def test_an_unexpected_failure_is_answered_and_its_traceback_logged() -> None:
    wired = Wired()
    wired.gateway.enqueue(ZeroDivisionError("a bug"))
    assert await wired.reply_to(tool_call(1)) == {
        "jsonrpc": "2.0",
        "id": 1,
        "error": {"code": -32603, "message": "Internal error; the log on stderr has the details"},
    }
    ((level, event, facts),) = wired.logger.lines
    assert (level, event) == ("error", "call failed unexpectedly")
    assert "ZeroDivisionError: a bug" in str(facts["traceback"])
    assert "result" in await wired.reply_to(tool_call(2))


async def test_an_answer_that_cannot_be_encoded_is_answered_with_an_error() -> None:
    wired = Wired()
    wired.gateway.enqueue(ModelReply(text="x", usage=Usage(float("nan"), 1, 1)))  # type: ignore[arg-type]
    reply = await wired.reply_to(tool_call(1))
    assert (reply["id"], reply["error"]["code"]) == (1, -32603)
    assert [event for _, event, _ in wired.logger.lines] == ["call failed unexpectedly"]


async def test_a_call_that_cannot_be_loaded_is_answered_too() -> None:
    wired = Wired()

    async def fail() -> Caller:
        raise RuntimeError("what a call needs could not be loaded") from ImportError("no such package")

    dispatcher = Dispatcher(CallsInFlight(wired.logger), wired.logger, ("answer",), fail, None)
    for number in (1, 2):
        dispatcher.handle(Received(json.dumps(tool_call(number)).encode(), wired.transport))
    replies = await wired.transport.wait_for_sent(2)
    assert [(reply["id"], reply["error"]["code"]) for reply in replies] == [(1, -32603), (2, -32603)]
    assert all("no such package" in str(facts["traceback"]) for _, _, facts in wired.logger.lines)


async def test_the_debug_log_has_each_request_with_its_caller_and_each_notification() -> None:
    wired = Wired(is_debugging=True)
    wired.handle(request("a", "ping"), cancel(7))
    wired.dispatcher.handle(Received(json.dumps(request(8, "ping")).encode(), wired.transport, "ann"))
    assert wired.logger.facts("recv") == [
        {"method": "ping", "id": "a"},
        {"method": "notifications/cancelled"},
        {"method": "ping", "id": 8, "caller": "ann"},
    ]


async def test_the_channel_of_a_reply_gets_the_code_of_its_error() -> None:
    wired = Wired()
    wired.handle(request(1, "ping"), request(2, "no/such"), tool_call(3, tool="nope"), tool_call(4))
    wired.handle_body(b"{")
    await wired.drained()
    assert wired.transport.error_codes == [None, -32601, -32601, -32700, None]


async def test_the_channel_of_a_cancelled_call_is_withdrawn_once() -> None:
    wired = Wired()
    wired.gateway.hold()
    wired.handle(tool_call(1), cancel(1), cancel(1))
    assert await wired.drained() == []
    assert wired.transport.withdrawn == 1


class Served:
    """A served connection in the background."""

    def __init__(self) -> None:
        self.wired = Wired()
        self.is_ending = asyncio.Event()
        self.is_settled = asyncio.Event()
        self.is_settled.set()
        self.connection = Connection(self.wired.transport, self.wired.dispatcher, self.is_ending, self.settle)
        self.task = asyncio.create_task(self.connection.serve())

    async def settle(self) -> None:
        self.dropped_before_settling = len(self.wired.gateway.cancelled)
        await self.is_settled.wait()

    async def over(self) -> None:
        await asyncio.wait_for(self.task, WAIT_SECONDS)


async def test_messages_are_answered_until_the_input_ends() -> None:
    served = Served()
    transport = served.wired.transport
    transport.enqueue(request(1, "ping"), FramingFault("no Content-Length"), request(2, "ping"))
    transport.end()
    await served.over()
    assert served.is_ending.is_set()
    assert transport.replies() == [
        {"jsonrpc": "2.0", "id": 1, "result": {}},
        {
            "jsonrpc": "2.0",
            "id": None,
            "error": {"code": -32600, "message": "Invalid request: no Content-Length"},
        },
        {"jsonrpc": "2.0", "id": 2, "result": {}},
    ]


async def test_calls_in_flight_are_finished_after_the_end_of_input() -> None:
    served = Served()
    served.wired.gateway.hold()
    served.wired.transport.enqueue(tool_call(1), tool_call(2))
    served.wired.transport.end()
    await asyncio.wait_for(served.is_ending.wait(), WAIT_SECONDS)
    await served.wired.gateway.wait_for_calls(2)
    assert not served.task.done()
    served.wired.gateway.release()
    await served.over()
    assert sorted(reply["id"] for reply in served.wired.transport.replies()) == [1, 2]


async def test_when_the_client_is_gone_calls_are_dropped_at_once() -> None:
    served = Served()
    served.wired.gateway.hold()
    served.wired.transport.enqueue(tool_call(1))
    await served.wired.gateway.wait_for_calls(1)
    served.wired.transport.close()
    await served.over()
    await served.wired.drained()
    assert len(served.wired.gateway.cancelled) == 1
    assert served.wired.transport.sent == []
    assert not served.is_ending.is_set()


async def test_a_client_that_goes_before_the_last_reply_is_written_ends_it_too() -> None:
    served = Served()
    served.wired.gateway.hold()
    served.wired.transport.enqueue(tool_call(1))
    served.wired.transport.end()
    await served.wired.gateway.wait_for_calls(1)
    served.wired.transport.close()
    served.wired.gateway.release()
    await served.over()
    assert served.is_ending.is_set()
    assert served.wired.transport.sent == []


async def test_it_lasts_until_a_slow_client_has_read_the_last_reply() -> None:
    served = Served()
    served.wired.gateway.hold()
    served.wired.transport.enqueue(tool_call(1))
    served.wired.transport.end()
    await asyncio.wait_for(served.is_ending.wait(), WAIT_SECONDS)
    await served.wired.gateway.wait_for_calls(1)
    served.wired.transport.stop_reading()
    served.wired.gateway.release()
    await served.wired.drained()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not served.task.done()
    served.wired.transport.read_again()
    await served.over()
    assert [reply["id"] for reply in served.wired.transport.replies()] == [1]


async def test_replies_are_written_before_an_aborted_connection_ends() -> None:
    served = Served()
    served.wired.transport.enqueue(request(1, "ping"))
    await served.wired.transport.wait_for_sent(1)
    served.wired.transport.stop_reading()
    aborting = asyncio.create_task(served.connection.abort())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not aborting.done()
    served.wired.transport.read_again()
    await asyncio.wait_for(aborting, WAIT_SECONDS)
    served.wired.transport.end()
    await served.over()


async def test_a_client_that_does_not_read_holds_up_an_abort_only_for_a_moment() -> None:
    served = Served()
    served.wired.transport.stop_reading()
    await asyncio.wait_for(served.connection.abort(), WAIT_SECONDS)
    served.wired.transport.close()
    await served.over()


async def test_an_api_that_does_not_settle_holds_up_the_end_only_for_a_moment() -> None:
    served = Served()
    served.is_settled.clear()
    served.wired.transport.close()
    await served.over()


async def test_the_end_of_input_waits_until_the_last_calls_are_settled() -> None:
    served = Served()
    served.is_settled.clear()
    served.wired.transport.enqueue(tool_call(1))
    served.wired.transport.end()
    for _ in range(50):
        await asyncio.sleep(0)
    assert [reply["id"] for reply in served.wired.transport.replies()] == [1]
    assert not served.task.done()
    served.is_settled.set()
    await served.over()


async def test_dropped_calls_are_settled_before_the_end() -> None:
    served = Served()
    served.is_settled.clear()
    served.wired.gateway.hold()
    served.wired.transport.enqueue(tool_call(1))
    await served.wired.gateway.wait_for_calls(1)
    served.wired.transport.close()
    await asyncio.sleep(0)
    assert not served.task.done()
    served.is_settled.set()
    await served.over()
    assert served.dropped_before_settling == 1
