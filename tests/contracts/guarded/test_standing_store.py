"""What every `StandingStore` must do, asked of the fake, of SQLite and of PostgreSQL."""

import asyncio
from dataclasses import replace

import pytest

from openai_responses_mcp.gate.approvals.models import StandingApproval, StandingStore
from openai_responses_mcp.gate.stores import Stores
from tests.agents.fakes import ODD_TEXTS, within

NOW = "2026-11-16T09:00:00.000000+00:00"


@pytest.fixture
def store(stores: Stores) -> StandingStore:
    return stores.standing


def a_standing(standing_id: str = "s1", *, tool: str = "files/read") -> StandingApproval:
    return StandingApproval(standing_id, "mcp", tool, "definition", NOW, "a1", "r1")


async def test_one_is_read_back_as_it_was_made(store: StandingStore) -> None:
    whole = StandingApproval("s2", "function", "払う", "d", NOW, "a2", "r2", "args", "session", NOW, "良い")
    await store.create(a_standing())
    await store.create(whole)
    assert await store.get("s1") == a_standing()
    assert await store.get("s2") == whole
    assert await store.get("s3") is None
    with pytest.raises(Exception, match="AGENTS-E-LOG-STORE"):
        await store.create(replace(a_standing(), comment="made again"))
    assert await store.list_standing() == [a_standing(), whole]


async def test_those_of_one_tool_are_listed_oldest_first(store: StandingStore) -> None:
    newer, older = a_standing("b"), a_standing("a")
    await store.create(newer)
    await store.create(a_standing("c", tool="files/write"))
    await store.create(replace(a_standing("d"), tool_kind="function"))
    await store.create(older)
    assert await store.list_standing("mcp", "files/read") == [newer, older]
    assert await store.list_standing("mcp", "files/none") == []


async def test_one_ends_once_and_is_listed_no_more(store: StandingStore) -> None:
    await store.create(a_standing())
    await store.create(a_standing("s2"))
    assert await store.end("s1", NOW, "revoked") is True
    assert await store.end("s1", "later", "expired") is False
    assert await store.end("nobody", NOW, "revoked") is False
    assert await store.list_standing() == [a_standing("s2")]
    assert await store.list_standing("mcp", "files/read") == [a_standing("s2")]
    assert await store.get("s1") == replace(a_standing(), ended_at=NOW, ended_because="revoked")


async def test_of_many_concurrent_ends_one_counts(store: StandingStore) -> None:
    await store.create(a_standing())
    ended = await within(asyncio.gather(*(store.end("s1", NOW, "revoked") for _ in range(8))))
    assert ended.count(True) == 1


async def test_any_text_is_stored(store: StandingStore) -> None:
    for text in ODD_TEXTS:
        odd = StandingApproval(f"s{text}", "mcp", text, "d", NOW, text, text, None, text, None, text)
        await store.create(odd)
        assert await store.get(f"s{text}") == odd
        assert await store.list_standing("mcp", text) == [odd]
        assert await store.end(f"s{text}", NOW, "revoked") is True
