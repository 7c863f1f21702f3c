import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from openai_responses_mcp.domain.cancellation import Call, CallId, CallsInFlight, has_happened_within
from openai_responses_mcp.domain.errors import CallInFlight
from tests.fakes import FakeClock, FakeLogger


def nothing() -> None:
    pass


def test_an_id_in_flight_cannot_be_taken_again() -> None:
    calls = CallsInFlight(FakeLogger())
    call = calls.start("a", nothing)
    with pytest.raises(CallInFlight, match=r"^A request with the id 'a' is already in flight$"):
        calls.start("a", nothing)
    assert calls.finish(call)


def test_a_cancelled_call_is_aborted_and_owns_no_reply() -> None:
    aborted: list[str] = []
    logger = FakeLogger()
    calls = CallsInFlight(logger)
    call = calls.start(1, lambda: aborted.append("first"))
    calls.cancel(1, "no longer needed")
    assert aborted == ["first"]
    assert not calls.finish(call)
    assert logger.facts("cancelled") == [{"requestId": 1, "reason": "no longer needed"}]


def test_all_calls_can_be_cancelled_at_once() -> None:
    aborted: list[CallId] = []
    logger = FakeLogger()
    calls = CallsInFlight(logger)
    started = [calls.start(1, lambda: aborted.append(1)), calls.start("b", lambda: aborted.append("b"))]
    calls.cancel_all("the server is stopping")
    assert aborted == [1, "b"]
    assert not any(calls.finish(call) for call in started)
    assert {facts["reason"] for facts in logger.facts("cancelled")} == {"the server is stopping"}


class CallsInAnyOrder(RuleBasedStateMachine):
    """Starts, finishes and cancels in any order: of a reply and a cancellation exactly one comes first."""

    ids = st.sampled_from([0, 1, 2, "1", "2"])

    def __init__(self) -> None:
        super().__init__()
        self.calls = CallsInFlight(FakeLogger(is_debugging=False))
        self.in_flight: dict[CallId, Call] = {}
        self.over: list[Call] = []
        self.aborts: list[CallId] = []
        self.cancelled: list[CallId] = []

    @rule(call_id=ids)
    def start(self, call_id: CallId) -> None:
        if call_id in self.in_flight:
            with pytest.raises(CallInFlight):
                self.calls.start(call_id, nothing)
        else:
            self.in_flight[call_id] = self.calls.start(call_id, lambda: self.aborts.append(call_id))

    @rule(call_id=ids)
    def finish(self, call_id: CallId) -> None:
        call = self.in_flight.pop(call_id, None)
        if call is not None:
            assert self.calls.finish(call)
            self.over.append(call)

    @rule(call_id=ids)
    def cancel(self, call_id: CallId) -> None:
        call = self.in_flight.pop(call_id, None)
        self.calls.cancel(call_id)
        if call is not None:
            self.cancelled.append(call_id)
            self.over.append(call)

    @rule(data=st.data())
    def finish_too_late(self, data: st.DataObject) -> None:
        if self.over:
            assert not self.calls.finish(data.draw(st.sampled_from(self.over)))

    @invariant()
    def exactly_the_open_calls_are_in_flight(self) -> None:
        assert len(self.calls) == len(self.in_flight)
        assert all(call in self.calls for call in self.in_flight.values())
        assert not any(call in self.calls for call in self.over)
        assert self.aborts == self.cancelled


CallsInAnyOrder.TestCase.settings = settings(stateful_step_count=30)
TestCallsInAnyOrder = CallsInAnyOrder.TestCase


async def nothing_is_left_running() -> None:
    await asyncio.sleep(0)
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_an_event_ends_the_wait() -> None:
    clock, event = FakeClock(), asyncio.Event()
    waiting = asyncio.create_task(has_happened_within(event, 60, clock))
    await asyncio.sleep(0)
    event.set()
    async with asyncio.timeout(5):
        assert await waiting
    await nothing_is_left_running()


async def test_the_time_ends_the_wait() -> None:
    clock, event = FakeClock(), asyncio.Event()
    waiting = asyncio.create_task(has_happened_within(event, 60, clock))
    async with asyncio.timeout(5):
        await clock.wait_for_sleepers(1)
        await clock.advance(60)
        assert not await waiting
    await nothing_is_left_running()


async def test_what_has_happened_needs_no_wait() -> None:
    event = asyncio.Event()
    event.set()
    async with asyncio.timeout(5):
        assert await has_happened_within(event, 60, FakeClock())
