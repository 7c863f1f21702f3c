"""A guard for many clients, between ends in memory: their servers, and the limits of their callers."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

from openai_responses_mcp.domain.ports import FramingFault, Transport
from openai_responses_mcp.domain.usage import CallerLimits, OverLimit, ProcessUsage
from openai_responses_mcp.guard.composition import CannotStart, ServerSide
from openai_responses_mcp.guard.messages import ClientWays
from openai_responses_mcp.guard.over_http import KeptServers, LimitedClient
from openai_responses_mcp.guard.relay import Relay
from tests.fakes import PAUSE_SECONDS, WAIT_SECONDS, FakeClock, FakeTransport
from tests.guard.fake_process import FakeNotices, FakeProcess
from tests.guard.keepers import ENVELOPE

INITIALIZE = {"protocolVersion": "2025-06-18", "capabilities": {"elicitation": {}}}


def msg(**fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **fields}


class Started:
    """One server. It answers with its number what it is asked, unless it is silent."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.transport, self.process = FakeTransport(), FakeProcess()
        self.is_closed = False

    async def answer(self, request_id: Any) -> None:
        count = 1
        while request_id not in [one.get("id") for one in await self.transport.wait_for_sent(count)]:
            count += 1
        self.transport.enqueue(msg(id=request_id, result={"server": self.number}))

    async def last_words(self) -> str:
        return '"ouch"'

    async def close(self) -> None:
        self.is_closed = True

    async def end_of_output(self) -> None:
        await self.process.ended()
        self.transport.end()


class Scene:
    def __init__(self, *, most: int = 2, idle_seconds: float = 60.0) -> None:
        self.client, self.started, self.callers = FakeTransport(), list[Started](), list[tuple[str, str]]()
        self.why_not = ""
        self.ways: list[ClientWays] = []
        self.servers = KeptServers(self._start, self._connect, self._attend, most, idle_seconds)
        self._outputs: list[asyncio.Task[None]] = []

    def _start(self) -> ServerSide:
        if self.why_not:
            raise CannotStart(self.why_not)
        one = Started(len(self.started) + 1)
        self.started.append(one)
        self._outputs.append(asyncio.create_task(one.end_of_output()))
        return ServerSide(one.transport, one.process, one.last_words, one.close)

    def _connect(self, client: Transport, server: Transport, ways: ClientWays, caller: str, session: str) -> Relay:
        self.callers.append((caller, session))
        self.ways.append(ways)
        return Relay(client, server, self._never, FakeNotices().tell, None, ways)

    async def _never(self, relay: Relay) -> Any:
        raise AssertionError("no call is made here")

    async def _attend(self, relay: Relay) -> None:
        await asyncio.get_running_loop().create_future()

    async def until(self, is_so: Callable[[], bool]) -> None:
        async with asyncio.timeout(WAIT_SECONDS):
            while not is_so():  # noqa: ASYNC110 - nothing tells of it
                await asyncio.sleep(PAUSE_SECONDS)

    async def server(self, number: int) -> Started:
        await self.until(lambda: len(self.started) >= number)
        return self.started[number - 1]


@asynccontextmanager
async def served(scene: Scene) -> AsyncIterator[Scene]:
    serving = asyncio.create_task(scene.servers.serve(scene.client, "key", "ann"))
    yield scene
    scene.client.close()
    await asyncio.wait_for(serving, WAIT_SECONDS)
    assert all(one.is_closed for one in scene.started)
    assert scene.servers.admit("another")


async def test_notifications_of_the_server_reach_the_client() -> None:
    async with served(Scene()) as scene:
        scene.client.enqueue(msg(id=1, method="ping"))
        await (await scene.server(1)).answer(1)
        scene.started[0].transport.enqueue(msg(method="notifications/message", params={"level": "info", "data": "x"}))
        sent = await scene.client.wait_for_sent(2)
        assert [one.get("method") for one in sent] == [None, "notifications/message"]


async def test_a_server_that_ends_fails_what_it_had_and_the_next_gets_the_handshake_again() -> None:
    async with served(Scene()) as scene:
        assert scene.started == []
        scene.client.enqueue(msg(id="i", method="initialize", params=INITIALIZE))
        first = await scene.server(1)
        await first.answer("i")
        await scene.client.wait_for_sent(1)
        scene.client.enqueue(msg(id=1, method="ping"))
        await first.transport.wait_for_sent(2)
        first.process.exit(3)
        failed = (await scene.client.wait_for_sent(2))[1]
        assert failed["error"]["message"] == (
            'The guarded server has ended (exit code 3); the last line that it wrote to stderr: "ouch"'
        )
        scene.client.enqueue(msg(id=2, method="ping"))
        second = await scene.server(2)
        (handshake,) = await second.transport.wait_for_sent(1)
        assert (handshake["method"], handshake["params"]) == ("initialize", INITIALIZE)
        await second.answer(handshake["id"])
        assert [one["method"] for one in await second.transport.wait_for_sent(3)][1:] == [
            "notifications/initialized",
            "ping",
        ]
        await second.answer(2)
        assert (await scene.client.wait_for_sent(3))[2] == msg(id=2, result={"server": 2})
        assert scene.callers[0] == scene.callers[1]
        assert scene.ways[0] is scene.ways[1]


