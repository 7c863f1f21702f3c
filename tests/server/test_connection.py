import asyncio

from openai_responses_mcp.domain.ports import FramingFault
from openai_responses_mcp.server.connection import Connection
from tests.fakes import WAIT_SECONDS
from tests.server.wired import Wired, request, tool_call


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


async def test_what_was_answered_is_written_before_an_aborted_connection_ends() -> None:
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


async def test_what_is_still_to_be_said_elsewhere_is_waited_for_when_the_input_ends() -> None:
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


async def test_what_is_dropped_is_settled_before_the_end() -> None:
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
