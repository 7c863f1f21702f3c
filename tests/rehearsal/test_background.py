"""Background mode, asked over HTTP and with the vendor's client."""

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI, NotFoundError
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from tests.rehearsal.conftest import SEARCH, Ask
from tests.rehearsal.test_stream_events import read_events

EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
BACKGROUND = {"background": True, "stream": True}
SLOW = "Why? [rehearse: delay=60]"


async def ended(client: httpx2.AsyncClient, response_id: str) -> dict[str, Any]:
    """The response once it is no longer worked on: its stream lasts as long."""
    await client.get(f"/responses/{response_id}", params={"stream": "true"})
    response: dict[str, Any] = (await client.get(f"/responses/{response_id}")).json()
    return response


async def test_a_background_answer_streams_every_event_of_the_api_in_order(ask: Ask) -> None:
    events = read_events((await ask("What is the latest news?", **BACKGROUND, **SEARCH)).content)
    for event in events:
        EVENT.validate_python(event, strict=True)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    told = [(event["type"], event["response"]["status"]) for event in events if "response" in event]
    assert told == [
        ("response.created", "queued"),
        ("response.queued", "queued"),
        ("response.in_progress", "in_progress"),
        ("response.completed", "completed"),
    ]
    assert {event["response"]["id"] for event in events if "response" in event} == {events[0]["response"]["id"]}
    assert all(event["response"]["background"] for event in events if "response" in event)


async def test_without_a_stream_the_answer_is_asked_for_by_id(ask: Ask, client: httpx2.AsyncClient) -> None:
    response = (await ask("Hello", background=True)).json()
    Response.model_validate(response, strict=True)
    assert (response["status"], response["output"], response["usage"]) == ("queued", [], None)
    answer = await ended(client, response["id"])
    Response.model_validate(answer, strict=True)
    assert (answer["status"], answer["id"]) == ("completed", response["id"])
    assert '"Hello"' in answer["output"][-1]["content"][0]["text"]


async def test_every_event_can_be_the_last_one_seen(ask: Ask, client: httpx2.AsyncClient) -> None:
    events = read_events((await ask("Hello", **BACKGROUND)).content)
    path = f"/responses/{events[0]['response']['id']}"
    for number in range(-1, len(events)):
        reply = await client.get(path, params={"stream": "true", "starting_after": number})
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert (read_events(reply.content) if reply.content else []) == events[number + 1 :]


async def first_event(client: httpx2.AsyncClient, question: str) -> dict[str, Any]:
    """Of a stream that is left right after it."""
    body = {"model": "gpt-5", "input": question, **BACKGROUND}
    async with client.stream("POST", "/responses", json=body) as reply:
        seen = b""
        async for data in reply.aiter_bytes():
            seen += data
            if b"\n\n" in seen:
                break
    return read_events(seen.partition(b"\n\n")[0])[0]


async def test_the_answer_is_worked_on_when_nobody_reads(client: httpx2.AsyncClient) -> None:
    response_id = (await first_event(client, "Why? [rehearse: delay=0.1]"))["response"]["id"]
    assert (await ended(client, response_id))["status"] == "completed"


async def test_a_run_is_cancelled_once_and_for_all(client: httpx2.AsyncClient) -> None:
    response_id = (await first_event(client, SLOW))["response"]["id"]
    assert (await client.get(f"/responses/{response_id}")).json()["status"] in ("queued", "in_progress")
    for _ in range(2):
        cancelled = (await client.post(f"/responses/{response_id}/cancel")).json()
        Response.model_validate(cancelled, strict=True)
        assert (cancelled["id"], cancelled["status"], cancelled["output"]) == (response_id, "cancelled", [])
    assert (await ended(client, response_id))["status"] == "cancelled"


async def test_a_cancel_ends_the_stream_without_a_final_event(client: httpx2.AsyncClient) -> None:
    response_id = (await first_event(client, SLOW))["response"]["id"]
    stream = asyncio.create_task(client.get(f"/responses/{response_id}", params={"stream": "true"}))
    await client.post(f"/responses/{response_id}/cancel")
    events = read_events((await asyncio.wait_for(stream, 5)).content)
    assert events[-1]["type"] in ("response.created", "response.queued", "response.in_progress")


