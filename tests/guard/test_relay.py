"""The relay between two ends in memory: what reaches whom."""

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.domain.jsonrpc import Reply
from openai_responses_mcp.domain.ports import FramingFault, Received
from openai_responses_mcp.guard import peers, relay
from openai_responses_mcp.guard.peers import AnsweredWithError, Opened, Peer, PeerGone
from openai_responses_mcp.guard.relay import Relay
from tests.fakes import WAIT_SECONDS, FakeTransport
from tests.guard.fake_process import FakeNotices


class PassingKeeper:
    """Passes every call on, but one that is called `crash`, `wait`, `look up` or `forget`."""

    def __init__(self, relay: Relay) -> None:
        self.relay = relay
        self.heard: list[tuple[str, Any]] = []
        self.is_settled = False
        self.settles = True

    async def keep(self, opened: Opened) -> None:
        name = opened.request.params.get("name")
        if name == "crash":
            raise RuntimeError("crashed on purpose")
        if name == "wait":
            opened.waits_for_human = True
            try:
                await asyncio.get_running_loop().create_future()
            finally:
                self.heard.append(("no longer kept", opened.request.id))
        if name == "look up":
            await self.relay.server.ask("tools/list", {})
        if name == "forget":
            return
        self.relay.server.release(opened, opened.request.wire)
        if name == "crash late":
            raise RuntimeError("crashed on purpose")

    def answered(self, opened: Opened, reply: Reply, about_result: object = None) -> None:
        self.heard.append(("answered", opened.request.id))

    def given_up(self, opened: Opened, reason: str) -> None:
        self.heard.append((reason, opened.request.id))

    async def settle(self) -> None:
        if not self.settles:
            await asyncio.get_running_loop().create_future()
        self.is_settled = True


class Scene:
    def __init__(self) -> None:
        self.client, self.server, self.notices = FakeTransport(), FakeTransport(), FakeNotices()
        self.keepers: list[PassingKeeper] = []
        self.is_loaded = asyncio.Event()
        self.is_loaded.set()
        self.relay = Relay(self.client, self.server, self._load, self.notices.tell)
        self.readers = [asyncio.create_task(self.relay.read_client()), asyncio.create_task(self.relay.read_server())]

    async def _load(self, relay: Relay) -> Any:
        await self.is_loaded.wait()
        if not self.keepers:
            self.keepers.append(PassingKeeper(relay))
        return self.keepers[0]

    async def settled(self) -> None:
        for _ in range(20):
            await asyncio.sleep(0)

    async def from_client(self, *messages: Any) -> None:
        self.client.enqueue(*messages)
        await self.settled()

    async def passed_on(self, patience_seconds: float) -> bool:
        async with asyncio.timeout(WAIT_SECONDS):
            return await self.relay.passed_on(self.readers[0], lambda: patience_seconds)

    async def from_server(self, *messages: Any) -> None:
        self.server.enqueue(*messages)
        await self.settled()


@asynccontextmanager
async def a_scene() -> AsyncIterator[Scene]:
    scene = Scene()
    try:
        yield scene
    finally:
        scene.client.end()
        scene.server.end()
        await asyncio.wait(scene.readers, timeout=WAIT_SECONDS)
        assert all(reader.done() and reader.exception() is None for reader in scene.readers)


@pytest.fixture
async def scene() -> AsyncIterator[Scene]:
    async with a_scene() as scene:
        yield scene


