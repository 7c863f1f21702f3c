import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest

from openai_responses_mcp.adapters.openai.retrying import RetryingGateway
from openai_responses_mcp.domain.errors import (
    AnswerWithheld,
    GatewayBroken,
    GatewayOverloaded,
    GatewayRefused,
    GatewayTimeout,
    GatewayUnreachable,
)
from openai_responses_mcp.domain.models import ModelReply, ModelRequest, Progress, ProgressListener, StartListener
from tests.fakes import WAIT_SECONDS, FakeClock, FakeGateway, FakeLogger

REQUEST = ModelRequest(model="gpt-5.2", instructions="", input_text="Why?")
REPLY = ModelReply(text="Because.")

# The first waits may take this long at most, and no later one takes longer than the last of these.
LONGEST_WAITS = [0.5, 1.0, 2.0, 4.0, 8.0, 8.0, 8.0, 8.0, 8.0, 8.0]


def busy(retry_after_seconds: float | None = 0.0) -> GatewayOverloaded:
    """Worth repeating, and at once unless the test is about waiting."""
    return GatewayOverloaded("busy", status=429, retry_after_seconds=retry_after_seconds)


class Attempts:
    """A retrying gateway around a fake one, on a clock that stands still."""

    def __init__(self, *, max_retries: int = 3) -> None:
        self.fake = FakeGateway()
        self.clock = FakeClock()
        self.logger = FakeLogger()
        self.is_ending = asyncio.Event()
        self.progress: list[Progress] = []
        self.gateway = RetryingGateway(
            self.fake, self.clock, self.logger, max_retries=max_retries, is_ending=self.is_ending
        )

    async def respond(self) -> ModelReply:
        return await asyncio.wait_for(self.gateway.respond(REQUEST, self.progress.append), WAIT_SECONDS)

    async def respond_through_all_waits(self) -> ModelReply:
        responding = asyncio.ensure_future(self.respond())
        while not responding.done():
            waiting = asyncio.ensure_future(self.clock.wait_for_sleepers())
            await asyncio.wait({responding, waiting}, return_when=asyncio.FIRST_COMPLETED)
            waiting.cancel()
            await self.clock.advance(60)
        return responding.result()


@pytest.fixture
async def waiting() -> AsyncIterator[tuple[Attempts, "asyncio.Future[ModelReply]"]]:
    """A call that is waiting to ask for the second time."""
    attempts = Attempts()
    attempts.fake.enqueue(busy(7.0), REPLY)
    responding = asyncio.ensure_future(attempts.respond())
    await attempts.clock.wait_for_sleepers()
    yield attempts, responding
    responding.cancel()


@pytest.mark.parametrize("max_retries", [0, 10])
async def test_there_are_no_more_retries_than_allowed_and_the_last_error_is_raised(max_retries: int) -> None:
    attempts = Attempts(max_retries=max_retries)
    attempts.fake.enqueue(*[busy()] * 20)
    with pytest.raises(GatewayOverloaded) as caught:
        await attempts.respond()
    assert len(attempts.fake.calls) == max_retries + 1
    assert caught.value.retries == max_retries


@pytest.mark.parametrize(
    "error",
    [
        GatewayTimeout("late", retry_after_seconds=0.0),
        GatewayBroken("cut"),
        GatewayRefused("no", status=401, retry_after_seconds=86400.0),
        AnswerWithheld("refused"),
    ],
    ids=repr,
)
async def test_a_request_that_may_be_billed_or_cannot_succeed_is_never_retried(error: Exception) -> None:
    attempts = Attempts()
    attempts.fake.enqueue(error, REPLY)
    with pytest.raises(type(error), match=f"^{error}$") as caught:
        await attempts.respond()
    assert caught.value is error
    assert (len(attempts.fake.calls), attempts.clock.sleeps) == (1, [])


async def test_retries_that_another_error_ends_are_counted() -> None:
    attempts = Attempts()
    attempts.fake.enqueue(busy(), busy(), GatewayBroken("cut"))
    with pytest.raises(GatewayBroken) as caught:
        await attempts.respond()
    assert caught.value.retries == 2


@pytest.mark.parametrize("seconds", [0.1, 60.0])
async def test_retry_after_is_waited_for_to_the_second(seconds: float) -> None:
    attempts = Attempts()
    attempts.fake.enqueue(busy(seconds), REPLY)
    assert await attempts.respond_through_all_waits() == REPLY
    assert attempts.clock.sleeps == [seconds]
    assert attempts.fake.calls == [REQUEST] * 2


