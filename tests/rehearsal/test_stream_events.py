import json
from typing import Any

import pytest
from openai import AsyncOpenAI
from openai.types.responses import ResponseStreamEvent
from pydantic import TypeAdapter

from tests.rehearsal.conftest import SEARCH, Ask

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)


def read_events(body: bytes) -> list[dict[str, Any]]:
    events = []
    for block in body.decode().removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
    return events


def without_repeats(names: list[str]) -> list[str]:
    return [name for name, before in zip(names, [None, *names], strict=False) if name != before]


async def test_a_searched_answer_streams_every_event_of_the_api_in_order(ask: Ask) -> None:
    reply = await ask("What is the latest news?", stream=True, **SEARCH)
    assert reply.headers["content-type"].startswith("text/event-stream")
    events = read_events(reply.content)
    for event in events:
        EVENT.validate_python(event, strict=True)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert without_repeats([event["type"].removeprefix("response.") for event in events]) == [
        "created", "in_progress",
        "output_item.added", "output_item.done",
        "output_item.added", "web_search_call.in_progress", "web_search_call.searching", "web_search_call.completed",
        "output_item.done",
        "output_item.added", "content_part.added", "output_text.delta", "output_text.annotation.added",
        "output_text.done", "content_part.done", "output_item.done",
        "completed",
    ]  # fmt: skip
    deltas = [event["delta"] for event in events if event["type"] == "response.output_text.delta"]
    assert len(deltas) > 3
    assert "".join(deltas) == events[-1]["response"]["output"][-1]["content"][0]["text"]


@pytest.mark.parametrize(
    ("question", "seen", "last"),
    [
        ("[rehearse: outcome=refusal]", "response.refusal.done", "response.completed"),
        ("[rehearse: outcome=incomplete]", "response.output_text.done", "response.incomplete"),
        ("[rehearse: outcome=failed]", "response.created", "response.failed"),
        ("[rehearse: outcome=no-text]", "response.output_item.done", "response.completed"),
    ],
)
async def test_every_outcome_streams_valid_events(ask: Ask, question: str, seen: str, last: str) -> None:
    events = read_events((await ask(question, stream=True)).content)
    for event in events:
        EVENT.validate_python(event, strict=True)
    assert seen in [event["type"] for event in events]
    assert events[-1]["type"] == last


async def test_the_vendors_client_reads_the_stream(base_url: str) -> None:
    async with (
        AsyncOpenAI(api_key="made-up", base_url=base_url, max_retries=0, timeout=30) as client,
        await client.responses.create(model="gpt-5", input="Hello", stream=True) as stream,
    ):
        last = [event async for event in stream][-1]
    assert last.type == "response.completed"
    assert '"Hello"' in last.response.output_text
