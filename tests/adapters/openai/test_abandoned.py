"""Cancelling a call also cancels its response at the API, at whatever stage it is."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from openai_responses_mcp.domain.errors import GatewayTimeout, ResponseCancelled
from openai_responses_mcp.domain.models import ModelReply
from openai_responses_mcp.rehearsal.wire import STREAM_HEADERS, encode_event
from tests.adapters.openai.test_background import Api, answering, asking
from tests.contracts.openai_gateways import forget_proxies
from tests.fakes import SLOW_SECONDS
from tests.stand_in.http_wire import Reply
from tests.stand_in.server import StandIn


class Cancelling(Api):
    """Makes calls and cancels them."""

    server: StandIn
    has_started: asyncio.Event

    def call(self, keys: str) -> "asyncio.Task[ModelReply]":
        return asyncio.ensure_future(self.gateway.respond(asking(keys), self.hear, self._note))

    def _note(self, response_id: str) -> None:
        self.started.append(response_id)
        self.has_started.set()

    async def cancel(self, call: "asyncio.Task[ModelReply]") -> None:
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(call, 1)

    async def cancel_unanswered(self, keys: str, *, delay_seconds: float = 0.1) -> None:
        """Cancel a call whose request has reached the API but has no reply yet."""
        self.server.api.delay_seconds = delay_seconds
        call = self.call(keys)
        await self.server.wait_for_requests(1)
        await self.cancel(call)

    async def wait_until_nothing_runs(self) -> None:
        await self.gateway.settle()
        async with asyncio.timeout(SLOW_SECONDS):
            await self.server.wait_until_nothing_runs()
        assert self.server.api.background.running == []

    def cancellations(self) -> int:
        return sum(line.endswith("/cancel") for line in self.requested())


@pytest.fixture
async def api(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Cancelling]:
    forget_proxies(monkeypatch)
    server = StandIn(keep_requests=1000)
    api = Cancelling(server, await server.start())
    api.has_started = asyncio.Event()
    yield api
    await api.close()


async def until(happened: asyncio.Event) -> None:
    await asyncio.wait_for(happened.wait(), SLOW_SECONDS)


@pytest.mark.parametrize("number", [0, 5, 19])
async def test_cancelling_a_call_that_hangs_after_any_event_leaves_nothing_running(
    api: Cancelling, number: int
) -> None:
    call = api.call(f"search=yes; hang_after={number}")
    await until(api.has_started)
    await api.cancel(call)
    await api.wait_until_nothing_runs()
    assert api.requested() == ["POST /responses", f"POST /responses/{api.started[0]}/cancel"]
    with pytest.raises(ResponseCancelled):
        await api.gateway.look_up(api.started[0])


async def test_cancelling_a_call_that_waits_to_reconnect_leaves_nothing_running(api: Cancelling) -> None:
    call = api.call(f"hang_after=4; cuts=after 2; get_status={', '.join(['503'] * 5000)}")
    await until(api.has_started)
    await api.server.wait_for_requests(3)
    await api.cancel(call)
    await api.wait_until_nothing_runs()
    assert api.cancellations() == 1


async def test_a_call_cancelled_before_its_response_has_an_id_is_cancelled_once_it_has(api: Cancelling) -> None:
    await api.cancel_unanswered("hang_after=4", delay_seconds=0.3)
    assert api.requested() == ["POST /responses"]
    await api.wait_until_nothing_runs()
    assert api.cancellations() == 1
    assert api.started == []


async def test_a_cancelled_call_that_the_api_rejects_needs_no_cancel_request(api: Cancelling) -> None:
    await api.cancel_unanswered("status=401")
    assert await api.gateway.settle() is True
    assert api.requested() == ["POST /responses"]


async def test_a_cancelled_call_whose_connection_drops_may_still_run(api: Cancelling) -> None:
    await api.cancel_unanswered("drop=before")
    assert await api.gateway.settle() is False


async def test_a_cancelled_call_that_is_answered_first_needs_no_cancel_request(api: Cancelling) -> None:
    await api.cancel_unanswered("text=Well.; stream=twice")
    await api.wait_until_nothing_runs()
    assert api.cancellations() == 0


async def test_a_call_that_the_api_does_not_run_in_the_background_ends_with_its_connection() -> None:
    created = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}

    async def endless() -> AsyncIterator[bytes]:
        yield encode_event(created)
        await asyncio.get_running_loop().create_future()

    async with answering(Reply(headers=STREAM_HEADERS, body=endless())) as api:
        has_begun = asyncio.Event()
        call = asyncio.ensure_future(api.gateway.respond(asking(""), lambda progress: has_begun.set()))
        await until(has_begun)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert await api.gateway.settle() is True
        await api.server.wait_for_abort(1)
        assert api.requested() == ["POST /responses"]


async def test_a_failed_cancel_request_is_retried(api: Cancelling) -> None:
    call = api.call("hang_after=4; cancel_status=500, 429, 0, 503")
    await until(api.has_started)
    await api.cancel(call)
    await api.wait_until_nothing_runs()
    assert api.cancellations() >= 4


async def test_retries_of_a_cancel_request_are_bounded(api: Cancelling) -> None:
    call = api.call(f"hang_after=4; cancel_status={', '.join(['500'] * 50)}")
    await until(api.has_started)
    await api.cancel(call)
    await api.gateway.settle()
    assert api.cancellations() == 6


async def test_closing_returns_whether_everything_was_cancelled_at_the_api(api: Cancelling) -> None:
    for keys, is_settled in (("hang_after=4", True), ("hang_after=4; cancel_status=403", False)):
        api.has_started.clear()
        call = api.call(keys)
        await until(api.has_started)
        await api.cancel(call)
        assert await api.gateway.close() is is_settled
    assert await api.gateway.close() is None
    assert api.cancellations() == 2  # A refusal to cancel is not retried.


async def test_a_response_whose_id_comes_after_the_timeout_is_cancelled(api: Cancelling) -> None:
    api.server.api.delay_seconds = 0.3
    api.use(timeout_seconds=0.1)
    with pytest.raises(GatewayTimeout) as caught:
        await api.ask("hang_after=4")
    assert type(caught.value) is GatewayTimeout
    await api.wait_until_nothing_runs()
    assert api.cancellations() == 1
