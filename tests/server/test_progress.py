import asyncio
from typing import Any

import pytest

from openai_responses_mcp.domain.models import Progress, ProgressListener
from openai_responses_mcp.server.calling import progress_token_of, reporting
from tests.fakes import WAIT_SECONDS, FakeClock
from tests.server.wired import Wired, tool_call


class Sent:
    """Remembers each notification with the time it was sent at."""

    def __init__(self, clock: FakeClock) -> None:
        self._clock = clock
        self.messages: list[dict[str, Any]] = []
        self.times: list[float] = []

    def __call__(self, message: dict[str, Any]) -> None:
        self.messages.append(message)
        self.times.append(self._clock.monotonic())

    @property
    def texts(self) -> list[str]:
        return [message["params"]["message"] for message in self.messages]

    @property
    def gaps(self) -> list[float]:
        return [later - earlier for earlier, later in zip(self.times, self.times[1:], strict=False)]


@pytest.mark.parametrize("token", ["t", "", 0, 7])
def test_a_text_or_a_whole_number_is_a_token(token: int | str) -> None:
    assert progress_token_of({"_meta": {"progressToken": token}}) == token


def test_anything_else_is_no_token() -> None:
    cases: list[Any] = [None, [], {}, *({"progressToken": token} for token in (None, True, 1.5, [1], {1: 2}))]
    for meta in cases:
        assert progress_token_of({"_meta": meta}) is None
        assert progress_token_of({}) is None


async def test_the_first_report_comes_at_once_and_has_the_token() -> None:
    clock = FakeClock()
    sent = Sent(clock)
    async with reporting("t", sent, clock):
        await clock.wait_for_sleepers()
    assert sent.messages == [
        {
            "jsonrpc": "2.0",
            "method": "notifications/progress",
            "params": {"progressToken": "t", "progress": 1, "message": "asking the model"},
        }
    ]


async def test_news_is_reported_in_the_words_of_the_gateway_and_counts_up() -> None:
    clock = FakeClock()
    sent = Sent(clock)
    async with reporting("t", sent, clock) as listen:
        await clock.wait_for_sleepers()
        for news in ("thinking", 'searching for "x"', "writing"):
            listen(Progress(news))
            await clock.advance(0.25)
    assert sent.texts == ["asking the model", "thinking", 'searching for "x"', "writing"]
    assert [message["params"]["progress"] for message in sent.messages] == [1, 2, 3, 4]


async def flood(clock: FakeClock, listen: ProgressListener) -> None:
    for number in range(200):
        listen(Progress(f"news {number}"))
        await clock.advance(0.01)


async def test_a_flood_of_progress_is_limited_to_four_a_second_and_the_latest_is_sent() -> None:
    clock = FakeClock()
    sent = Sent(clock)
    async with reporting("t", sent, clock) as listen:
        await clock.wait_for_sleepers()
        await flood(clock, listen)
        await clock.advance(0.25)
    assert min(sent.gaps) >= 0.25 - 1e-9
    assert len(sent.messages) >= 8
    assert sent.texts[-1] == "news 199"


async def test_a_long_silence_is_broken_at_least_every_ten_seconds() -> None:
    clock = FakeClock()
    sent = Sent(clock)
    async with reporting("t", sent, clock) as listen:
        await clock.wait_for_sleepers()
        listen(Progress("thinking"))
        for _ in range(240):
            await clock.advance(0.25)
    assert max(sent.gaps) <= 10
    assert len(sent.messages) >= 60 // 10
    assert sent.texts[:3] == ["asking the model", "thinking", "thinking (8 s)"]
    progress = [message["params"]["progress"] for message in sent.messages]
    assert progress == sorted(set(progress))


async def test_nothing_is_reported_once_the_block_is_left() -> None:
    clock = FakeClock()
    sent = Sent(clock)
    async with reporting("t", sent, clock) as listen:
        await clock.wait_for_sleepers()
        listen(Progress("thinking"))
    listen(Progress("too late"))
    for _ in range(50):
        await clock.advance(1)
    assert sent.texts == ["asking the model"]


async def test_nothing_is_left_running_once_the_block_is_left() -> None:
    clock = FakeClock()
    before = asyncio.all_tasks()
    async with reporting("t", Sent(clock), clock):
        await clock.wait_for_sleepers()
        await clock.advance(0.25)
        left = asyncio.all_tasks() - before
    assert left
    await asyncio.wait(left, timeout=WAIT_SECONDS)
    assert asyncio.all_tasks() == before


async def test_no_progress_follows_the_reply() -> None:
    wired = Wired()
    wired.gateway.hold()
    wired.gateway.progress = [Progress("thinking")]
    wired.handle(tool_call(1, meta={"progressToken": "t"}))
    await wired.gateway.wait_for_calls(1)
    await wired.clock.advance(0.25)
    wired.gateway.release()
    await wired.drained()
    await wired.clock.advance(60)
    sent = wired.transport.replies()
    assert [message.get("id") for message in sent] == [None, None, 1]


async def test_without_a_token_there_is_no_progress_and_no_listener() -> None:
    wired = Wired()
    wired.gateway.progress = [Progress("thinking")]
    await wired.reply_to(tool_call(1))
    assert wired.clock.sleeps == []