async def test_a_finished_response_stays_what_it_is(ask: Ask, client: httpx2.AsyncClient) -> None:
    response = read_events((await ask("Hello", **BACKGROUND)).content)[-1]["response"]
    assert (await client.post(f"/responses/{response['id']}/cancel")).json() == response


@pytest.mark.parametrize(("outcome", "status"), [("failed", "failed"), ("incomplete", "incomplete")])
async def test_a_run_may_end_badly(ask: Ask, client: httpx2.AsyncClient, outcome: str, status: str) -> None:
    response = (await ask(f"Why? [rehearse: outcome={outcome}]", background=True)).json()
    assert (await ended(client, response["id"]))["status"] == status


async def test_a_conversation_goes_on_from_the_background(ask: Ask) -> None:
    first = (await ask("Who was Ada?", background=True)).json()
    second = (await ask("And then?", previous_response_id=first["id"])).json()
    assert '"Who was Ada?"' in second["output"][-1]["content"][0]["text"]


async def test_an_answer_of_the_foreground_can_be_read_again_and_no_more(ask: Ask, client: httpx2.AsyncClient) -> None:
    response = (await ask("Hello")).json()
    path = f"/responses/{response['id']}"
    assert (await client.get(path)).json() == response
    assert (await client.get(path, params={"stream": "true"})).status_code == 400
    refused = await client.post(f"{path}/cancel")
    assert refused.status_code == 400
    assert "Cannot cancel" in refused.json()["error"]["message"]


async def test_an_answer_that_is_not_stored_cannot_be_asked_for(ask: Ask, client: httpx2.AsyncClient) -> None:
    response = (await ask("Hello", store=False)).json()
    assert (await client.get(f"/responses/{response['id']}")).status_code == 404


@pytest.mark.parametrize(("method", "path"), [("GET", ""), ("GET", "?stream=true"), ("POST", "/cancel")])
async def test_an_unknown_id_is_not_found(client: httpx2.AsyncClient, method: str, path: str) -> None:
    reply = await client.request(method, f"/responses/resp_unknown{path}")
    assert reply.status_code == 404
    assert "'resp_unknown' not found" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("fields", "param"), [({"background": True, "store": False}, "store"), ({"background": "yes"}, "background")]
)
async def test_a_background_that_cannot_be_is_refused(ask: Ask, fields: dict[str, Any], param: str) -> None:
    reply = await ask("Hello", **fields)
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, param)


async def test_a_place_in_the_stream_that_is_no_number_is_refused(ask: Ask, client: httpx2.AsyncClient) -> None:
    response = (await ask("Hello", background=True)).json()
    reply = await client.get(f"/responses/{response['id']}?stream=true&starting_after=soon")
    assert (reply.status_code, reply.json()["error"]["param"]) == (400, "starting_after")


@pytest.fixture
async def vendors_client(base_url: str) -> AsyncIterator[AsyncOpenAI]:
    async with AsyncOpenAI(api_key="made-up", base_url=base_url, max_retries=0, timeout=30) as client:
        yield client


async def test_the_vendors_client_goes_on_where_it_stopped(vendors_client: AsyncOpenAI) -> None:
    seen = []
    stream = await vendors_client.responses.create(model="gpt-5", input="Hello", background=True, stream=True)
    async with stream:
        async for event in stream:
            seen.append(event)
            if event.sequence_number == 4:
                break
    first = seen[0]
    assert first.type == "response.created"
    async with await vendors_client.responses.retrieve(first.response.id, stream=True, starting_after=4) as rest:
        seen += [event async for event in rest]
    assert [event.sequence_number for event in seen] == list(range(len(seen)))
    assert seen[-1].type == "response.completed"


async def test_the_vendors_client_cancels(vendors_client: AsyncOpenAI) -> None:
    response = await vendors_client.responses.create(model="gpt-5", input=SLOW, background=True)
    assert (await vendors_client.responses.cancel(response.id)).status == "cancelled"
    assert (await vendors_client.responses.retrieve(response.id)).status == "cancelled"
    with pytest.raises(NotFoundError):
        await vendors_client.responses.cancel("resp_unknown")
