import asyncio

import httpx2
import pytest

from tests.stand_in.conftest import Ask
from tests.stand_in.server import StandIn


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
    client: httpx2.AsyncClient, server: StandIn
) -> None:
    body = {"model": "gpt-5", "input": "[rehearse: stream=never]", "stream": True}
    async with client.stream("POST", "/responses", json=body) as reply:
        seen = b""
        async for data in reply.aiter_bytes():
            seen += data
            if b"response.in_progress\n" in seen:
                break
    await server.wait_for_abort()


async def test_stream_events_can_be_slow(client: httpx2.AsyncClient, server: StandIn) -> None:
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


@pytest.mark.parametrize("keys", ["body=drip", "stream=drip"])
async def test_a_dripping_answer_comes_byte_by_byte(client: httpx2.AsyncClient, server: StandIn, keys: str) -> None:
    body = {"model": "gpt-5", "input": f"[rehearse: {keys}]", "stream": keys.startswith("stream")}
    async with client.stream("POST", "/responses", json=body) as reply:
        pieces = reply.aiter_raw()
        first = [await asyncio.wait_for(anext(pieces), 5) for _ in range(3)]
    assert {len(piece) for piece in first} == {1}
    await server.wait_for_abort()
