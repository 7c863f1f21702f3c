import json
from typing import Any

import pytest

from openai_responses_mcp.domain.models import ModelReply, Usage
from openai_responses_mcp.domain.ports import Received
from openai_responses_mcp.domain.usage import CallerLimits, ProcessUsage
from openai_responses_mcp.server.limits import LimitedCaller, maybe_limited
from tests.server.wired import ENVELOPE, Wired, tool_call

REPLY = ModelReply(text="Well.", usage=Usage(60, 40, 100))


class Limited(Wired):
    def __init__(self, limits: CallerLimits) -> None:
        super().__init__()
        self.caller = LimitedCaller(self.caller, limits, ProcessUsage(self.clock))

    def ask(self, number: int, caller: str = "ann", meta: Any = None) -> None:
        self.dispatcher.handle(Received(json.dumps(tool_call(number, meta=meta)).encode(), self.transport, caller))

    async def answer(self, number: int, caller: str = "ann", meta: Any = None) -> str:
        """The text of the result, and whether it is an error."""
        before = len(self.transport.sent)
        self.ask(number, caller, meta)
        (reply,) = (await self.drained())[before:]
        text: str = reply["result"]["content"][0]["text"]
        return text if reply["result"].get("isError") else "answered"


@pytest.mark.parametrize("meta", [None, ENVELOPE], ids=["handshake", "envelope"])
async def test_calls_in_a_minute_are_counted_for_each_caller(meta: Any) -> None:
    wired = Limited(CallerLimits(calls_per_minute=2))
    assert [await wired.answer(number, meta=meta) for number in (1, 2)] == ["answered"] * 2
    assert await wired.answer(3, meta=meta) == "You may call 2 times a minute. Come back in 60 s."
    assert await wired.answer(4, "bob", meta) == "answered"
    await wired.clock.advance(60)
    assert await wired.answer(5, meta=meta) == "answered"


async def test_calls_at_once_are_bounded() -> None:
    wired = Limited(CallerLimits(calls_at_once=1))
    wired.gateway.hold()
    wired.ask(1)
    await wired.gateway.wait_for_calls(1)
    wired.ask(2)
    (refused,) = await wired.transport.wait_for_sent(1)
    assert refused["result"]["content"][0]["text"].startswith("You already have 1 calls in flight, which is the limit.")
    wired.gateway.release()
    await wired.drained()
    assert await wired.answer(3) == "answered"


async def test_tokens_of_a_day_are_counted_until_the_next_day() -> None:
    wired = Limited(CallerLimits(tokens_per_day=150))
    wired.gateway.enqueue(REPLY, REPLY, REPLY)
    assert [await wired.answer(number) for number in (1, 2)] == ["answered"] * 2
    assert (await wired.answer(3)).startswith("You have used all 150 tokens for today. Come back in ")
    await wired.clock.advance(24 * 3600)
    assert await wired.answer(4) == "answered"


async def test_without_limits_nothing_stands_in_between() -> None:
    wired = Wired()
    assert maybe_limited(wired.caller, CallerLimits(), ProcessUsage(wired.clock)) is wired.caller


async def test_tasks_are_those_of_the_limited_caller() -> None:
    plain = Wired()
    assert (
        LimitedCaller(plain.caller, CallerLimits(calls_per_minute=2), ProcessUsage(plain.clock)).tasks
        is plain.caller.tasks
    )