def msg(**fields: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", **fields}


def error(request_id: int | str | None, code: int, text: str) -> dict[str, Any]:
    return msg(id=request_id, error={"code": code, "message": text})


def cancelled(request_id: int | str) -> dict[str, Any]:
    return msg(method="notifications/cancelled", params={"requestId": request_id})


def call(call_id: int | str, name: str = "echo") -> dict[str, Any]:
    return msg(id=call_id, method="tools/call", params={"name": name})


async def test_requests_and_their_replies_pass_in_both_directions(scene: Scene) -> None:
    assert not scene.relay.was_asked.is_set()
    await scene.from_client(msg(id=1, method="ping"))
    assert scene.relay.was_asked.is_set()
    await scene.from_server(msg(id=1, method="roots/list"), msg(id=1, result={"a": 1}))
    await scene.from_client(msg(id=1, result={"b": 2}))
    assert scene.server.replies() == [msg(id=1, method="ping"), msg(id=1, result={"b": 2})]
    assert scene.client.replies() == [msg(id=1, method="roots/list"), msg(id=1, result={"a": 1})]


async def test_listeners_are_called_once_the_client_has_sent_its_roots() -> None:
    heard: list[str] = []
    async with a_scene() as scene:
        scene.relay.when_roots_are_sent(lambda: heard.append("first"))
        await scene.from_server(msg(id=1, method="ping"), msg(id=2, method="roots/list"))
        await scene.from_client(msg(id=1, result={}), call(3))
        assert heard == []
        await scene.from_client(msg(id=2, result={"roots": []}))
        assert heard == ["first"]
        scene.relay.when_roots_are_sent(lambda: heard.append("second"))
        assert heard == ["first", "second"]
    async with a_scene() as scene:
        scene.relay.when_roots_are_sent(lambda: heard.append("in a call"))
        answers = {"inputResponses": {"a": {"roots": [{"uri": "file:///x"}]}}}
        await scene.from_client(msg(id=1, method="tools/call", params={"name": "echo", **answers}))
        assert heard[-1] == "in a call"


async def test_a_reply_that_answers_nothing_open_is_dropped(scene: Scene) -> None:
    await scene.from_client(msg(id=1, method="ping"), msg(id="x", result={}))
    await scene.from_server(msg(id="1", result={}), msg(id=2, result={}), msg(id=1, result={}), msg(id=1, result={}))
    assert scene.client.replies() == [msg(id=1, result={})]
    assert scene.server.replies() == [msg(id=1, method="ping")]
    assert scene.notices.lines == ["the server sent a reply to no open request, or a second one; it was dropped"] * 3


async def test_a_reply_to_a_call_that_the_guard_still_holds_is_dropped(scene: Scene) -> None:
    await scene.from_client(call(1, "wait"))
    await scene.from_server(msg(id=1, result={"content": []}))
    assert scene.client.sent == []
    assert scene.server.sent == []


async def test_an_id_in_flight_is_refused_on_both_sides(scene: Scene) -> None:
    await scene.from_client(msg(id=1, method="a"), msg(id=1, method="b"))
    await scene.from_server(msg(id=1, method="c"), msg(id=1, method="d"))
    refused = error(1, -32600, "Invalid request: the id belongs to a request in flight")
    assert scene.client.replies() == [refused, msg(id=1, method="c")]
    assert scene.server.replies() == [msg(id=1, method="a"), refused]
    assert scene.client.error_codes == [-32600]


async def test_faults_of_the_client_are_answered_and_those_of_the_server_noticed(scene: Scene) -> None:
    await scene.from_client(FramingFault("too long"), b"junk", msg(id=True, method="x"))
    too_long = "Invalid request: too long"
    no_json = "Parse error: Expecting value: line 1 column 1 (char 0)"
    no_id = "Invalid request: id must be a string or a whole number"
    no_method = "Invalid request: method must be a string"
    assert scene.client.replies() == [
        error(None, -32600, too_long),
        error(None, -32700, no_json),
        error(None, -32600, no_id),
    ]
    assert scene.client.error_codes == [-32600, -32700, -32600]
    await scene.from_server(FramingFault("too long"), b"junk", msg(id=3, method=7))
    assert len(scene.client.sent) == 3
    assert scene.server.replies() == [error(3, -32600, no_method)]
    assert scene.notices.lines == [
        f"the server sent something that is not a message ({problem}); it was dropped"
        for problem in (too_long, no_json, no_method)
    ]


async def test_a_flood_of_junk_does_not_fill_the_log(scene: Scene) -> None:
    await scene.from_server(*[b"junk"] * 100)
    for _ in range(100):
        await scene.settled()
    assert len(scene.notices.lines) == 20
    assert [line for line in scene.notices.lines if "reported" in line] == scene.notices.lines[-1:]
    assert scene.notices.lines[-1].endswith("; it was dropped; further ones are not reported")


async def test_a_reply_that_is_unfit_ends_the_wait_on_both_sides(scene: Scene) -> None:
    await scene.from_client(msg(id=1, method="ping"))
    await scene.from_server(b'{"jsonrpc":"2.0","id":1,"result":1,"result":2}', msg(id=2, method="roots/list"))
    unfit = "The reply of the guarded server was unfit to pass"
    assert scene.client.replies()[0] == error(1, -32603, unfit)
    await scene.from_client(b'{"jsonrpc":"2.0","id":2,"result":1,"result":2}')
    assert scene.server.replies()[-1] == error(2, -32603, "The reply of the client was unfit to pass")
    assert scene.client.error_codes == scene.server.error_codes == [-32603]


async def test_a_call_goes_through_the_keeper_and_its_reply_too(scene: Scene) -> None:
    await scene.from_client(call(1))
    await scene.from_server(msg(id=1, result={"content": []}))
    assert scene.server.replies() == [call(1)]
    assert scene.client.replies() == [msg(id=1, result={"content": []})]
    assert scene.keepers[0].heard == [("answered", 1)]


async def test_a_call_that_cannot_be_decided_is_answered_and_does_not_pass(scene: Scene) -> None:
    await scene.from_client(call(1, "crash"), call(2))
    text = "The guard could not decide on this call; its stderr says why"
    assert scene.client.replies() == [error(1, -32603, text)]
    assert scene.server.replies() == [call(2)]


async def test_a_crash_behind_a_call_that_has_passed_brings_no_second_reply(scene: Scene) -> None:
    await scene.from_client(call(1, "crash late"))
    await scene.from_server(msg(id=1, result={}))
    assert scene.client.replies() == [msg(id=1, result={})]
    assert scene.notices.lines == ["a call could not be decided (RuntimeError: crashed on purpose)"]


async def test_a_call_without_a_keeper_task_can_be_cancelled(scene: Scene) -> None:
    await scene.from_client(call(1, "forget"))
    await scene.from_client(cancelled(1), msg(id=1, method="ping"))
    assert [message["method"] for message in scene.server.replies()] == ["ping"]


async def test_a_server_that_cancels_a_request_of_the_client_has_still_to_answer_it(scene: Scene) -> None:
    await scene.from_client(msg(id=1, method="ping"))
    await scene.from_server(cancelled(1), msg(id=1, result={}))
    assert scene.client.replies() == [cancelled(1), msg(id=1, result={})]


async def test_cancelling_a_held_call_sends_nothing_to_the_server(scene: Scene) -> None:
    await scene.from_client(call(1, "wait"))
    await scene.from_client(cancelled(1))
    assert scene.server.sent == []
    assert scene.keepers[0].heard == [("no longer kept", 1)]
    await scene.from_client(call(1))
    assert scene.server.replies() == [call(1)]


async def test_cancelling_a_call_at_the_server_passes_and_drops_the_late_reply(scene: Scene) -> None:
    await scene.from_client(call(1))
    await scene.from_client(cancelled(1), cancelled(1))
    await scene.from_server(msg(id=1, result={}))
    assert scene.server.replies() == [call(1), cancelled(1), cancelled(1)]
    assert scene.client.sent == []
    assert scene.keepers[0].heard == [("cancelled by the client", 1)]


async def test_a_server_ends_a_subscription_by_cancelling_it(scene: Scene) -> None:
    await scene.from_client(msg(id=1, method="subscriptions/listen"))
    await scene.from_server(cancelled(1), msg(id=1, result={}))
    assert scene.client.replies() == [cancelled(1)]


async def test_a_server_cancels_its_own_request(scene: Scene) -> None:
    await scene.from_server(msg(id=1, method="roots/list"), cancelled(1))
    await scene.from_client(msg(id=1, result={}))
    assert scene.server.sent == []


async def test_at_the_end_everything_open_is_answered_with_the_reason(scene: Scene) -> None:
    await scene.from_client(msg(id=1, method="ping"), call(2), call(3, "wait"))
    scene.client.end()
    assert await scene.passed_on(WAIT_SECONDS)
    await scene.relay.finish("it has ended")
    assert scene.client.replies() == [error(number, -32000, "it has ended") for number in (1, 2, 3)]
    assert scene.client.error_codes == [-32000] * 3
    assert scene.keepers[0].heard == [("it has ended", 2), ("no longer kept", 3)]
    with pytest.raises(PeerGone):
        await asyncio.wait_for(scene.relay.client.ask("elicitation/create", {}), WAIT_SECONDS)
    assert scene.keepers[0].is_settled


async def test_a_server_that_takes_nothing_is_not_waited_for_at_the_end(scene: Scene) -> None:
    scene.server.stop_reading()
    await scene.from_client(msg(id=1, method="ping"), msg(id=2, method="ping"))
    scene.client.end()
    assert await scene.passed_on(0.12) is False
    scene.server.read_again()
    assert await scene.passed_on(WAIT_SECONDS)
    assert len(scene.server.sent) == 2


async def test_a_call_that_the_server_holds_up_is_not_waited_for_at_the_end(scene: Scene) -> None:
    await scene.from_client(call(1, "look up"))
    scene.client.end()
    assert not await scene.passed_on(0.12)


async def test_a_call_that_waits_until_everything_is_loaded_is_waited_for(scene: Scene) -> None:
    scene.is_loaded.clear()
    await scene.from_client(call(1))
    scene.client.end()
    waiting = asyncio.create_task(scene.passed_on(0.01))
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(asyncio.shield(waiting), 0.1)
    scene.is_loaded.set()
    assert await asyncio.wait_for(waiting, WAIT_SECONDS)


async def test_a_store_that_takes_no_last_records_holds_the_end_up_for_a_moment_only(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(relay, "_SECONDS_TO_SETTLE", 0.01)
    async with a_scene() as scene:
        await scene.from_client(call(1))
        scene.keepers[0].settles = False
        await scene.relay.finish("over")
        assert scene.notices.lines == ["the store did not take the last records in time"]


async def test_a_client_that_does_not_read_holds_the_server_up_and_loses_nothing() -> None:
    async with a_scene() as scene:
        scene.client.stop_reading()
        await scene.from_server(*[msg(method="notifications/x", params={"n": n}) for n in range(5)])
        assert len(scene.client.sent) == 1
        scene.client.read_again()
        assert len(await scene.client.wait_for_sent(5)) == 5


# ---------------------------------------------------------------------------------------------------------------------
# The guard's own questions


async def test_the_guards_own_question_never_reaches_the_other_side(scene: Scene) -> None:
    asked = asyncio.create_task(scene.relay.client.ask("elicitation/create", {}))
    await scene.settled()
    question = scene.client.replies()[0]
    await scene.from_client(msg(id=question["id"], result={"action": "accept"}), msg(id=question["id"], result={}))
    assert await asyncio.wait_for(asked, WAIT_SECONDS) == {"action": "accept"}
    assert scene.server.sent == []
    looking = asyncio.create_task(scene.relay.server.ask("tools/list", {}))
    await scene.settled()
    sent = len(scene.client.sent)
    looked = scene.server.replies()[0]["id"]
    await scene.from_client(msg(id=looked, method="ping"))
    in_flight = "Invalid request: the id belongs to a request in flight"
    assert scene.client.replies()[sent:] == [error(looked, -32600, in_flight)]
    await scene.from_server(msg(id=looked, error={"code": 1}))
    with pytest.raises(AnsweredWithError, match=r"^$"):
        await asyncio.wait_for(looking, WAIT_SECONDS)
    assert (len(scene.client.sent), scene.notices.lines) == (sent + 1, [])


async def test_an_error_an_end_and_a_cancellation_end_the_guards_own_question() -> None:
    transport = FakeTransport()
    peer = Peer(transport, 10)
    heard: list[Any] = []
    failing, leaving, stopped = (asyncio.create_task(peer.ask("x", {}, None, heard.append)) for _ in range(3))
    await asyncio.sleep(0)
    ids = [message["id"] for message in transport.replies()]
    assert len(set(ids)) == 3
    assert peer.is_answer_to_guard(Reply(ids[0], None, {"message": "no"}))
    with pytest.raises(AnsweredWithError, match="no"):
        await asyncio.wait_for(failing, WAIT_SECONDS)
    stopped.cancel()
    await asyncio.wait([stopped])
    assert transport.replies()[-1] == cancelled(ids[2])
    assert peer.is_answer_to_guard(Reply(ids[2], {"too": "late"}, None))
    assert heard == [{"too": "late"}]
    answered = asyncio.create_task(peer.ask("x", {}))
    await asyncio.sleep(0)
    peer.is_answer_to_guard(Reply(transport.replies()[-1]["id"], {"in": "time"}, None))
    peer.close_all()
    assert await asyncio.wait_for(answered, WAIT_SECONDS) == {"in": "time"}
    with pytest.raises(PeerGone):
        await asyncio.wait_for(leaving, WAIT_SECONDS)
    with pytest.raises(PeerGone):
        await asyncio.wait_for(peer.ask("x", {}), WAIT_SECONDS)


async def test_too_many_open_requests_are_refused() -> None:
    async with a_scene() as scene:
        scene.relay.server._most_open = 2
        await scene.from_client(*[msg(id=number, method="x") for number in range(3)])
        assert scene.client.replies()[0]["error"]["message"] == "Too many requests are in flight"


# ---------------------------------------------------------------------------------------------------------------------
# Whatever comes

_IDS = st.sampled_from([1, 2, "1", "a", None, True, 1.0])
_FRAGMENTS = st.one_of(
    st.binary(max_size=30),
    st.builds(
        lambda fields: json.dumps(fields).encode(),
        st.fixed_dictionaries(
            {"jsonrpc": st.sampled_from(["2.0", "1.0"])},
            optional={
                "id": _IDS,
                "method": st.sampled_from(["ping", "tools/call", "tools/list", "notifications/cancelled", 7]),
                "params": st.sampled_from([{}, {"name": "echo"}, {"requestId": 1}, {"name": "wait"}, []]),
                "result": st.sampled_from([{}, {"tools": [{"name": "x"}]}, {"resultType": "input_required"}, 1]),
                "error": st.sampled_from([{}, {"message": "no"}]),
            },
        ),
    ),
)


@contextmanager
def _loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.new_event_loop()
    try:
        yield loop
    finally:
        loop.close()


@given(st.lists(st.tuples(st.booleans(), _FRAGMENTS), max_size=12))
def test_whatever_both_sides_send_only_messages_pass_and_each_reply_once(sent: list[tuple[bool, bytes]]) -> None:
    async def play() -> Scene:
        async with a_scene() as scene:
            for is_client, body in sent:
                await (scene.from_client(body) if is_client else scene.from_server(body))
            await scene.relay.finish("over")
        return scene

    with _loop() as loop:
        scene = loop.run_until_complete(play())
    for_server = scene.server.replies()
    assert all(message["jsonrpc"] == "2.0" for message in [*for_server, *scene.client.replies()])
    requests = [message["id"] for message in for_server if message.get("method") and "id" in message]
    replies = [message["id"] for message in scene.client.replies() if "result" in message]
    assert len(replies) <= len(requests)
    assert all(isinstance(message.get("params", {}), dict) for message in for_server)


async def test_each_request_is_answered_where_it_came_from() -> None:
    client, server = ClientWithChannels(), FakeTransport()
    between = Relay(client, server, passing_keeper, FakeNotices().tell)
    readers = [asyncio.create_task(between.read_client()), asyncio.create_task(between.read_server())]
    first, second, third = FakeTransport(), FakeTransport(), FakeTransport()
    client.take(msg(id=1, method="tools/call", params={"name": "echo", "_meta": {"progressToken": "a"}}), first)
    client.take(msg(id=2, method="ping"), second)
    client.take(call(4, "forget"), FakeTransport())
    await server.wait_for_sent(2)
    server.enqueue(
        msg(method="notifications/progress", params={"progressToken": "a", "progress": 1}),
        msg(id=7, method="roots/list"),
        msg(method="notifications/message", params={}),
        msg(id=2, error={"code": -32601, "message": "no"}),
        msg(id=1, result={}),
    )
    await first.wait_for_sent(2)
    # A question of the server goes to the newest request, what belongs to none to the client as a whole.
    assert [message.get("method") for message in first.replies()] == ["notifications/progress", None]
    assert [message.get("method") for message in second.replies()] == ["roots/list", None]
    assert second.error_codes == [-32601]
    assert [message["method"] for message in client.replies()] == ["notifications/message"]
    client.take(call(3, "forget"), third)
    client.take(cancelled(3), FakeTransport())
    client.end()
    server.end()
    await asyncio.wait(readers, timeout=WAIT_SECONDS)
    assert (third.withdrawn, third.sent) == (1, [])


class ClientWithChannels(FakeTransport):
    """Each message comes with a channel of its own, as over HTTP."""

    def __init__(self) -> None:
        super().__init__()
        self._channels: list[FakeTransport] = []

    def take(self, message: dict[str, Any], channel: FakeTransport) -> None:
        self._channels.append(channel)
        self.enqueue(message)

    async def receive(self) -> Received | None:
        received = await super().receive()
        return None if received is None else received._replace(channel=self._channels.pop(0))


async def passing_keeper(relay: Relay) -> Any:
    return PassingKeeper(relay)


async def test_the_number_of_late_answers_waited_for_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(peers, "_MOST_LATE", 1)
    heard: list[Any] = []
    async with a_scene() as scene:
        for _ in range(2):
            asking = asyncio.create_task(scene.relay.client.ask("elicitation/create", {}, None, heard.append))
            await scene.settled()
            asking.cancel()
            await scene.settled()
        asked = [one["id"] for one in scene.client.replies() if one.get("method") == "elicitation/create"]
        await scene.from_client(*(msg(id=one, result={"number": place}) for place, one in enumerate(asked)))
        assert heard == [{"number": 1}]
        # An answer to nothing is not passed on to the server either.
        assert scene.server.replies() == []
