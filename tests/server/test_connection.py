import asyncio

from openai_responses_mcp.domain.ports import FramingFault
from openai_responses_mcp.server.session import serve
from tests.fakes import WAIT_SECONDS
from tests.server.wired import Wired, request, tool_call


class Session:
    """A served connection in the background."""

    def __init__(self) -> None:
        self.wired = Wired()
        self.has_input_ended = asyncio.Event()
        self.task = asyncio.create_task(serve(self.wired.transport, self.wired.dispatcher, self.has_input_ended.set))

    async def over(self) -> None:
        await asyncio.wait_for(self.task, WAIT_SECONDS)


async def test_messages_are_answered_until_the_input_ends() -> None:
    session = Session()
    transport = session.wired.transport
    transport.enqueue(request(1, "ping"), FramingFault("no Content-Length"), request(2, "ping"))
    transport.end()
    await session.over()
    assert session.has_input_ended.is_set()
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
    session = Session()
    session.wired.gateway.hold()
    session.wired.transport.enqueue(tool_call(1), tool_call(2))
    session.wired.transport.end()
    await asyncio.wait_for(session.has_input_ended.wait(), WAIT_SECONDS)
    await session.wired.gateway.wait_for_calls(2)
    assert not session.task.done()
    session.wired.gateway.release()
    await session.over()
    assert sorted(reply["id"] for reply in session.wired.transport.replies()) == [1, 2]


async def test_when_the_client_is_gone_calls_are_dropped_at_once() -> None:
    session = Session()
    session.wired.gateway.hold()
    session.wired.transport.enqueue(tool_call(1))
    await session.wired.gateway.wait_for_calls(1)
    session.wired.transport.close()
    await session.over()
    await session.wired.drained()
    assert len(session.wired.gateway.cancelled) == 1
    assert session.wired.transport.sent == []
    assert not session.has_input_ended.is_set()


async def test_a_client_that_goes_before_the_last_reply_is_written_ends_the_session_too() -> None:
    session = Session()
    session.wired.gateway.hold()
    session.wired.transport.enqueue(tool_call(1))
    session.wired.transport.end()
    await session.wired.gateway.wait_for_calls(1)
    session.wired.transport.close()
    session.wired.gateway.release()
    await session.over()
    assert session.has_input_ended.is_set()
    assert session.wired.transport.sent == []


async def test_the_session_lasts_until_a_slow_client_has_read_the_last_reply() -> None:
    session = Session()
    session.wired.gateway.hold()
    session.wired.transport.enqueue(tool_call(1))
    session.wired.transport.end()
    await asyncio.wait_for(session.has_input_ended.wait(), WAIT_SECONDS)
    await session.wired.gateway.wait_for_calls(1)
    session.wired.transport.stop_reading()
    session.wired.gateway.release()
    await session.wired.drained()
    for _ in range(5):
        await asyncio.sleep(0)
    assert not session.task.done()
    session.wired.transport.read_again()
    await session.over()
    assert [reply["id"] for reply in session.wired.transport.replies()] == [1]
