"""Every way the API behind us can fail, over real HTTP.

The rules for every cell: one failure of ours that says what to do (or the answer, once), as many attempts as are due and
no more, within the time of a call, and the next good call works.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from typing import NamedTuple

import pytest

from openai_responses_mcp.adapters.clocks import TokyoClock
from openai_responses_mcp.adapters.openai.gateway import OpenAIResponsesGateway
from openai_responses_mcp.adapters.openai.retrying import RetryingGateway
from openai_responses_mcp.domain.errors import (
    GatewayBroken,
    GatewayError,
    GatewayGarbled,
    GatewayOverloaded,
    GatewayRefused,
    GatewayTimeout,
    GatewayUnreachable,
    KeyUnusable,
    PreviousResponseLost,
)
from openai_responses_mcp.domain.models import ModelReply, ModelRequest
from openai_responses_mcp.domain.ports import WallClock
from tests.contracts.openai_gateways import forget_proxies, openai_gateway
from tests.fakes import SLOW_SECONDS, FakeClock, FakeLogger
from tests.stand_in.api import FaultyApi
from tests.stand_in.http_server import HttpServer
from tests.stand_in.http_wire import RecordedRequest, Reply
from tests.stand_in.server import StandIn

MAX_RETRIES = 2
PATIENCE_SECONDS = SLOW_SECONDS
LITTLE_PATIENCE_SECONDS = 1.0
LONGEST_JITTER_SECONDS = 8.0
KEY = "made-up-key-0123456789"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    forget_proxies(monkeypatch)


class HastyClock(FakeClock):
    """Remembers how long it should have slept, and does not."""

    async def sleep(self, seconds: float) -> None:
        self.sleeps.append(seconds)
        await asyncio.sleep(0)


class Asked(NamedTuple):
    """What came of one question: the reply or our failure, the attempts it took and the waits between them."""

    outcome: ModelReply | GatewayError | KeyUnusable
    attempts: int
    waits: list[float]

    @property
    def failure(self) -> GatewayError | KeyUnusable:
        assert isinstance(self.outcome, GatewayError | KeyUnusable), "no failure, but an answer"
        return self.outcome


def question(text: str) -> ModelRequest:
    return ModelRequest(model="gpt-5.2", instructions="the policy", input_text=text)


def gateways(
    base_url: str,
    clock: WallClock,
    *,
    key: str = KEY,
    patience_seconds: float = PATIENCE_SECONDS,
) -> tuple[RetryingGateway, OpenAIResponsesGateway]:
    gateway = openai_gateway(base_url, api_key=key, timeout_seconds=patience_seconds, clock=clock)
    logger, is_ending = FakeLogger(), asyncio.Event()
    return RetryingGateway(gateway, clock, logger, max_retries=MAX_RETRIES, is_ending=is_ending), gateway


@asynccontextmanager
async def stand_in(server: HttpServer) -> AsyncIterator[str]:
    try:
        yield await server.start()
    finally:
        await server.close()


async def ask(base_url: str, request: ModelRequest, server: HttpServer, *, key: str = KEY) -> Asked:
    """The outcome of one question; any exception but ours fails the test, and so does a call that does not end."""
    clock = HastyClock()
    is_slow = any(fault in request.input_text for fault in ("drip", "never"))
    patience_seconds = LITTLE_PATIENCE_SECONDS if is_slow else PATIENCE_SECONDS
    retrying, gateway = gateways(base_url, clock, key=key, patience_seconds=patience_seconds)
    async with asyncio.timeout(2 * SLOW_SECONDS):
        try:
            outcome: ModelReply | GatewayError | KeyUnusable = await retrying.respond(request)
        except (GatewayError, KeyUnusable) as exc:
            outcome = exc
        attempts = server.received
        if key == KEY and server.received:
            good = await retrying.respond(question("Why?"))
            assert good.text
    await gateway.close()
    return Asked(outcome, attempts, clock.sleeps)


async def ask_stand_in(text: str) -> Asked:
    server = StandIn()
    async with stand_in(server) as base_url:
        return await ask(base_url, question(text), server)


# 24: trouble that passes, and when the API wants to be asked again

AT_ONCE, NEVER = [0.0] * MAX_RETRIES, list[float]()
A_DATE = format_datetime(FakeClock().now() + timedelta(seconds=30))


@pytest.mark.parametrize(
    ("status", "retry_after", "due"),
    [
        (429, "", None),
        (429, "0", AT_ONCE),
        (429, A_DATE, [30.0] * MAX_RETRIES),
        (429, "86400", NEVER),
        (429, "soon, please", None),
        # How a wait is read does not depend on the status.
        (500, "", None),
        (502, "0.1", [0.1] * MAX_RETRIES),
        (503, "", None),
        (529, "61", NEVER),
    ],
)
async def test_trouble_is_tried_again_within_bounds(status: int, retry_after: str, due: list[float] | None) -> None:
    """`due` is None where the waits have jitter."""
    directive = f"; retry_after={retry_after}" if retry_after else ""
    asked = await ask_stand_in(f"Why? [rehearse: status={status}{directive}]")
    assert isinstance(asked.failure, GatewayOverloaded)
    assert str(status) in str(asked.failure)
    if due is None:
        assert asked.attempts == 1 + MAX_RETRIES
        assert all(0 <= seconds <= LONGEST_JITTER_SECONDS for seconds in asked.waits)
    else:
        assert asked.waits == due
        assert asked.attempts == 1 + len(due)
    assert asked.failure.retries == asked.attempts - 1
    assert str(asked.failure).startswith("Ask again in ") == (due == NEVER)


def unused_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@pytest.mark.parametrize("address", ["refused", "name not found", "no TLS"])
async def test_a_connection_that_cannot_be_opened_is_tried_again(address: str) -> None:
    server = StandIn()
    async with stand_in(server) as base_url:
        base_urls = {
            "refused": f"http://127.0.0.1:{unused_port()}/v1",
            "name not found": "http://no-such-host.invalid/v1",
            "no TLS": base_url.replace("http://", "https://"),
        }
        asked = await ask(base_urls[address], question("Why?"), server)
    assert isinstance(asked.failure, GatewayUnreachable)
    assert asked.failure.retries == len(asked.waits) == MAX_RETRIES
    assert "openai.base_url" in str(asked.failure)


@pytest.mark.parametrize("drop", ["before", "mid", "reset"])
async def test_a_connection_that_breaks_later_is_not_tried_again(drop: str) -> None:
    asked = await ask_stand_in(f"Why? [rehearse: drop={drop}]")
    assert isinstance(asked.failure, GatewayBroken)
    assert (asked.attempts, asked.waits) == (1, [])
    assert "Ask again" in str(asked.failure)


# 25: a good status with a body that cannot be read

BODIES: dict[str, type[GatewayError] | None] = {
    "truncated": GatewayBroken,
    "empty": GatewayGarbled,
    "null": GatewayGarbled,
    "list": GatewayGarbled,
    "html": GatewayGarbled,
    "bad-utf8": GatewayGarbled,
    "huge": GatewayGarbled,
    "drip": GatewayTimeout,
    "wrong-usage": None,
}


class StreamlessApi(FaultyApi):
    """Answers with a body even where a stream was asked for, as a gateway that cannot stream would."""

    async def answer(self, request: RecordedRequest) -> Reply:
        if b"body=" in request.body:
            body = {name: value for name, value in request.json.items() if name != "stream"}
            request = replace(request, body=json.dumps(body).encode())
        return await super().answer(request)


@pytest.mark.parametrize("body", BODIES)
async def test_a_body_that_is_no_response_is_one_failure(body: str) -> None:
    server = HttpServer(StreamlessApi().answer)
    async with stand_in(server) as base_url:
        asked = await ask(base_url, question(f"Why? [rehearse: body={body}]"), server)
    assert (asked.attempts, asked.waits) == (1, [])
    assert type(asked.outcome) is (BODIES[body] or ModelReply)
    assert isinstance(asked.outcome, ModelReply) or "sk again" in str(asked.outcome)


# 26: streams

STREAMS: dict[str, type[GatewayError] | None] = {
    "cut": GatewayBroken,
    "cut-in-event": GatewayBroken,
    "bad-json": GatewayGarbled,
    "bad-utf8": GatewayGarbled,
    "never": GatewayTimeout,
    "drip": GatewayTimeout,
    "error-event": GatewayBroken,
    "non-object": GatewayGarbled,
    "done-without-completed": GatewayBroken,
    "empty": GatewayBroken,
    "twice": None,
    "garbage-event": None,
}


@pytest.mark.parametrize("stream", STREAMS)
async def test_a_stream_is_the_whole_answer_once_or_one_failure(stream: str) -> None:
    whole = await ask_stand_in("Why?")
    asked = await ask_stand_in(f"Why? [rehearse: stream={stream}]")
    assert (asked.attempts, asked.waits) == (1, [])
    expected = STREAMS[stream]
    if expected is None:
        assert isinstance(asked.outcome, ModelReply)
        assert isinstance(whole.outcome, ModelReply)
        assert asked.outcome.text == whole.outcome.text
    else:
        assert type(asked.failure) is expected
        assert "sk again" in str(asked.failure)


# 27: what asking again would not mend

REFUSALS = {
    "401": ("status=401", GatewayRefused, "check that it is valid"),
    "404 model": ("status=404; code=model_not_found", GatewayRefused, "check model_profiles"),
    "400 previous": ("status=400; code=previous_response_not_found", PreviousResponseLost, "without previous_response"),
    "no quota": ("status=429; code=insufficient_quota", GatewayRefused, "check its plan and billing"),
}


@pytest.mark.parametrize("refusal", REFUSALS)
async def test_a_refusal_is_one_failure_that_says_what_to_do(refusal: str) -> None:
    directive, expected, advice = REFUSALS[refusal]
    asked = await ask_stand_in(f"Why? [rehearse: {directive}; retry_after=0]")
    assert type(asked.failure) is expected
    assert advice in str(asked.failure)
    assert (asked.attempts, asked.waits) == (1, [])


# 28: redirects, and keys that no header carries


async def test_a_redirect_is_refused_and_the_question_does_not_leave_with_it() -> None:
    elsewhere = StandIn()
    async with stand_in(elsewhere) as elsewhere_url:
        text = f"Why? [rehearse: redirect={elsewhere_url}/responses]"
        asked = await ask_stand_in(text)
    assert type(asked.failure) is GatewayRefused
    assert "check openai.base_url" in str(asked.failure)
    assert asked.attempts == 1
    assert elsewhere.received == 0


UNSENDABLE = {
    "newline": KEY[:10] + "\n" + KEY[10:],
    "letter": KEY + "é",
}


@pytest.mark.parametrize("key", UNSENDABLE.values(), ids=UNSENDABLE)
async def test_a_key_that_no_header_carries_is_a_failure_without_an_attempt(key: str) -> None:
    server = StandIn()
    async with stand_in(server) as base_url:
        asked = await ask(base_url, question("Why?"), server, key=key)
    assert isinstance(asked.failure, KeyUnusable)
    assert "THE_KEY" in str(asked.failure)
    assert asked.attempts == 0
    assert not _pieces_of(key) & set(str(asked.failure).split())


def _pieces_of(key: str) -> set[str]:
    return {key, *key.split(), KEY[:10], KEY[10:]}


# And whichever it is, within the time of a call by the real clock


async def test_every_fault_at_once_leaves_none_waiting() -> None:
    faults = [
        *(f"body={body}" for body in BODIES if body != "huge"),
        *(f"stream={stream}" for stream in STREAMS),
        *(f"drop={drop}" for drop in ("before", "mid", "reset")),
        *(directive for directive, _, _ in REFUSALS.values()),
        "delay=60",
    ]
    server = StandIn()
    async with stand_in(server) as base_url, asyncio.timeout(SLOW_SECONDS):
        retrying, gateway = gateways(base_url, TokyoClock(), patience_seconds=1.0)
        calls = [retrying.respond(question(f"Why? [rehearse: {fault}]")) for fault in faults]
        outcomes = await asyncio.gather(*calls, return_exceptions=True)
        await gateway.close()
    assert [o for o in outcomes if not isinstance(o, ModelReply | GatewayError)] == []
    assert server.received == len(calls)