@pytest.mark.parametrize(("seconds", "max_retries"), [(60.1, 3), (86400.0, 0)])
async def test_a_longer_retry_after_is_not_waited_for_and_the_error_says_when_to_ask_again(
    seconds: float, max_retries: int
) -> None:
    attempts = Attempts(max_retries=max_retries)
    attempts.fake.enqueue(busy(seconds), REPLY)
    with pytest.raises(GatewayOverloaded, match=f"^Ask again in {seconds:.0f} s, as the API demands. busy$"):
        await attempts.respond()
    assert (len(attempts.fake.calls), attempts.clock.sleeps) == (1, [])


async def test_waits_grow_and_have_jitter_and_a_bound() -> None:
    jittered = set()
    for _ in range(20):
        attempts = Attempts(max_retries=10)
        attempts.fake.enqueue(*[busy(None)] * 10, REPLY)
        await attempts.respond_through_all_waits()
        assert len(attempts.clock.sleeps) == len(LONGEST_WAITS)
        for wait, longest in zip(attempts.clock.sleeps, LONGEST_WAITS, strict=True):
            assert 0 <= wait <= longest
        jittered.update(attempts.clock.sleeps)
    assert len(jittered) > 100
    assert max(jittered) > 4.0


async def test_the_retry_starts_when_the_wait_is_over_and_not_before(
    waiting: tuple[Attempts, "asyncio.Future[ModelReply]"],
) -> None:
    attempts, responding = waiting
    await attempts.clock.advance(6.9)
    assert len(attempts.fake.calls) == 1
    await attempts.clock.advance(0.1)
    assert await responding == REPLY
    assert len(attempts.fake.calls) == 2


async def test_a_cancel_ends_the_wait(waiting: tuple[Attempts, "asyncio.Future[ModelReply]"]) -> None:
    attempts, responding = waiting
    responding.cancel()
    with pytest.raises(asyncio.CancelledError):
        await responding
    await attempts.clock.advance(100)
    assert len(attempts.fake.calls) == 1


async def test_the_end_of_input_ends_the_wait_with_the_error_that_was_there(
    waiting: tuple[Attempts, "asyncio.Future[ModelReply]"],
) -> None:
    attempts, responding = waiting
    attempts.is_ending.set()
    with pytest.raises(GatewayOverloaded) as caught:
        await responding
    assert caught.value.retries == 0
    assert len(attempts.fake.calls) == 1


async def test_after_the_end_of_input_a_call_has_one_attempt() -> None:
    attempts = Attempts()
    attempts.is_ending.set()
    attempts.fake.enqueue(busy(), REPLY)
    with pytest.raises(GatewayOverloaded):
        await attempts.respond()
    assert (len(attempts.fake.calls), attempts.clock.sleeps) == (1, [])
    assert await attempts.respond() == REPLY


async def test_the_listener_hears_the_gateway_and_of_every_wait() -> None:
    attempts = Attempts()
    attempts.fake.progress = [Progress("thinking")]
    attempts.fake.enqueue(
        busy(7.0), GatewayUnreachable("refused", name="ConnectError", retry_after_seconds=0.25), REPLY
    )
    await attempts.respond_through_all_waits()
    assert [progress.message for progress in attempts.progress] == [
        "thinking",
        "waiting 7.0 s to ask again (429)",
        "thinking",
        "waiting 0.2 s to ask again (no connection)",
        "thinking",
    ]


async def test_each_failed_attempt_is_a_line_in_the_log() -> None:
    attempts = Attempts()
    busy = GatewayOverloaded("busy", status=503, code="a", kind="b", name="C", body="{}", retry_after_seconds=0.0)
    attempts.fake.enqueue(busy, GatewayBroken("cut"))
    with pytest.raises(GatewayBroken):
        await attempts.respond()
    first, second = attempts.logger.facts("error")
    assert first == {"attempt": 1, "status": 503, "code": "a", "type": "b", "name": "C", "msg": "busy", "body": "{}"}
    assert (second["attempt"], second["name"]) == (2, "GatewayBroken")


class Interrupted(FakeGateway):
    """Starts, and then fails in a way that would be worth another try."""

    async def respond(
        self,
        request: ModelRequest,
        on_progress: ProgressListener | None = None,
        on_started: StartListener | None = None,
    ) -> ModelReply:
        await super().respond(request, on_progress, on_started)
        raise busy()


@pytest.mark.parametrize("listens", [False, True])
async def test_a_question_that_runs_in_the_background_is_not_asked_again(listens: bool) -> None:
    interrupted, started = Interrupted(), list[str]()
    gateway = RetryingGateway(interrupted, FakeClock(), FakeLogger(), max_retries=3, is_ending=asyncio.Event())
    with pytest.raises(GatewayOverloaded):
        await gateway.respond(replace(REQUEST, background=True), None, started.append if listens else None)
    assert len(interrupted.calls) == 1
    assert started == (["resp_1"] if listens else [])
