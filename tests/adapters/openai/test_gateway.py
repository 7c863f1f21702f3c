"""One attempt over real HTTP: what is sent, how long it may take, how many at once. Faults have a file of their own."""

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any
from urllib.parse import urlsplit

import pytest

from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway
from openai_responses_mcp.adapters.openai.wire import request_body
from openai_responses_mcp.domain.errors import GatewayRefused, GatewayTimeout, KeyUnusable
from openai_responses_mcp.domain.models import ModelReply, ModelRequest
from tests.contracts.openai_gateways import forget_proxies, openai_gateway
from tests.fakes import SLOW_SECONDS
from tests.stand_in.http_server import HttpServer
from tests.stand_in.http_wire import RecordedRequest, Reply
from tests.stand_in.server import StandIn

KEY = "sk-made-up-0123456789"

Make = Callable[..., OpenAIResponsesGateway]

in_one_piece_and_streamed = pytest.mark.parametrize("streams", [False, True], ids=["in one piece", "streamed"])


@pytest.fixture
async def server(monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[StandIn]:
    forget_proxies(monkeypatch)
    server = StandIn(keep_requests=100)
    yield server
    await server.close()


@pytest.fixture
async def base_url(server: StandIn) -> str:
    return await server.start()


@pytest.fixture
async def make(base_url: str) -> AsyncIterator[Make]:
    made: list[OpenAIResponsesGateway] = []

    def make(base_url: str = base_url, **options: Any) -> OpenAIResponsesGateway:
        made.append(openai_gateway(base_url, **options))
        return made[-1]

    yield make
    for gateway in made:
        await gateway.close()


def asking(question: str = "Hello", **fields: Any) -> ModelRequest:
    return ModelRequest(model="gpt-5", instructions="Be brief.", input_text=question, **fields)


def call(gateway: OpenAIResponsesGateway, question: str) -> "asyncio.Task[ModelReply]":
    return asyncio.ensure_future(gateway.respond(asking(question)))


async def respond(gateway: OpenAIResponsesGateway, question: str = "Hello") -> ModelReply:
    return await asyncio.wait_for(call(gateway, question), SLOW_SECONDS)


async def test_the_request_is_sent_as_the_spec_has_it(make: Make, server: StandIn) -> None:
    await respond(make(api_key=KEY))
    (request,) = server.requests
    assert (request.method, request.path) == ("POST", "/v1/responses")
    assert request.headers["authorization"] == f"Bearer {KEY}"
    assert request.json == request_body(asking())
    assert request.json["stream"] is True


@in_one_piece_and_streamed
async def test_an_answer_in_one_piece_and_a_streamed_one_give_the_same_reply(make: Make, streams: bool) -> None:
    question = "The latest? [rehearse: search=yes; text=It rains.; citations=1; sources=dated]"
    reply = await respond(make(streams=streams), question)
    assert (reply.text, reply.search_count, reply.model) == ("It rains.", 1, "gpt-5")
    assert [(source.name, source.date) for source in reply.cited] == [("https://example.com/rehearsal/1", "2026-01-01")]
    assert [source.date for source in reply.searched] == ["2026-01-01", "2026-01-02", "2026-01-03"]
    assert reply.usage is not None
    assert reply.response_id is not None


async def test_without_a_key_no_attempt_is_made(make: Make, server: StandIn) -> None:
    with pytest.raises(KeyUnusable, match=r"^Missing API key: set THE_KEY$"):
        await respond(make(api_key="\t \r\n"))
    assert server.received == 0


async def test_a_cancel_in_the_middle_of_a_stream_closes_the_connection(make: Make, server: StandIn) -> None:
    began = asyncio.Event()
    request = asking("[rehearse: stream=never]")
    responding = asyncio.ensure_future(make().respond(request, lambda _: began.set()))
    await asyncio.wait_for(began.wait(), SLOW_SECONDS)
    responding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(responding, SLOW_SECONDS)
    await server.wait_for_abort()


@pytest.mark.parametrize(
    ("keys", "streams"),
    [("delay=60", True), ("body=drip", False), ("stream=drip", True)],
)
async def test_an_attempt_ends_with_its_time_however_busy_the_other_side_seems(
    make: Make, server: StandIn, keys: str, streams: bool
) -> None:
    gateway = make(timeout_seconds=2, streams=streams)
    await asyncio.to_thread(gateway.prepare)
    with pytest.raises(GatewayTimeout, match=r"within 2 s.*raise request\.timeout_ms"):
        await respond(gateway, f"[rehearse: {keys}]")
    await server.wait_for_abort()
    assert server.received == 1


async def test_no_more_calls_are_upstream_at_once_than_allowed(make: Make, server: StandIn) -> None:
    gateway = make(max_concurrency=2)
    calls = [call(gateway, "[rehearse: delay=60]") for _ in range(3)]
    await server.wait_for_requests(2)
    await asyncio.wait(calls, timeout=0.05)
    assert server.received == 2
    calls[0].cancel()
    await server.wait_for_requests(3)
    for responding in calls:
        responding.cancel()
    await asyncio.wait(calls, timeout=SLOW_SECONDS)


async def test_waiting_for_a_place_is_outside_the_time_of_an_attempt(make: Make, server: StandIn) -> None:
    gateway = make(max_concurrency=1, timeout_seconds=1.0)
    await respond(gateway)
    late, patient = call(gateway, "[rehearse: delay=60]"), call(gateway, "Hello")
    with pytest.raises(GatewayTimeout):
        await asyncio.wait_for(late, SLOW_SECONDS)
    assert (await asyncio.wait_for(patient, SLOW_SECONDS)).text


async def test_waiting_for_a_place_can_be_cancelled_and_gives_the_place_to_the_next(
    make: Make, server: StandIn
) -> None:
    gateway = make(max_concurrency=1)
    first, second, third = (call(gateway, f"[rehearse: delay={delay}]") for delay in (60, 60, 0))
    await server.wait_for_requests(1)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asyncio.wait_for(second, SLOW_SECONDS)
    first.cancel()
    assert (await asyncio.wait_for(third, SLOW_SECONDS)).text
    assert server.received == 2


async def test_connections_that_the_other_side_has_closed_meanwhile_cost_nothing(
    make: Make, server: StandIn, base_url: str
) -> None:
    gateway = make()
    await respond(gateway)
    await server.close()
    await server.start(port=urlsplit(base_url).port or 0)
    assert (await respond(gateway)).text


async def test_a_model_can_be_checked(make: Make, server: StandIn) -> None:
    await make().check_model("gpt-5")
    await make().check_model("a/b")
    assert [request.target for request in server.requests] == ["/v1/models/gpt-5", "/v1/models/a%2Fb"]
    with pytest.raises(GatewayRefused, match="check model_profiles") as caught:
        await make().check_model("no-such-model")
    assert caught.value.status == 404
    with pytest.raises(KeyUnusable):
        await make(api_key="").check_model("gpt-5")


async def test_a_request_can_be_tried_without_having_it_answered() -> None:
    received: list[RecordedRequest] = []

    async def count(request: RecordedRequest) -> Reply:
        received.append(request)
        return Reply(body=b'{"object": "response.input_tokens", "input_tokens": 11}')

    server = HttpServer(count)
    gateway = openai_gateway(await server.start(), omit=("truncation",))
    await gateway.check_request(asking(reasoning_effort="high"))
    await gateway.close()
    await server.close()
    (request,) = received
    assert (request.method, request.path) == ("POST", "/v1/responses/input_tokens")
    assert set(request.json) == {"model", "instructions", "input", "tools", "reasoning"}


async def test_a_prepared_gateway_answers_and_nothing_was_asked_before(make: Make, server: StandIn) -> None:
    gateway = make()
    await asyncio.to_thread(gateway.prepare)
    assert server.received == 0
    assert (await respond(gateway)).text


async def test_preparing_goes_past_proxies(server: StandIn, base_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", base_url)
    await asyncio.to_thread(openai_gateway("http://api.invalid/v1").prepare)
    assert server.received == 0


@pytest.mark.parametrize(
    ("base_url", "variables"),
    [
        ("http://api.invalid/v1", {"ALL_PROXY": "socks5://127.0.0.1:1"}),
        ("https://api.invalid/v1", {"SSL_CERT_FILE": "/nowhere/at/all.pem"}),
    ],
)
def test_preparing_raises_no_error_before_the_first_call(
    base_url: str, variables: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    forget_proxies(monkeypatch)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    openai_gateway(base_url).prepare()


async def test_no_header_describes_the_machine(make: Make, server: StandIn) -> None:
    await respond(make())
    await make().check_model("gpt-5")
    sent = [name for request in server.requests for name in request.headers]
    assert "authorization" in sent
    assert [name for name in sent if name.startswith("x-stainless")] == []


async def test_a_packed_reply_is_offered_and_no_cookie_is_sent_back() -> None:
    received: list[RecordedRequest] = []

    async def answer(request: RecordedRequest) -> Reply:
        received.append(request)
        return Reply(headers={"Set-Cookie": "seen=once; Path=/"}, body=b"{}")

    server = HttpServer(answer)
    gateway = openai_gateway(await server.start())
    await gateway.check_model("gpt-5")
    await gateway.check_model("gpt-5")
    await gateway.close()
    await server.close()
    assert ["gzip" in request.headers["accept-encoding"] for request in received] == [True, True]
    assert ["cookie" in request.headers for request in received] == [False, False]
