"""The rehearsal on loopback and a plain HTTP client that asks it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest

from openai_responses_mcp.rehearsal.server import RehearsalServer

Ask = Callable[..., Awaitable[httpx2.Response]]

SEARCH = {"tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"]}
WEATHER = "本日 2026-11-16 の東京の天気は？"


@pytest.fixture
async def base_url() -> AsyncIterator[str]:
    server = RehearsalServer()
    yield await server.start()
    await server.close()


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    headers = {"authorization": "Bearer made-up"}
    async with httpx2.AsyncClient(base_url=base_url, headers=headers, timeout=5, trust_env=False) as client:
        yield client


@pytest.fixture
def ask(client: httpx2.AsyncClient) -> Ask:
    async def ask(question: Any, **fields: Any) -> httpx2.Response:
        return await client.post("/responses", json={"model": "gpt-5", "input": question, **fields})

    return ask
