"""A stand-in on loopback and a plain HTTP client that asks it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import httpx2
import pytest

from tests.stand_in.server import StandIn

# Gives up when nothing comes for a moment, however long a busy machine takes to connect and to send.
IMPATIENT = httpx2.Timeout(None, read=0.05)

Ask = Callable[..., Awaitable[httpx2.Response]]

SEARCH = {"tools": [{"type": "web_search"}], "include": ["web_search_call.action.sources"]}


@pytest.fixture
async def server() -> AsyncIterator[StandIn]:
    server = StandIn(keep_requests=1000)
    yield server
    await server.close()


@pytest.fixture
async def base_url(server: StandIn) -> str:
    return await server.start()


@pytest.fixture
async def client(base_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with httpx2.AsyncClient(
        base_url=base_url, headers={"authorization": "Bearer made-up"}, timeout=5, trust_env=False
    ) as client:
        yield client


@pytest.fixture
def ask(client: httpx2.AsyncClient) -> Ask:
    async def ask(question: Any, **fields: Any) -> httpx2.Response:
        return await client.post("/responses", json={"model": "gpt-5", "input": question, **fields})

    return ask
