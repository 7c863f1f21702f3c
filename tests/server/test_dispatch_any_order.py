"""Whatever arrives in whatever order: every request gets exactly one reply, a cancelled one none."""

import asyncio
import json
from collections import Counter
from collections.abc import Callable
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from openai_responses_mcp.domain.errors import GatewayTimeout
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, ProgressListener, StartListener
from tests.fakes import FakeGateway
from tests.server.wired import CAPABILITIES, ENVELOPE, Wired, cancel, request, tool_call

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=10),
    lambda children: st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=6), children, max_size=3),
    max_leaves=8,
)
IDS = st.one_of(st.integers(), st.text(max_size=5))
NAMES = ["initialize", "ping", "tools/list", "tools/call", "server/discover", "tasks/get", "tasks/cancel", "nope"]
METHODS = st.sampled_from(NAMES) | st.text(max_size=9)
TOOLS = st.sampled_from(["answer", "answer_detailed", "iris", "answer_result", "nope"]) | JSON
WITH_TASKS = {**ENVELOPE, CAPABILITIES: {"extensions": {"io.modelcontextprotocol/tasks": {}}}}
PARAMS = st.fixed_dictionaries(
    {},
    optional={
        "name": TOOLS,
        "arguments": st.fixed_dictionaries(
            {}, optional={"query": JSON, "response_id": JSON, "input": JSON, "max_results": JSON}
        )
        | JSON,
        "taskId": JSON,
        "_meta": st.sampled_from([ENVELOPE, WITH_TASKS]) | JSON,
    },
)
REQUEST_LIKE = st.fixed_dictionaries(
    {}, optional={"jsonrpc": st.just("2.0") | JSON, "id": IDS | JSON, "method": METHODS | JSON, "params": PARAMS | JSON}
)


def replies_to(body: bytes) -> list[Any]:
    async def ask() -> list[Any]:
        wired = Wired(hand_over=5)
        wired.handle_body(body)
        return await wired.drained()

    return asyncio.run(ask())


@given(st.binary(max_size=100) | (JSON | REQUEST_LIKE).map(lambda message: json.dumps(message).encode()))
def test_anything_at_all_gets_at_most_one_reply(body: bytes) -> None:
    replies = replies_to(body)
    assert len(replies) <= 1
    assert all(("result" in reply) != ("error" in reply) for reply in replies)


@given(IDS, METHODS, PARAMS | st.none())
def test_a_well_formed_request_gets_exactly_one_reply_with_its_id(request_id: Any, method: str, params: Any) -> None:
    (reply,) = replies_to(json.dumps(request(request_id, method, params)).encode())
    assert reply["id"] == request_id
    assert type(reply["id"]) is type(request_id)


class PatientGateway(FakeGateway):
    """Answers each question only when `complete` is called with its number."""

    def __init__(self) -> None:
        super().__init__()
        self._waiting: dict[str, asyncio.Future[ModelReply]] = {}

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        number = request.input_text.split("\n")[0]
        self._waiting[number] = asyncio.get_running_loop().create_future()
        return await self._waiting[number]

    def complete(self, number: str, *, fails: bool) -> None:
        waiting = self._waiting[number]
        if fails:
            waiting.set_exception(GatewayTimeout("too slow"))
        else:
            waiting.set_result(ModelReply(text=f"answer {number}"))


class CallsInAnyOrder(RuleBasedStateMachine):
    ids = st.sampled_from([1, 2, 3, "1", "2"])

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.gateway = PatientGateway()
        self.wired = Wired(gateway=self.gateway)
        self.started = 0
        self.in_flight: dict[int | str, str] = {}
        self.expected: Counter[str] = Counter()

    def teardown(self) -> None:
        try:
            for call_id in list(self.in_flight):
                self.complete(call_id, fails=False)
            self.every_request_has_its_one_reply()
        finally:
            self.wired.dispatcher.abort()
            self.loop.run_until_complete(self.wired.drained())
            self.loop.close()

    def on_the_loop(self, *steps: Callable[[], None]) -> None:
        """Take the steps without a pause between them, and let what they set off come to rest."""

        async def taken() -> None:
            for step in steps:
                step()
            for _ in range(10):
                await asyncio.sleep(0)

        self.loop.run_until_complete(taken())

    def handle(self, message: dict[str, Any]) -> None:
        self.on_the_loop(lambda: self.wired.handle(message))

    @rule(call_id=ids)
    def call(self, call_id: int | str) -> None:
        self.started += 1
        self.handle(tool_call(call_id, str(self.started)))
        if call_id in self.in_flight:
            self.expected["in flight"] += 1
        else:
            self.in_flight[call_id] = str(self.started)

    @rule(call_id=ids)
    def ping(self, call_id: int | str) -> None:
        self.handle(request(call_id, "ping"))
        self.expected["in flight" if call_id in self.in_flight else "pong"] += 1

    @rule(call_id=ids, fails=st.booleans())
    def complete(self, call_id: int | str, fails: bool) -> None:
        if call_id in self.in_flight:
            number = self.in_flight.pop(call_id)
            self.expected["failure" if fails else f"answer {number}"] += 1
            self.on_the_loop(lambda: self.gateway.complete(number, fails=fails))

    @rule(call_id=ids)
    def cancel(self, call_id: int | str) -> None:
        self.in_flight.pop(call_id, None)
        self.handle(cancel(call_id))

    @rule(call_id=ids)
    def complete_and_cancel_in_one_breath(self, call_id: int | str) -> None:
        """The cancellation is handled before the call can answer, so it wins."""
        if call_id in self.in_flight:
            number = self.in_flight.pop(call_id)
            self.on_the_loop(
                lambda: self.gateway.complete(number, fails=False), lambda: self.wired.handle(cancel(call_id))
            )

    @invariant()
    def every_request_has_its_one_reply(self) -> None:
        assert Counter(map(kind_of, self.wired.transport.replies())) == self.expected


def kind_of(reply: Any) -> str:
    """The kind of error, or the answer."""
    if "error" in reply:
        return {-32600: "in flight", -32001: "failure"}[reply["error"]["code"]]
    return str(reply["result"].get("structuredContent", {"answer": "pong"})["answer"])


CallsInAnyOrder.TestCase.settings = settings(stateful_step_count=30)
TestCallsInAnyOrder = CallsInAnyOrder.TestCase
