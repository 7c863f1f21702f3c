import asyncio
import json
from typing import Any

import httpx2
import pytest
from openai.types.responses import Response

from openai_responses_mcp.rehearsal import faults
from openai_responses_mcp.rehearsal.server import RehearsalServer
from tests.rehearsal.conftest import Ask

SEARCH = {"tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"]}


@pytest.mark.parametrize(
    ("keys", "status", "type", "code"),
    [
        ("status=429", 429, "requests", "rate_limit_exceeded"),
        ("status=429; code=insufficient_quota", 429, "insufficient_quota", "insufficient_quota"),
        ("status=500", 500, "server_error", "server_error"),
        ("status=599", 599, "server_error", None),
        ("status=418", 418, "invalid_request_error", None),
    ],
)
async def test_a_status_comes_with_the_usual_error(ask: Ask, keys: str, status: int, type: str, code: str) -> None:
    reply = await ask(f"Hello [rehearse: {keys}]")
    assert reply.status_code == status
    assert (reply.json()["error"]["type"], reply.json()["error"]["code"]) == (type, code)


async def test_message_headers_and_retry_after_are_sent_as_given(ask: Ask) -> None:
    reply = await ask("[rehearse: status=503; message=Come back; retry_after=Fri, 31 Dec 1999; header=X-Note: yes]")
    assert reply.json()["error"]["message"] == "Come back"
    assert (reply.headers["retry-after"], reply.headers["x-note"]) == ("Fri, 31 Dec 1999", "yes")


async def test_a_fault_ends_after_its_times_and_questions_do_not_share_them(ask: Ask) -> None:
    marker = "[rehearse: status=429; times=2; text=Well]"
    assert [(await ask(f"One {marker}")).status_code for _ in range(3)] == [429, 429, 200]
    assert (await ask(f"Two {marker}")).status_code == 429
    assert (await ask(f"One {marker}")).json()["output"][-1]["content"][0]["text"] == "Well"


async def test_a_redirect_names_its_place(ask: Ask) -> None:
    reply = await ask("[rehearse: redirect=https://example.com/elsewhere]")
    assert (reply.status_code, reply.headers["location"]) == (307, "https://example.com/elsewhere")


@pytest.mark.parametrize(
    ("drop", "error"),
    [
        ("before", httpx2.RemoteProtocolError),
        ("mid", httpx2.RemoteProtocolError),
        ("reset", httpx2.ReadError),
    ],
)
@pytest.mark.parametrize("stream", [True, False])
async def test_a_dropped_connection_is_no_answer(
    ask: Ask, server: RehearsalServer, drop: str, error: type[Exception], stream: bool
) -> None:
    with pytest.raises(error):
        await ask(f"[rehearse: drop={drop}]", stream=stream)
    await server.wait_until(lambda: server.open_connections == 0)
    assert (server.aborted, server.disconnects) == (0, 0)


async def test_a_truncated_body_is_shorter_than_announced(ask: Ask) -> None:
    with pytest.raises(httpx2.RemoteProtocolError):
        await ask("[rehearse: body=truncated]")


@pytest.mark.parametrize("body", ["empty", "html", "bad-utf8", "not-json"])
async def test_some_bodies_are_no_json(ask: Ask, body: str) -> None:
    reply = await ask(f"[rehearse: body={body}]")
    assert reply.status_code == 200
    with pytest.raises(ValueError):  # noqa: PT011 the kinds differ: bad JSON, bad UTF-8
        json.loads(reply.content)


@pytest.mark.parametrize(
    "body",
    [
        "null", "list", "string", "wrong-shape", "wrong-output", "wrong-item", "wrong-content", "wrong-text",
        "wrong-annotations", "wrong-usage", "wrong-id", "wrong-model", "wrong-status", "wrong-sources",
    ],
)  # fmt: skip
async def test_some_bodies_are_json_that_is_no_response(ask: Ask, body: str) -> None:
    reply = await ask(f"latest [rehearse: body={body}]", **SEARCH)
    with pytest.raises(ValueError, match="validation error"):
        Response.model_validate(reply.json(), strict=True)


async def test_a_huge_body_is_a_valid_answer_and_is_never_held_whole(ask: Ask, client: httpx2.AsyncClient) -> None:
    body = {"model": "gpt-5", "input": "[rehearse: body=huge]"}
    length, head, tail = 0, b"", b""
    async with client.stream("POST", "/responses", json=body) as reply:
        async for data in reply.aiter_bytes():
            head, tail = head or data[:100], (tail + data)[-2000:]
            length += len(data)
    assert length > faults.HUGE_BYTES
    assert head.startswith(b'{"id":"resp_')
    assert tail.endswith(b"}")


@pytest.mark.parametrize("keys", ["body=drip", "stream=drip"])
async def test_a_dripping_answer_comes_byte_by_byte(
    client: httpx2.AsyncClient, server: RehearsalServer, keys: str
) -> None:
    body = {"model": "gpt-5", "input": f"[rehearse: {keys}]", "stream": keys.startswith("stream")}
    async with client.stream("POST", "/responses", json=body) as reply:
        pieces = reply.aiter_raw()
        first = [await asyncio.wait_for(anext(pieces), 5) for _ in range(3)]
    assert {len(piece) for piece in first} == {1}
    await server.wait_for_abort()


def complete_events(body: bytes) -> list[bytes]:
    return body.split(b"\n\n")[:-1]


async def streamed(ask: Ask, fault: str) -> bytes:
    return (await ask(f"Hello [rehearse: stream={fault}]", stream=True)).content


