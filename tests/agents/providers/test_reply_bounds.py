"""Streams that stop before the answer does, and replies without end."""

import asyncio
import gzip
import json
from collections.abc import AsyncIterator, Awaitable
from typing import Any, TypeVar

import pytest

from openai_responses_mcp.agents import Agent, AgentsError, create_runner
from openai_responses_mcp.agents.providers.compat_client import LONGEST_REPLY_BYTES
from openai_responses_mcp.agents.providers.compat_model import CompatModel
from openai_responses_mcp.agents.providers.settings import CompatModelConfig
from tests.agents.fakes import FakeJudge, collected, last_result
from tests.agents.providers.conftest import Ask, Play
from tests.agents.providers.stand_in import KEY
from tests.stand_in.http_server import HttpServer
from tests.stand_in.http_wire import RecordedRequest, Reply

T = TypeVar("T")

EVENTS, JSON = {"content-type": "text/event-stream"}, {"content-type": "application/json"}


def words(text: str, finish_reason: str | None = None) -> str:
    choice = {"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": finish_reason}
    return json.dumps({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]})


def half_a_call() -> str:
    call = {"index": 0, "id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"a": 1'}}
    choice = {"index": 0, "delta": {"role": "assistant", "tool_calls": [call]}, "finish_reason": None}
    return json.dumps({"id": "c", "object": "chat.completion.chunk", "created": 0, "model": "m", "choices": [choice]})


def stream(*events: str) -> bytes:
    return "".join(f"data: {event}\n\n" for event in events).encode()


async def slowly(work: Awaitable[T]) -> T:
    """Many megabytes take their time on a busy machine."""
    return await asyncio.wait_for(work, 30)


async def streamed(model: Any) -> str:
    agent = Agent(name="a", model=model)
    events = await slowly(collected(create_runner(safety_agent=FakeJudge()).run_stream(agent, "Hello")))
    return str(last_result(events).output_text)


@pytest.mark.parametrize("end", [words("", "stop"), "[DONE]"], ids=["reason", "done"])
async def test_a_stream_that_says_that_it_is_over_is_an_answer(play: Play, model_of: Ask, end: str) -> None:
    (await play("openrouter")).enqueue(Reply(200, EVENTS, stream(words("Well"), end)))
    assert await streamed(model_of("openrouter")) == "Well"


@pytest.mark.parametrize(
    "reply",
    [
        Reply(200, EVENTS, stream(words("Well"))),
        Reply(200, EVENTS, stream(half_a_call())),
        Reply(200, EVENTS, stream(words('"finish_reason": "stop"\n\ndata: [DONE]\n\n'))),
        Reply(200, JSON, b'{"detail": "come back later"}'),
    ],
    ids=["words", "half a call", "words that look like the end", "no stream"],
)
async def test_a_stream_that_just_stops_is_broken(play: Play, model_of: Ask, reply: Reply) -> None:
    stand_in = await play("openrouter")
    stand_in.enqueue(reply)
    with pytest.raises(AgentsError) as caught:
        await streamed(model_of("openrouter"))
    assert (caught.value.code, caught.value.details["reason"]) == ("AGENTS-E-STREAM", "broken")
    assert "try again" in caught.value.message
    assert stand_in.server.received == 1


async def test_a_stream_of_the_responses_api_that_just_stops_is_broken() -> None:
    created = json.dumps({"type": "response.in_progress", "sequence_number": 0, "response": {"id": "r", "output": []}})

    async def answer(request: RecordedRequest) -> Reply:
        return Reply(200, EVENTS, f"event: response.in_progress\ndata: {created}\n\n".encode())

    web = HttpServer(answer)
    model = CompatModel("m", CompatModelConfig(await web.start(), api_key=KEY, api="responses", provider="openai"))
    with pytest.raises(AgentsError) as caught:
        await streamed(model)
    await model.close()
    await web.close()
    assert (caught.value.code, caught.value.details["reason"]) == ("AGENTS-E-STREAM", "broken")


# ---------------------------------------------------------------------------------------------------------------------
# Size

MEBIBYTE = b"x" * 1024 * 1024


class Endless:
    """A body many times as long as any answer; counts what was taken of it."""

    def __init__(self) -> None:
        self.taken = 0

    async def chunks(self, start: bytes = b"") -> AsyncIterator[bytes]:
        yield start
        for _ in range(10 * LONGEST_REPLY_BYTES // len(MEBIBYTE)):
            self.taken += len(MEBIBYTE)
            yield MEBIBYTE


@pytest.mark.parametrize("status", [200, 500])
async def test_a_reply_without_end_is_cut_off(play: Play, model_of: Ask, status: int) -> None:
    body = Endless()
    (await play("openrouter")).enqueue(Reply(status, JSON, body.chunks(b'{"error": "')))
    with pytest.raises(AgentsError) as caught:
        await slowly(
            create_runner(safety_agent=FakeJudge()).run(Agent(name="a", model=model_of("openrouter")), "Hello")
        )
    assert (caught.value.code, caught.value.details["reason"]) == ("AGENTS-E-RUNNER", "broken")
    assert "more than any answer" in caught.value.message
    assert body.taken < 3 * LONGEST_REPLY_BYTES


async def test_a_stream_without_end_is_cut_off(play: Play, model_of: Ask) -> None:
    body = Endless()
    (await play("openrouter")).enqueue(Reply(200, EVENTS, body.chunks(stream(words("Well")) + b"data: ")))
    with pytest.raises(AgentsError) as caught:
        await streamed(model_of("openrouter"))
    assert (caught.value.code, caught.value.details["reason"]) == ("AGENTS-E-STREAM", "broken")
    assert body.taken < 3 * LONGEST_REPLY_BYTES


async def test_a_small_reply_that_unfolds_without_end_is_cut_off(play: Play, model_of: Ask) -> None:
    packed = gzip.compress(b" " * 2 * LONGEST_REPLY_BYTES)
    (await play("openrouter")).enqueue(Reply(200, {**JSON, "content-encoding": "gzip"}, packed))
    with pytest.raises(AgentsError) as caught:
        await slowly(
            create_runner(safety_agent=FakeJudge()).run(Agent(name="a", model=model_of("openrouter")), "Hello")
        )
    assert "more than any answer" in caught.value.message


async def test_a_packed_reply_is_an_answer(play: Play, model_of: Ask) -> None:
    choice = {"index": 0, "message": {"role": "assistant", "content": "Hello."}, "finish_reason": "stop"}
    body = {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}
    packed = gzip.compress(json.dumps(body).encode())
    headers = {"content-type": "application/json; charset=idna", "content-encoding": "gzip"}
    (await play("openrouter")).enqueue(Reply(200, headers, packed))
    agent = Agent(name="a", model=model_of("openrouter"))
    result = await slowly(create_runner(safety_agent=FakeJudge()).run(agent, "Hello"))
    assert result.output_text == "Hello."
