"""What an API, or whatever stands in front of it, might send that no honest one would: found by looking and by fuzzing."""

import asyncio
import gzip
import json
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

from openai_responses_mcp.adapters.openai.replies import LONGEST_REPLY_BYTES
from openai_responses_mcp.adapters.openai.retrying import RetryingGateway
from openai_responses_mcp.domain.errors import GatewayError, GatewayGarbled, GatewayOverloaded, GatewayRefused
from openai_responses_mcp.domain.models import ModelReply, ModelRequest
from tests.contracts.openai_gateways import forget_proxies, openai_gateway
from tests.fakes import SLOW_SECONDS, FakeClock, FakeLogger
from tests.server.wired import Wired, tool_call
from tests.stand_in.http_server import HttpServer
from tests.stand_in.http_wire import RecordedRequest, Reply

REQUEST = ModelRequest(model="gpt-5.2", instructions="the policy", input_text="Why?")
PART = {"type": "output_text", "text": "because", "annotations": []}
GOOD = {"output": [{"type": "message", "content": [PART]}], "model": "gpt-5.2"}
ERROR = {"error": {"message": "not like this", "type": "invalid_request_error", "code": "no"}}

JSON = "application/json"
EVENTS = "text/event-stream"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_proxies(monkeypatch)


@asynccontextmanager
async def serving(status: int, body: bytes, kind: str = JSON, **headers: str) -> AsyncIterator[str]:
    async def answer(request: RecordedRequest) -> Reply:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return Reply(status, {"content-type": kind, **named}, body)

    handler: Callable[[RecordedRequest], Awaitable[Reply]] = answer
    server = HttpServer(handler)
    try:
        yield await server.start()
    finally:
        await server.close()


async def outcome_of(status: int, body: bytes, kind: str = JSON, **headers: str) -> ModelReply | GatewayError:
    async with serving(status, body, kind, **headers) as base_url, asyncio.timeout(SLOW_SECONDS):
        gateway = openai_gateway(base_url)
        try:
            return await gateway.respond(REQUEST)
        except GatewayError as exc:
            return exc
        finally:
            await gateway.close()


@pytest.mark.parametrize(
    ("encoding", "status", "kind"),
    [("gzip", 200, GatewayGarbled), ("deflate", 200, GatewayGarbled), ("gzip", 503, GatewayOverloaded)],
)
async def test_a_small_body_that_unfolds_into_a_huge_one_is_one_failure(
    encoding: str, status: int, kind: type[GatewayError]
) -> None:
    huge = b" " * (LONGEST_REPLY_BYTES + 1) + json.dumps(GOOD).encode()
    body = gzip.compress(huge) if encoding == "gzip" else zlib.compress(huge)
    assert len(body) < 100_000
    outcome = await outcome_of(status, body, content_encoding=encoding)
    assert type(outcome) is kind


async def test_a_stream_that_unfolds_into_a_huge_one_is_one_failure() -> None:
    body = gzip.compress((b": " + b"nothing " * 128 + b"\n") * (LONGEST_REPLY_BYTES // 1024))
    outcome = await outcome_of(200, body, EVENTS, content_encoding="gzip")
    assert isinstance(outcome, GatewayGarbled)


@pytest.mark.parametrize("charset", ["zlib", "utf-7", "no-such-charset"])
async def test_an_error_in_a_strange_charset_keeps_its_meaning(charset: str) -> None:
    outcome = await outcome_of(400, json.dumps(ERROR).encode(), f"{JSON}; charset={charset}")
    assert type(outcome) is GatewayRefused
    assert "not like this" in str(outcome)


@pytest.mark.parametrize(
    ("strange", "is_nested"),
    [("NaN", True), ("NaN", False), ('{"a": NaN}', True), ("[" * 500 + "]" * 500, True), ('"\\ud800"', True)],
    ids=lambda some: str(some)[:12],
)
async def test_strange_facts_of_an_error_in_a_stream_never_cost_the_client_its_reply(
    strange: str, is_nested: bool
) -> None:
    facts = f'"message": {strange}, "code": {strange}'
    error = f'{{"error": {{{facts}, "type": {strange}}}}}' if is_nested else f'{{"type": "error", {facts}}}'
    body = f"data: {error}\n\n".encode()
    logger = FakeLogger(is_debugging=True)
    async with serving(200, body, EVENTS) as base_url:
        gateway = openai_gateway(base_url)
        retrying = RetryingGateway(gateway, FakeClock(), logger, max_retries=1, is_ending=asyncio.Event())
        wired = Wired(gateway=retrying, is_debugging=True)
        wired.handle(tool_call(1, meta={"progressToken": 1}))
        [reply] = [message for message in await wired.drained() if "id" in message]
        await gateway.close()
    assert (reply["id"], reply["error"]["code"]) == (1, -32001)
    assert reply["error"]["data"]["message"]


@pytest.mark.parametrize("organization", ["é", "a\nb"])
async def test_a_variable_of_the_sdk_that_no_header_carries_is_a_clear_failure(
    monkeypatch: pytest.MonkeyPatch, organization: str
) -> None:
    monkeypatch.setenv("OPENAI_ORG_ID", organization)
    async with serving(200, json.dumps(GOOD).encode()) as base_url:
        gateway = openai_gateway(base_url)
        await asyncio.to_thread(gateway.prepare)
        with pytest.raises(GatewayRefused, match="environment"):
            await gateway.respond(REQUEST)
        await gateway.close()