@pytest.mark.parametrize("fault", ["cut", "cut-in-event", "done-without-completed", "error-event", "empty"])
async def test_some_streams_end_without_a_completed_response(ask: Ask, fault: str) -> None:
    assert b"response.completed" not in await streamed(ask, fault)


async def test_streams_end_where_their_names_say(ask: Ask) -> None:
    assert (await streamed(ask, "cut")).endswith(b"\n\n")
    assert not (await streamed(ask, "cut-in-event")).endswith(b"\n\n")
    assert (await streamed(ask, "done-without-completed")).endswith(b"data: [DONE]\n\n")
    assert complete_events(await streamed(ask, "error-event"))[-1].startswith(b"event: error\n")
    assert (await streamed(ask, "twice")).count(b"event: response.completed\n") == 2
    assert await streamed(ask, "empty") == b""


@pytest.mark.parametrize(
    ("fault", "seen"),
    [
        ("bad-json", b'"response.output_text.delta",\n\n'),
        ("bad-utf8", b"\xff\xfe"),
        ("garbage-event", b"response.rehearsal.unknown"),
        ("non-object", b"data: [7]\n\n"),
    ],
)
async def test_some_streams_have_one_bad_event_among_the_good(ask: Ask, fault: str, seen: bytes) -> None:
    body = await streamed(ask, fault)
    assert seen in body
    assert complete_events(body)[-1].startswith(b"event: response.completed\n")


async def test_a_stream_that_never_ends_waits_for_its_client_to_leave(
    client: httpx2.AsyncClient, server: RehearsalServer
) -> None:
    body = {"model": "gpt-5", "input": "[rehearse: stream=never]", "stream": True}
    async with client.stream("POST", "/responses", json=body) as reply:
        seen = b""
        async for data in reply.aiter_bytes():
            seen += data
            if b"response.in_progress\n" in seen:
                break
    await server.wait_for_abort()


async def test_stream_events_can_be_slow(client: httpx2.AsyncClient, server: RehearsalServer) -> None:
    body = {"model": "gpt-5", "input": "[rehearse: slow_stream=60]", "stream": True}
    async with client.stream("POST", "/responses", json=body) as reply:
        first = await asyncio.wait_for(anext(reply.aiter_bytes()), 5)
    assert complete_events(first)[0].startswith(b"event: response.created\n")
    assert len(complete_events(first)) == 1
    await server.wait_for_abort()


async def test_slow_events_all_arrive(ask: Ask) -> None:
    body = (await ask("[rehearse: slow_stream=0.001]", stream=True)).content
    assert complete_events(body)[-1].startswith(b"event: response.completed\n")


async def test_body_faults_leave_streams_alone_and_the_other_way_round(ask: Ask) -> None:
    assert complete_events((await ask("[rehearse: body=null]", stream=True)).content)
    assert (await ask("[rehearse: stream=cut]")).json()["status"] == "completed"


async def outcome(ask: Ask, keys: str) -> dict[str, Any]:
    response: dict[str, Any] = (await ask(f"Hello [rehearse: {keys}]", **SEARCH)).json()
    return response


async def test_outcomes_look_as_the_api_has_them(ask: Ask) -> None:
    assert (await outcome(ask, "outcome=refusal"))["output"][-1]["content"][0]["type"] == "refusal"
    incomplete = await outcome(ask, "outcome=incomplete")
    assert (incomplete["status"], incomplete["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
    assert incomplete["output"][-1]["status"] == "incomplete"
    assert [item["type"] for item in (await outcome(ask, "outcome=incomplete-empty"))["output"]] == ["reasoning"]
    failed = await outcome(ask, "outcome=failed; code=rate_limit_exceeded; message=No")
    assert (failed["status"], failed["error"]) == ("failed", {"code": "rate_limit_exceeded", "message": "No"})
    assert (await outcome(ask, "outcome=no-text"))["status"] == "completed"
    phases = [item.get("phase") for item in (await outcome(ask, "outcome=commentary"))["output"]]
    assert phases == ["commentary", None, "final_answer"]
    odd = await outcome(ask, "outcome=unknown-item; citations=1")
    assert odd["output"][0]["type"] == "rehearsal_item"
    kinds = [annotation["type"] for annotation in odd["output"][2]["content"][0]["annotations"]]
    assert kinds == ["rehearsal_annotation", "url_citation"]


@pytest.mark.parametrize("question", ["Hello", "こんにちは"])
async def test_the_text_can_be_given_and_sized(ask: Ask, question: str) -> None:
    for size in (10, 100_000):
        part = (await ask(f"{question} [rehearse: size={size}]")).json()["output"][-1]["content"][0]
        assert size - 3 <= len(part["text"].encode()) <= size
    part = (await ask(rf"{question} [rehearse: text=a\nb; citations=1]")).json()["output"][-1]["content"][0]
    assert (part["text"], len(part["annotations"])) == ("a\nb", 1)


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ("none", []),
        ("api", [{"type": "api", "name": "oai-weather"}]),
        ("url", [{"type": "url", "url": "https://example.com/rehearsal/1"}]),
        (
            "dated",
            [
                {"type": "url", "url": "https://example.com/rehearsal/1", "published_at": "2026-01-01"},
                {"type": "url", "url": "https://example.com/rehearsal/2", "published_date": "2026-01-02"},
                {"type": "url", "url": "https://example.com/rehearsal/3", "date": "2026-01-03"},
            ],
        ),
    ],
)
async def test_sources_can_be_chosen(ask: Ask, sources: str, expected: list[dict[str, str]]) -> None:
    response = await outcome(ask, f"search=yes; citations=0; sources={sources}")
    assert response["output"][1]["action"]["sources"] == expected
