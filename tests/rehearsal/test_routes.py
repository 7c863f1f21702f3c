"""The API as an HTTP client meets it."""

from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI

from tests.rehearsal.conftest import WEATHER, Ask


@pytest.mark.parametrize("body", [b"{", b"[]", b'{"a": NaN}', b"\xff", b"[" * 200_000])
async def test_a_body_that_is_no_json_object_is_refused(client: httpx2.AsyncClient, body: bytes) -> None:
    reply = await client.post("/responses", content=body)
    assert reply.status_code == 400
    assert "JSON" in reply.json()["error"]["message"]


@pytest.mark.parametrize("header", ["", "Bearer", "Basic abc"])
async def test_a_request_without_a_key_is_refused(client: httpx2.AsyncClient, header: str) -> None:
    reply = await client.post("/responses", json={}, headers={"authorization": header})
    assert reply.status_code == 401
    assert "API key" in reply.json()["error"]["message"]


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/responses", 405),
        ("POST", "/responses/resp_1", 405),
        ("DELETE", "/responses/resp_1/cancel", 405),
        ("POST", "/chat/completions", 404),
    ],
)
async def test_other_paths_and_methods_are_refused(
    client: httpx2.AsyncClient, method: str, path: str, status: int
) -> None:
    reply = await client.request(method, path)
    assert reply.status_code == status
    assert set(reply.json()["error"]) == {"message", "type", "param", "code"}


async def test_the_vendors_client_reads_the_answer(base_url: str) -> None:
    async with AsyncOpenAI(api_key="made-up", base_url=base_url, max_retries=0, timeout=30) as client:
        response = await client.responses.create(model="gpt-5", input=WEATHER, tools=[{"type": "web_search"}])
    assert "2026-11-16" in response.output_text


@pytest.mark.parametrize("fields", [{}, {"stream": True}, {"model": "no-such-model"}])
async def test_every_reply_has_an_id_of_its_own(ask: Ask, fields: dict[str, Any]) -> None:
    first, second = (await ask("Hello", **fields)).headers, (await ask("Hello", **fields)).headers
    assert first["x-request-id"].startswith("req_")
    assert first["x-request-id"] != second["x-request-id"]
