"""Calls in flight, the cancel use case, and waiting for an event or a while."""

import asyncio

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from openai_responses_mcp.domain.cancellation import Call, CallId, CallsInFlight, has_happened_within
from openai_responses_mcp.domain.errors import CallInFlight
from tests.fakes import FakeClock, FakeLogger


def nothing() -> None:
    """An abort that nobody asks about."""


def test_a_call_is_in_flight_until_it_is_finished() -> None:
    calls = CallsInFlight(FakeLogger())
    call = calls.start(1, nothing)
    assert call in calls
    assert len(calls) == 1
    assert calls.finish(call)
    assert call not in calls
    assert len(calls) == 0


def test_a_reply_has_one_owner_only() -> None:
    calls = CallsInFlight(FakeLogger())
    call = calls.start(1, nothing)
    assert [calls.finish(call), calls.finish(call)] == [True, False]


def test_an_id_in_flight_cannot_be_taken_again() -> None:
    calls = CallsInFlight(FakeLogger())
    call = calls.start("a", nothing)
    with pytest.raises(CallInFlight, match=r"^A request with the id 'a' is already in flight$"):
        calls.start("a", nothing)
    assert calls.finish(call)


def test_an_id_is_free_before_a_call_and_after_it() -> None:
    calls = CallsInFlight(FakeLogger())
    calls.require_free(1)
    call = calls.start(1, nothing)
    with pytest.raises(CallInFlight):
        calls.require_free(1)
    calls.finish(call)
    calls.require_free(1)
    assert len(calls) == 0


def test_a_number_and_the_same_digits_as_text_are_two_ids() -> None:
    calls = CallsInFlight(FakeLogger())
    number, text = calls.start(1, nothing), calls.start("1", nothing)
    calls.cancel("1")
    assert number in calls
    assert text not in calls


def test_a_cancelled_call_is_aborted_and_owns_no_reply() -> None:
    aborted: list[str] = []
    logger = FakeLogger()
    calls = CallsInFlight(logger)
    call = calls.start(1, lambda: aborted.append("first"))
    calls.cancel(1, "no longer needed")
    assert aborted == ["first"]
    assert not calls.finish(call)
    assert logger.facts("cancelled") == [{"requestId": 1, "reason": "no longer needed"}]


def test_cancelling_an_unknown_a_finished_or_a_cancelled_call_does_nothing() -> None:
    aborted: list[int] = []
    logger = FakeLogger()
    calls = CallsInFlight(logger)
    calls.cancel(1)
    finished = calls.start(2, lambda: aborted.append(2))
    calls.finish(finished)
    calls.cancel(2)
    calls.start(3, lambda: aborted.append(3))
    calls.cancel(3)
    calls.cancel(3)
    assert aborted == [3]
    assert logger.facts("cancelled") == [{"requestId": 3, "reason": None}]


def test_a_later_call_takes_over_the_id_of_a_cancelled_one() -> None:
    calls = CallsInFlight(FakeLogger())
    earlier = calls.start(1, nothing)
    calls.cancel(1)
    later = calls.start(1, nothing)
    assert earlier not in calls
    assert not calls.finish(earlier)
    assert calls.finish(later)


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
