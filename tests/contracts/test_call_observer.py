"""What the server may rely on from a `CallObserver`."""

import asyncio
from typing import Protocol

import pytest

from openai_responses_mcp.domain.models import CallFailure, ObservedCall
from openai_responses_mcp.domain.ports import CallObserver
from tests.adapters.telemetry.in_memory import InMemoryTelemetry
from tests.fakes import WAIT_SECONDS, FakeCallObserver


class Leg(Protocol):
    @property
    def observer(self) -> CallObserver: ...

    def seen(self) -> list[tuple[str, str | None]]:
        """Tool and kind of failure of each call that is over."""
        ...


class FakeLeg(Leg):
    def __init__(self) -> None:
        self._fake = FakeCallObserver()

    @property
    def observer(self) -> CallObserver:
        return self._fake

    def seen(self) -> list[tuple[str, str | None]]:
        return [(call.tool, self._kind(failure)) for call, failure in self._fake.ended]

    def _kind(self, failure: CallFailure | BaseException | None) -> str | None:
        if isinstance(failure, asyncio.CancelledError):
            return "cancelled"
        if isinstance(failure, BaseException):
            return type(failure).__name__
        return failure.kind if failure else None


class OtelLeg(Leg):
    def __init__(self) -> None:
        self._memory = InMemoryTelemetry()

    @property
    def observer(self) -> CallObserver:
        return self._memory.telemetry

    def seen(self) -> list[tuple[str, str | None]]:
        attributes = [span.attributes or {} for span in self._memory.spans()]
        kinds = [one.get("error.type") for one in attributes]
        tools = [str(one["gen_ai.tool.name"]) for one in attributes]
        return [(tool, None if kind is None else str(kind)) for tool, kind in zip(tools, kinds, strict=True)]


@pytest.fixture(params=[pytest.param(FakeLeg, id="fake"), pytest.param(OtelLeg, id="otel")])
def leg(request: pytest.FixtureRequest) -> Leg:
    made: Leg = request.param()
    return made


def call(tool: str = "answer", **trace: str) -> ObservedCall:
    return ObservedCall(tool, "id", "2026-07-28", trace)


def test_a_call_is_seen_when_it_is_over(leg: Leg) -> None:
    with leg.observer.observed(call()):
        assert leg.seen() == []
    assert leg.seen() == [("answer", None)]


@pytest.mark.parametrize("failure", [CallFailure("tool_error"), CallFailure("-32001", "answer failed", -32001)])
def test_a_failure_that_is_answered_is_seen(leg: Leg, failure: CallFailure) -> None:
    with leg.observer.observed(call()) as failed:
        failed(failure)
    assert leg.seen() == [("answer", failure.kind)]


@pytest.mark.parametrize(("error", "kind"), [(ValueError("x"), "ValueError"), (asyncio.CancelledError(), "cancelled")])
def test_an_exception_is_observed_and_passes_through(leg: Leg, error: BaseException, kind: str) -> None:
    with pytest.raises(type(error)) as raised, leg.observer.observed(call()):
        raise error
    assert raised.value is error
    assert leg.seen() == [("answer", kind)]


async def test_calls_at_the_same_time_are_kept_apart(leg: Leg) -> None:
    first_goes_on = asyncio.Event()

    async def first() -> None:
        with leg.observer.observed(call("answer")) as failed:
            await first_goes_on.wait()
            failed(CallFailure("tool_error"))

    async def second() -> None:
        with leg.observer.observed(call("answer_quick")):
            first_goes_on.set()

    await asyncio.wait_for(asyncio.gather(first(), second()), WAIT_SECONDS)
    assert leg.seen() == [("answer_quick", None), ("answer", "tool_error")]


def test_a_trace_may_be_any_text(leg: Leg) -> None:
    texts = ["", "00-0-0-0", "\x00", "日本語", "\ud800", "x" * 100_000]
    for text in texts:
        with leg.observer.observed(call(traceparent=text, tracestate=text)):
            pass
    assert leg.seen() == [("answer", None)] * len(texts)
