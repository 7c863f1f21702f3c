"""The stand-in that ships, asked over HTTP as the server asks it."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest
from openai.types.responses import Response, ResponseStreamEvent
from pydantic import TypeAdapter

from openai_responses_mcp.rehearsal.server import RehearsalServer

Ask = Callable[..., Awaitable[httpx2.Response]]
EVENT: TypeAdapter[Any] = TypeAdapter(ResponseStreamEvent)
SEARCH = {"tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"]}
BACKGROUND = {"background": True, "stream": True}
SLOW = "Why? [rehearse: delay=60]"


@pytest.fixture
async def server() -> AsyncIterator[RehearsalServer]:
    server = RehearsalServer({"resp_before": "Who was Ada?"})
    yield server
    await server.close()


@pytest.fixture
async def client(server: RehearsalServer) -> AsyncIterator[httpx2.AsyncClient]:
    base_url, headers = await server.start(), {"authorization": "Bearer made-up"}
    assert base_url.startswith("http://127.0.0.1:")
    async with httpx2.AsyncClient(base_url=base_url, headers=headers, timeout=5, trust_env=False) as client:
        yield client


@pytest.fixture
def ask(client: httpx2.AsyncClient) -> Ask:
    async def ask(question: Any, **fields: Any) -> httpx2.Response:
        return await client.post("/responses", json={"model": "gpt-5", "input": question, **fields})

    return ask


def text(response: dict[str, Any]) -> str:
    Response.model_validate(response, strict=True)
    return str(response["output"][-1]["content"][0]["text"])


def read_events(body: bytes) -> list[dict[str, Any]]:
    events = []
    for block in body.decode().removesuffix("\n\n").split("\n\n"):
        name, data = block.split("\n")
        events.append(json.loads(data.removeprefix("data: ")))
        assert name == f"event: {events[-1]['type']}"
        EVENT.validate_python(events[-1], strict=True)
    return events


async def test_a_question_about_settled_things_is_answered_without_a_search(ask: Ask) -> None:
    response = (await ask("HTTP 404 の意味は？", **SEARCH)).json()
    assert [item["type"] for item in response["output"]] == ["reasoning", "message"]
    assert "HTTP 404 の意味は？" in text(response)
    assert "リハーサル" in text(response)


async def test_a_question_about_today_is_searched_dated_and_cited(ask: Ask) -> None:
    response = (await ask("What is the latest?\n[Hints] today=2026-11-16", **SEARCH)).json()
    assert "2026-11-16" in text(response)
    assert [source["type"] for source in response["output"][1]["action"]["sources"]] == ["url", "url", "url"]
    part = response["output"][2]["content"][0]
    for citation in part["annotations"]:
        assert citation["url"] in part["text"][citation["start_index"] : citation["end_index"]]
    assert len(part["annotations"]) == 2
    assert "2031-02-03" in text((await ask("latest of 2031-02-03?", **SEARCH)).json())


@pytest.mark.parametrize(
    ("question", "is_searched"),
    [
        ("最新のnewsは", True),
        ("Hello\n[Hints] style: latest today=2026-11-16", False),
    ],
)
async def test_trigger_words_in_the_question_decide_about_the_search(
    ask: Ask, question: str, is_searched: bool
) -> None:
    response = (await ask(question, **SEARCH)).json()
    assert (response["output"][1]["type"] == "web_search_call") is is_searched


async def test_the_last_user_message_is_quoted_in_part(ask: Ask) -> None:
    parts = [{"type": "input_text", "text": "Second? " + "long " * 100}, 7]
    given = [{"role": "user", "content": "First?"}, None, {"role": "user", "content": parts}]
    answer = text((await ask(given)).json())
    assert 'You asked: "Second? long' in answer
    assert answer.endswith('…".')
    assert '""' in text((await ask([{"role": "developer", "content": "Be kind."}])).json())


async def test_a_conversation_goes_on_with_an_id_that_was_given_out(ask: Ask) -> None:
    first = (await ask("How is it?", previous_response_id="resp_before")).json()
    assert '"Who was Ada?"' in text(first)
    assert '"How is it?"' in text((await ask("And then?", previous_response_id=first["id"])).json())
    unstored = (await ask("Hello", store=False)).json()["id"]
    for unknown in (unstored, "resp_other"):
        error = (await ask("Hello", previous_response_id=unknown)).json()["error"]
        assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")


async def test_a_searched_answer_streams_every_event_of_the_api_in_order(ask: Ask) -> None:
    events = read_events((await ask("What is the latest news?", stream=True, **SEARCH)).content)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    names = [event["type"].removeprefix("response.") for event in events]
    assert [name for name, before in zip(names, [None, *names], strict=False) if name != before] == [
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
    assert "".join(deltas) == text(events[-1]["response"])


async def test_a_background_answer_can_be_read_on_from_every_event(ask: Ask, client: httpx2.AsyncClient) -> None:
    events = read_events((await ask("Hello", **BACKGROUND)).content)
    states = [(event["type"], event["response"]["status"]) for event in events if "response" in event]
    assert states == [
        ("response.created", "queued"),
        ("response.queued", "queued"),
        ("response.in_progress", "in_progress"),
        ("response.completed", "completed"),
    ]
    response = events[-1]["response"]
    path = f"/responses/{response['id']}"
    for number in range(-1, len(events)):
        reply = await client.get(path, params={"stream": "true", "starting_after": number})
        assert (read_events(reply.content) if reply.content else []) == events[number + 1 :]
    assert (await client.post(f"{path}/cancel")).json() == response
    refused = await client.get(f"{path}?stream=true&starting_after=soon")
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "starting_after")


async def test_a_background_answer_is_worked_on_without_a_reader(ask: Ask, client: httpx2.AsyncClient) -> None:
    response = (await ask("Why? [rehearse: delay=0.1]", background=True)).json()
    assert (response["status"], response["output"], response["usage"]) == ("queued", [], None)
    path = f"/responses/{response['id']}"
    await client.get(path, params={"stream": "true"})  # Lasts as long as the work.
    assert '"Why?"' in text((await client.get(path)).json())


async def test_a_cancelled_answer_ends_its_streams_and_stays_cancelled(ask: Ask, client: httpx2.AsyncClient) -> None:
    path = f"/responses/{(await ask(SLOW, background=True)).json()['id']}"
    stream = asyncio.create_task(client.get(path, params={"stream": "true"}))
    for _ in range(2):
        cancelled = (await client.post(f"{path}/cancel")).json()
        Response.model_validate(cancelled, strict=True)
        assert (cancelled["status"], cancelled["output"]) == ("cancelled", [])
    events = read_events((await asyncio.wait_for(stream, 5)).content)
    assert events[-1]["type"] in ("response.created", "response.queued", "response.in_progress")
    assert (await client.get(path)).json()["status"] == "cancelled"


async def test_an_answer_of_the_foreground_can_be_read_again_and_no_more(ask: Ask, client: httpx2.AsyncClient) -> None:
    response = (await ask("Hello")).json()
    path = f"/responses/{response['id']}"
    assert (await client.get(path)).json() == response
    assert (await client.get(path, params={"stream": "true"})).status_code == 400
    assert (await client.post(f"{path}/cancel")).status_code == 400
    unstored = (await ask("Hello", store=False)).json()["id"]
    assert (await client.get(f"/responses/{unstored}")).status_code == 404


async def test_trouble_comes_on_request_and_ends_after_its_times(ask: Ask) -> None:
    marker = "[rehearse: status=429; times=2]"
    replies = [await ask(f"One {marker}") for _ in range(3)]
    assert [reply.status_code for reply in replies] == [429, 429, 200]
    assert replies[0].json()["error"]["code"] == "rate_limit_exceeded"
    assert '"One"' in text(replies[2].json())
    assert (await ask(f"Two {marker}")).status_code == 429
    assert (await ask("Three [rehearse: status=418]")).status_code == 418


@pytest.mark.parametrize(
    ("marker", "named"),
    [
        ("colour=red", "'colour'. Known keys: status, times, delay"),
        ("status", "'status'"),
        ("status=600", "400 to 599"),
        ("delay=nan", "seconds"),
    ],
)
async def test_a_marker_that_makes_no_sense_is_refused_by_name(ask: Ask, marker: str, named: str) -> None:
    error = (await ask(f"[rehearse: {marker}]")).json()["error"]
    assert (error["param"], error["code"]) == ("input", "invalid_rehearsal")
    assert named in error["message"]


@pytest.mark.parametrize(
    ("method", "path", "content", "header", "status"),
    [
        ("POST", "/responses", b"{", "Bearer made-up", 400),
        ("POST", "/responses", b"[]", "Bearer made-up", 400),
        ("POST", "/responses", b"{}", "Bearer", 401),
        ("GET", "/responses", b"", "Bearer made-up", 405),
        ("POST", "/responses/resp_unknown/cancel", b"", "Bearer made-up", 404),
        ("POST", "/chat/completions", b"", "Bearer made-up", 404),
    ],
)
async def test_other_requests_are_refused_as_the_api_refuses_them(
    client: httpx2.AsyncClient, method: str, path: str, content: bytes, header: str, status: int
) -> None:
    reply = await client.request(method, path, content=content, headers={"authorization": header})
    assert reply.status_code == status
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}
    assert reply.headers["x-request-id"].startswith("req_")


async def test_closing_ends_answers_under_way(server: RehearsalServer, client: httpx2.AsyncClient, ask: Ask) -> None:
    slow = asyncio.ensure_future(ask(SLOW))
    await ask("Hello")
    await asyncio.wait_for(server.close(), 5)
    with pytest.raises(httpx2.TransportError):
        await asyncio.wait_for(slow, 5)
    with pytest.raises(httpx2.ConnectError):
        await ask("Hello")