async def test_a_server_that_does_not_take_the_handshake_again_fails_the_request() -> None:
    async with served(Scene()) as scene:
        scene.client.enqueue(msg(id="i", method="initialize", params=INITIALIZE))
        first = await scene.server(1)
        await first.answer("i")
        await scene.client.wait_for_sent(1)
        first.process.exit(0)
        await scene.until(lambda: first.is_closed)
        scene.client.enqueue(msg(id=2, method="ping"))
        second = await scene.server(2)
        (handshake,) = await second.transport.wait_for_sent(1)
        second.transport.enqueue(msg(id=handshake["id"], error={"code": 1, "message": "not you"}))
        refused = (await scene.client.wait_for_sent(2))[1]
        assert refused["error"]["message"] == "The guarded server did not start again: not you"
        scene.client.enqueue(msg(id=3, method="ping"))
        third = await scene.server(3)
        await third.transport.wait_for_sent(1)
        third.process.exit(5)
        untaken = (await scene.client.wait_for_sent(3))[2]
        assert untaken["error"]["message"] == "The guarded server ended before it took the request"


async def test_a_server_that_cannot_be_started_is_an_error_and_tried_again_with_the_next() -> None:
    async with served(Scene()) as scene:
        scene.why_not = "no such program"
        scene.client.enqueue(msg(id=1, method="ping"), msg(method="notifications/x"))
        assert (await scene.client.wait_for_sent(1))[0]["error"]["message"] == "no such program"
        scene.why_not = ""
        scene.client.enqueue(msg(id=2, method="ping"))
        await scene.server(1)


async def test_a_server_that_is_idle_is_ended_but_not_one_that_has_something_to_do() -> None:
    async with served(Scene(idle_seconds=0.05)) as scene:
        scene.client.enqueue(msg(id=1, method="ping"))
        first = await scene.server(1)
        await first.transport.wait_for_sent(1)
        # A second one, which came later, has been idle for long enough.
        other = FakeTransport()
        serving = asyncio.create_task(scene.servers.serve(other, "other", "bob"))
        other.enqueue(msg(id=1, method="ping"))
        second = await scene.server(2)
        await second.answer(1)
        await scene.until(lambda: second.is_closed)
        assert not first.is_closed
        await first.answer(1)
        await scene.until(lambda: first.is_closed)
        scene.client.enqueue(msg(id=2, method="ping"))
        await scene.server(3)
        other.close()
        await asyncio.wait_for(serving, WAIT_SECONDS)


async def test_there_are_only_so_many_servers() -> None:
    servers = Scene(most=2).servers
    assert [servers.admit(key) for key in ("a", "b", "c", "a")] == [True, True, False, True]


# ---------------------------------------------------------------------------------------------------------------------
# Limits of callers


def call(number: int, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "echo", **params}}


async def test_a_call_over_the_limit_gets_a_result_and_the_next_message_is_taken() -> None:
    client = FakeTransport()
    limited = LimitedClient(client, "ann", CallerLimits(calls_at_once=1), ProcessUsage(FakeClock()))
    ping = {"jsonrpc": "2.0", "id": 9, "method": "ping"}
    client.enqueue(call(1), call(2), call(3, _meta=ENVELOPE), FramingFault("odd"), ping)
    first, odd, other = [await limited.receive() for _ in range(3)]
    assert first is not None
    assert odd is not None
    assert other is not None
    assert (json.loads(first.body)["id"], odd.body, json.loads(other.body)) == (1, FramingFault("odd"), ping)  # type: ignore[arg-type]
    old, new = client.replies()
    assert (old["result"]["isError"], "resultType" in old["result"]) == (True, False)
    assert new["result"]["resultType"] == "complete"
    first.channel.send(b"{}")
    first.channel.reply(b"{}")
    first.channel.withdraw()
    await asyncio.sleep(0)  # The end is counted beside the reply.
    client.enqueue(call(4))
    again = await limited.receive()
    assert again is not None
    assert json.loads(again.body)["id"] == 4  # type: ignore[arg-type]
    again.channel.withdraw()
    limited.send(b"{}")
    await limited.flush()
    client.end()
    assert await limited.receive() is None


class SlowUsage(ProcessUsage):
    """Counts only when it may."""

    def __init__(self) -> None:
        super().__init__(FakeClock())
        self.is_asked, self.may_count = asyncio.Event(), asyncio.Event()

    async def begin(self, caller: str, limits: CallerLimits) -> str | OverLimit:
        self.is_asked.set()
        await self.may_count.wait()
        return await super().begin(caller, limits)


async def test_a_call_that_is_being_counted_when_its_reader_ends_goes_to_the_next_one() -> None:
    client, usage = FakeTransport(), SlowUsage()
    limited = LimitedClient(client, "ann", CallerLimits(calls_at_once=1), usage)
    client.enqueue(call(1))
    reading = asyncio.create_task(limited.receive())
    await asyncio.wait_for(usage.is_asked.wait(), WAIT_SECONDS)
    reading.cancel()
    await asyncio.wait({reading})
    usage.may_count.set()
    received = await asyncio.wait_for(limited.receive(), WAIT_SECONDS)
    assert received is not None
    assert json.loads(received.body)["id"] == 1  # type: ignore[arg-type]
    # It was counted once.
    assert isinstance(await usage.begin("ann", CallerLimits(calls_at_once=2)), str)
