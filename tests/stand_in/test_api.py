import httpx2
import pytest

from tests.stand_in.conftest import IMPATIENT, Ask
from tests.stand_in.server import StandIn


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
    ask: Ask, server: StandIn, drop: str, error: type[Exception], stream: bool
) -> None:
    with pytest.raises(error):
        await ask(f"[rehearse: drop={drop}]", stream=stream)
    await server.wait_until(lambda: server.open_connections == 0)
    assert (server.aborted, server.disconnects) == (0, 0)


async def test_every_answer_can_be_delayed() -> None:
    server = StandIn(delay_seconds=60)
    headers = {"authorization": "Bearer made-up"}
    async with httpx2.AsyncClient(base_url=await server.start(), headers=headers, trust_env=False) as client:
        with pytest.raises(httpx2.ReadTimeout):
            await client.post("/responses", json={"model": "gpt-5", "input": "Hello"}, timeout=IMPATIENT)
    await server.wait_for_abort()
    await server.close()


async def test_ids_that_are_unknown_expired_or_not_stored_are_told_apart(ask: Ask) -> None:
    unstored = (await ask("Hello", store=False)).json()["id"]
    for unknown in (unstored, "resp_other"):
        error = (await ask("Hello", previous_response_id=unknown)).json()["error"]
        assert (error["code"], error["param"]) == ("previous_response_not_found", "previous_response_id")
    reply = await ask("Hello", previous_response_id="resp_expired1")
    error = reply.json()["error"]
    assert (reply.status_code, error["code"], error["param"]) == (400, None, None)
    assert "previous_response_id" in error["message"]
    assert "expired" in error["message"]
