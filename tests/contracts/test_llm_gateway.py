"""What the answer use case may rely on from an `LLMGateway`.

A `Leg` is one implementation with something behind it that behaves as a test needs it: each scenario gives the request
to ask with. What the real API can be made to do without a script runs on the `live` leg too.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from dataclasses import replace
from typing import Protocol

import pytest

from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway
from openai_responses_mcp.adapters.openai.retrying import RetryingGateway
from openai_responses_mcp.adapters.telemetry.otel import TracedGateway
from openai_responses_mcp.domain.errors import (
    GatewayError,
    GatewayRefused,
    KeyMissing,
    KeyUnusable,
    PreviousResponseLost,
    ResponseCancelled,
    ResponseLost,
)
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, Progress, Source
from openai_responses_mcp.domain.ports import LLMGateway
from tests.adapters.telemetry.in_memory import InMemoryTelemetry
from tests.contracts.openai_gateways import forget_proxies, maybe_listener, openai_gateway
from tests.fakes import SLOW_SECONDS, WAIT_SECONDS, FakeClock, FakeGateway, FakeLogger
from tests.stand_in.server import StandIn

REQUEST = ModelRequest(model="gpt-5.4-mini", instructions="Answer in one short sentence.", input_text="Say hello.")
IN_BACKGROUND = replace(REQUEST, background=True)

# What goes wrong, at the real API too, and its type. More of it is in the tests of the adapter.
FAILURES: dict[str, type[GatewayError | KeyUnusable]] = {
    "unknown model": GatewayRefused,
    "unknown conversation": PreviousResponseLost,
    "no key": KeyMissing,
}


class Leg(Protocol):
    wait_seconds: float

    @property
    def gateway(self) -> LLMGateway: ...

    def fails(self, failure: str) -> ModelRequest:
        """The gateway will fail in this way when it is asked this."""
        ...

    def holds(self) -> ModelRequest:
        """The gateway will take long over this."""
        ...

    def holds_in_background(self) -> ModelRequest:
        """The gateway will take long over this, in the background, until `lets_finish`."""
        ...

    def lets_finish(self) -> None: ...

    async def wait_until_asked(self) -> None: ...

    async def wait_until_closed(self) -> None:
        """Until nothing of a cancelled call is left upstream."""
        ...

    async def close(self) -> None: ...


class FakeLeg(Leg):
    wait_seconds = WAIT_SECONDS

    def __init__(self) -> None:
        self.fake = FakeGateway()
        self.fake.progress = [Progress("thinking")]

    @property
    def gateway(self) -> LLMGateway:
        return self.fake

    def fails(self, failure: str) -> ModelRequest:
        self.fake.enqueue(FAILURES[failure](failure))
        return REQUEST

    def holds(self) -> ModelRequest:
        self.fake.hold()
        return REQUEST

    def holds_in_background(self) -> ModelRequest:
        self.fake.hold()
        return IN_BACKGROUND

    def lets_finish(self) -> None:
        self.fake.release()

    async def wait_until_asked(self) -> None:
        await self.fake.wait_for_calls(1)

    async def wait_until_closed(self) -> None:
        assert self.fake.cancelled == [REQUEST]
        self.fake.release()

    async def close(self) -> None:
        pass


class RetryingLeg(FakeLeg):
    """Around a fake."""

    def __init__(self) -> None:
        super().__init__()
        self._retrying = RetryingGateway(self.fake, FakeClock(), FakeLogger(), max_retries=2, is_ending=asyncio.Event())

    @property
    def gateway(self) -> LLMGateway:
        return self._retrying


class TracedLeg(FakeLeg):
    """Around a fake, with spans that stay in memory."""

    def __init__(self) -> None:
        super().__init__()
        self._traced = TracedGateway(self.fake, InMemoryTelemetry().telemetry)

    @property
    def gateway(self) -> LLMGateway:
        return self._traced


class OpenAILeg(Leg):
    """Over HTTP to an API that fails on request."""

    wait_seconds = SLOW_SECONDS

    def __init__(self) -> None:
        self._server = StandIn()

    async def start(self) -> None:
        self._base_url = await self._server.start()
        self._gateway = openai_gateway(self._base_url)

    @property
    def gateway(self) -> LLMGateway:
        return self._gateway

    def fails(self, failure: str) -> ModelRequest:
        if failure == "no key":
            self._gateway = openai_gateway(self._base_url, api_key="")
        return _request_that_fails(failure)

    def holds(self) -> ModelRequest:
        return replace(REQUEST, input_text="[rehearse: delay=60]")

    def holds_in_background(self) -> ModelRequest:
        return replace(IN_BACKGROUND, input_text="[rehearse: queue=0.5]")

    def lets_finish(self) -> None:
        pass

    async def wait_until_asked(self) -> None:
        await self._server.wait_for_requests()

    async def wait_until_closed(self) -> None:
        await self._server.wait_for_abort()

    async def close(self) -> None:
        await self._gateway.close()
        await self._server.close()


class LiveLeg(Leg):
    """The API itself, with the key of the environment."""

    wait_seconds = 60.0

    def __init__(self) -> None:
        self._gateway = self._make(os.environ["OPENAI_API_KEY"])

    @property
    def gateway(self) -> LLMGateway:
        return self._gateway

    def fails(self, failure: str) -> ModelRequest:
        if failure == "no key":
            self._gateway = self._make("")
        return _request_that_fails(failure)

    def holds(self) -> ModelRequest:
        return replace(REQUEST, input_text="Write a very long story about a clock.")

    def holds_in_background(self) -> ModelRequest:
        return replace(IN_BACKGROUND, input_text="Write a long story about a clock.")

    def lets_finish(self) -> None:
        pass

    async def wait_until_asked(self) -> None:
        await asyncio.sleep(0)

    async def wait_until_closed(self) -> None:
        await asyncio.sleep(0)

    async def close(self) -> None:
        await self._gateway.close()

    def _make(self, api_key: str) -> OpenAIResponsesGateway:
        base_url = os.environ.get("OPENAI_BASE_URL") or "https://api.openai.com/v1"
        return openai_gateway(base_url, api_key=api_key, timeout_seconds=60)


def _request_that_fails(failure: str) -> ModelRequest:
    if failure == "unknown model":
        return replace(REQUEST, model="no-such-model")
    if failure == "unknown conversation":
        return replace(REQUEST, previous_response_id="resp_0123456789abcdef0123456789abcdef0123456789abcdef")
    return REQUEST


LEGS = [
    pytest.param(FakeLeg, id="fake"),
    pytest.param(OpenAILeg, id="openai"),
    pytest.param(RetryingLeg, id="retrying"),
    pytest.param(TracedLeg, id="traced"),
    pytest.param(LiveLeg, id="live", marks=pytest.mark.live),
]


@pytest.fixture(params=LEGS)
async def leg(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Leg]:
    make: Callable[[], Leg] = request.param
    leg = make()
    if isinstance(leg, OpenAILeg):
        forget_proxies(monkeypatch)
        await leg.start()
    yield leg
    await leg.close()


async def respond(leg: Leg, request: ModelRequest, listener: Callable[[Progress], None] | None = None) -> ModelReply:
    return await asyncio.wait_for(leg.gateway.respond(request, listener), leg.wait_seconds)


async def test_a_question_gets_one_reply(leg: Leg) -> None:
    reply = await respond(leg, REQUEST)
    assert isinstance(reply, ModelReply)
    assert reply.text.strip()
    assert reply.incomplete_reason is None
    assert reply.refusal is None
    assert all(isinstance(source, Source) for source in (*reply.cited, *reply.searched))


async def test_a_listener_hears_what_happens_and_the_reply_is_the_same(leg: Leg) -> None:
    heard: list[Progress] = []
    reply = await respond(leg, REQUEST, heard.append)
    assert reply.text.strip()
    assert heard
    assert all(progress.message for progress in heard)


@pytest.mark.parametrize("failure", FAILURES)
async def test_a_failure_has_its_own_type(leg: Leg, failure: str) -> None:
    with pytest.raises((GatewayError, KeyUnusable)) as caught:
        await respond(leg, leg.fails(failure))
    assert type(caught.value) is FAILURES[failure]
    assert str(caught.value)


async def test_a_failure_counts_its_retries_and_the_next_call_works(leg: Leg) -> None:
    with pytest.raises(GatewayRefused) as caught:
        await respond(leg, leg.fails("unknown model"))
    assert caught.value.retries == 0
    assert (await respond(leg, REQUEST)).text


async def test_a_cancelled_call_ends_at_once_and_leaves_nothing_upstream(leg: Leg) -> None:
    responding = asyncio.ensure_future(leg.gateway.respond(leg.holds(), maybe_listener(True)))
    await asyncio.wait({responding, asyncio.ensure_future(leg.wait_until_asked())}, return_when=asyncio.FIRST_COMPLETED)
    responding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(responding, leg.wait_seconds)
    await leg.wait_until_closed()
    assert (await respond(leg, REQUEST)).text


class Started:
    """A call that runs in the background, from the moment on at which its id is known."""

    def __init__(self, leg: Leg) -> None:
        self._leg = leg
        self._id: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        responding = leg.gateway.respond(leg.holds_in_background(), None, self._id.set_result)
        self.call = asyncio.ensure_future(responding)

    async def response_id(self) -> str:
        return await asyncio.wait_for(self._id, self._leg.wait_seconds)

    async def cancel(self) -> None:
        self.call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(self.call, self._leg.wait_seconds)


async def wait_until_cancelled(leg: Leg, response_id: str) -> None:
    async with asyncio.timeout(leg.wait_seconds):
        while True:
            try:
                await leg.gateway.look_up(response_id)
            except ResponseCancelled:
                return
            await asyncio.sleep(0.01)


async def test_only_a_background_request_reports_its_id_once_and_before_the_reply(leg: Leg) -> None:
    started: list[str] = []
    await asyncio.wait_for(leg.gateway.respond(REQUEST, None, started.append), leg.wait_seconds)
    assert started == []
    responding = leg.gateway.respond(IN_BACKGROUND, None, started.append)
    reply = await asyncio.wait_for(responding, leg.wait_seconds)
    assert reply.text.strip()
    assert started == [reply.response_id]


async def test_a_running_response_can_be_looked_up_and_followed_while_it_is_asked_for(leg: Leg) -> None:
    started = Started(leg)
    response_id = await started.response_id()
    assert isinstance(await leg.gateway.look_up(response_id), Progress)
    following = asyncio.ensure_future(leg.gateway.follow(response_id))
    await asyncio.sleep(0)
    leg.lets_finish()
    replies = await asyncio.wait_for(asyncio.gather(started.call, following), leg.wait_seconds)
    assert replies[0] == replies[1]
    assert await leg.gateway.look_up(response_id) == replies[0]


async def test_a_cancelled_call_cancels_its_response(leg: Leg) -> None:
    started = Started(leg)
    response_id = await started.response_id()
    await started.cancel()
    await wait_until_cancelled(leg, response_id)
    leg.lets_finish()
    with pytest.raises(ResponseCancelled):
        await leg.gateway.follow(response_id)


async def test_a_response_that_was_let_go_is_not_cancelled_with_its_call(leg: Leg) -> None:
    started = Started(leg)
    response_id = await started.response_id()
    leg.gateway.let_go(response_id)
    await started.cancel()
    leg.lets_finish()
    reply = await asyncio.wait_for(leg.gateway.follow(response_id), leg.wait_seconds)
    assert reply.text.strip()


async def test_a_follower_that_stops_does_not_stop_the_response(leg: Leg) -> None:
    started = Started(leg)
    response_id = await started.response_id()
    following = asyncio.ensure_future(leg.gateway.follow(response_id))
    await asyncio.sleep(0)
    following.cancel()
    with pytest.raises(asyncio.CancelledError):
        await following
    leg.lets_finish()
    assert (await asyncio.wait_for(started.call, leg.wait_seconds)).text.strip()


async def test_a_response_can_be_cancelled_by_its_id_and_again(leg: Leg) -> None:
    started = Started(leg)
    response_id = await started.response_id()
    await leg.gateway.cancel(response_id)
    await leg.gateway.cancel(response_id)
    leg.lets_finish()
    with pytest.raises(ResponseCancelled):
        await asyncio.wait_for(started.call, leg.wait_seconds)


async def test_a_finished_response_stays_what_it_is_when_it_is_cancelled(leg: Leg) -> None:
    reply = await respond(leg, IN_BACKGROUND)
    assert reply.response_id is not None
    await leg.gateway.cancel(reply.response_id)
    assert await leg.gateway.look_up(reply.response_id) == reply


async def test_an_id_that_the_api_does_not_have_is_lost(leg: Leg) -> None:
    unknown = "resp_0123456789abcdef0123456789abcdef0123456789abcdef"
    for attempt in (leg.gateway.look_up(unknown), leg.gateway.follow(unknown), leg.gateway.cancel(unknown)):
        with pytest.raises(ResponseLost):
            await attempt
