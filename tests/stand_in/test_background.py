from typing import Any

import httpx2
import pytest

from tests.rehearsal.test_stream_events import read_events
from tests.stand_in.conftest import IMPATIENT, Ask
from tests.stand_in.server import StandIn, StandInThread

BACKGROUND = {"background": True, "stream": True}


async def read(client: httpx2.AsyncClient, method: str, path: str, **options: Any) -> tuple[bytes, bool]:
    """What came, and whether it came to a proper end."""
    seen = b""
    async with client.stream(method, path, **options) as reply:
        try:
            async for data in reply.aiter_bytes():
                seen += data
        except httpx2.RemoteProtocolError:
            return seen, False
    return seen, True


async def start(client: httpx2.AsyncClient, keys: str) -> tuple[bytes, bool]:
    return await read(
        client, "POST", "/responses", json={"model": "gpt-5", "input": f"Why? [rehearse: {keys}]", **BACKGROUND}
    )


async def go_on(client: httpx2.AsyncClient, response_id: str, number: int) -> tuple[bytes, bool]:
    return await read(client, "GET", f"/responses/{response_id}", params={"stream": "true", "starting_after": number})


def id_in(stream: bytes) -> str:
    return str(read_events(stream.partition(b"\n\n")[0])[0]["response"]["id"])


async def test_each_stream_is_cut_where_the_question_says(client: httpx2.AsyncClient) -> None:
    whole, _ = await start(client, "text=Well")
    first, is_whole = await start(client, "text=Well; cuts=after 2, in 4, end 5, none")
    assert (len(read_events(first)), is_whole) == (3, False)
    response_id = id_in(first)
    second, is_whole = await go_on(client, response_id, 2)
    assert (second.count(b"\n\n"), second.endswith(b"\n\n"), is_whole) == (1, False, False)
    third, is_whole = await go_on(client, response_id, 3)
    assert ([event["sequence_number"] for event in read_events(third)], is_whole) == ([4, 5], True)
    fourth, is_whole = await go_on(client, response_id, 5)
    assert read_events(fourth)[-1]["type"] == "response.completed"
    assert is_whole
    assert len(read_events(first)) + 1 + 2 + len(read_events(fourth)) == len(read_events(whole))


async def test_a_cut_before_what_is_asked_for_sends_nothing(client: httpx2.AsyncClient) -> None:
    first, _ = await start(client, "cuts=after 2, after 1")
    assert await go_on(client, id_in(first), 2) == (b"", False)


async def test_a_run_is_not_touched_by_the_cuts_of_its_readers(client: httpx2.AsyncClient, server: StandIn) -> None:
    first, _ = await start(client, "cuts=after 0; slow_stream=0.001")
    await server.wait_until_nothing_runs()
    assert (await client.get(f"/responses/{id_in(first)}")).json()["status"] == "completed"
    assert [request.method for request in server.requests] == ["POST", "GET"]


async def test_the_way_back_fails_as_often_as_the_question_says(client: httpx2.AsyncClient) -> None:
    first, _ = await start(client, "cuts=after 1; get_status=503, 200, 429, 0; retry_after=7")
    path = f"/responses/{id_in(first)}"
    assert (await client.get(path)).status_code == 503
    assert (await client.get(path)).status_code == 200
    refused = await client.get(path, params={"stream": "true"})
    assert (refused.status_code, refused.headers["retry-after"]) == (429, "7")
    with pytest.raises(httpx2.RemoteProtocolError):
        await client.get(path)
    assert (await client.get(path)).json()["status"] == "completed"


async def test_a_cancel_can_fail_first(client: httpx2.AsyncClient, server: StandIn) -> None:
    first, _ = await start(client, "cuts=after 1; hang_after=3; cancel_status=500")
    path = f"/responses/{id_in(first)}/cancel"
    assert (await client.post(path)).status_code == 500
    assert server.api.background.running == [id_in(first)]
    assert (await client.post(path)).json()["status"] == "cancelled"
    assert server.api.background.running == []


async def test_a_run_can_stay_in_the_queue(ask: Ask, client: httpx2.AsyncClient, server: StandIn) -> None:
    response = (await ask("Why? [rehearse: queue=60]", background=True)).json()
    first, _ = await start(client, "queue=60; cuts=after 1")
    assert [event["type"] for event in read_events(first)] == ["response.created", "response.queued"]
    assert (await client.get(f"/responses/{response['id']}")).json()["status"] == "queued"
    assert len(server.api.background.running) == 2


async def test_a_run_that_hangs_never_ends(client: httpx2.AsyncClient, server: StandIn) -> None:
    first, _ = await start(client, "hang_after=4; cuts=after 4")
    assert (await client.get(f"/responses/{id_in(first)}")).json()["status"] == "in_progress"
    with pytest.raises(httpx2.ReadTimeout):
        await client.get(f"/responses/{id_in(first)}?stream=true&starting_after=4", timeout=IMPATIENT)
    assert server.api.background.running == [id_in(first)]


async def test_the_api_can_cancel_by_itself(client: httpx2.AsyncClient) -> None:
    stream, is_whole = await start(client, "cancelled_after=5")
    assert (read_events(stream)[-1]["sequence_number"], is_whole) == (5, True)
    assert (await client.get(f"/responses/{id_in(stream)}")).json()["status"] == "cancelled"


async def test_a_response_expires_after_as_many_reads_as_the_question_says(client: httpx2.AsyncClient) -> None:
    stream, _ = await start(client, "expires=1")
    path = f"/responses/{id_in(stream)}"
    assert [(await client.get(path)).status_code for _ in range(3)] == [200, 404, 404]


async def test_a_response_can_be_too_old_to_stream(client: httpx2.AsyncClient) -> None:
    stream, _ = await start(client, "too_old=yes")
    path = f"/responses/{id_in(stream)}"
    refused = await client.get(path, params={"stream": "true"})
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, None)
    assert "no longer be streamed" in refused.json()["error"]["message"]
    assert (await client.get(path)).json()["status"] == "completed"


async def test_an_api_may_not_know_the_parameter(ask: Ask) -> None:
    refused = await ask("Why? [rehearse: background=no]", **BACKGROUND)
    assert (refused.status_code, refused.json()["error"]["param"]) == (400, "background")
    assert "'background'" in refused.json()["error"]["message"]
    assert (await ask("Why? [rehearse: background=no]", stream=True)).status_code == 200


@pytest.mark.parametrize("fault", ["stream=cut", "drop=mid", "stream=garbage-event"])
async def test_the_first_stream_can_be_spoiled_like_any_other(
    client: httpx2.AsyncClient, server: StandIn, fault: str
) -> None:
    first, _ = await start(client, fault)
    await server.wait_until_nothing_runs()
    rest, is_whole = await go_on(client, id_in(first), 2)
    assert is_whole
    assert read_events(rest)[-1]["type"] == "response.completed"


def test_the_thread_waits_until_nothing_runs() -> None:
    with StandInThread() as rehearsal:
        with httpx2.Client(headers={"authorization": "Bearer made-up"}, trust_env=False, timeout=5) as client:
            body = {"model": "gpt-5", "input": "Why? [rehearse: slow_stream=0.001]", "background": True}
            client.post(rehearsal.base_url + "/responses", json=body)
            rehearsal.wait_until_nothing_runs()
        assert rehearsal.server.api.background.running == []
