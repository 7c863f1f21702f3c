import asyncio

import httpx2
import pytest

from openai_responses_mcp.rehearsal.server import MAX_BODY_BYTES, RehearsalServer

HELLO = {"model": "gpt-5", "input": "Hello"}
SLOW = {"model": "gpt-5", "input": "[rehearse: delay=60]"}


def client_of(base_url: str) -> httpx2.AsyncClient:
    headers = {"authorization": "Bearer made-up"}
    return httpx2.AsyncClient(base_url=base_url, headers=headers, timeout=5, trust_env=False)


async def test_it_listens_on_loopback_until_it_is_closed() -> None:
    server = RehearsalServer()
    base_url = await server.start()
    assert base_url.startswith("http://127.0.0.1:")
    async with client_of(base_url) as client:
        assert (await client.post("/responses", json=HELLO)).status_code == 200
    await server.close()
    await server.close()
    async with client_of(base_url) as client:
        with pytest.raises(httpx2.ConnectError):
            await client.post("/responses", json=HELLO)


async def test_closing_ends_answers_under_way() -> None:
    server = RehearsalServer()
    async with client_of(await server.start()) as client:
        slow = asyncio.create_task(client.post("/responses", json=SLOW))
        # Answered after the slow one arrived: both requests are on their way in this order.
        await client.post("/responses", json=HELLO)
        await asyncio.wait_for(server.close(), 5)
        with pytest.raises(httpx2.TransportError):
            await asyncio.wait_for(slow, 5)


async def test_hundreds_of_questions_at_once_are_all_answered() -> None:
    server = RehearsalServer()
    async with client_of(await server.start()) as client:
        replies = await asyncio.gather(*(client.post("/responses", json=HELLO) for _ in range(200)))
    await server.close()
    assert len({reply.json()["id"] for reply in replies}) == 200


async def test_a_body_that_is_too_large_is_refused() -> None:
    server = RehearsalServer()
    async with client_of(await server.start()) as client:
        reply = await client.post("/responses", content=b"x" * (MAX_BODY_BYTES + 1))
    await server.close()
    assert reply.status_code == 413
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}
