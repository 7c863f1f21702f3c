"""What every `BudgetStore` must do, asked of the fake, of SQLite and of PostgreSQL."""

import asyncio

import pytest

from openai_responses_mcp.gate.budgets import BudgetStore
from openai_responses_mcp.gate.stores import Stores
from tests.agents.fakes import ODD_TEXTS, within


@pytest.fixture
def store(stores: Stores) -> BudgetStore:
    return stores.budgets


async def test_nothing_is_used_and_nothing_allowed_at_first(store: BudgetStore) -> None:
    assert await store.read("day") == (0, 0)


async def test_spending_adds_up_per_window(store: BudgetStore) -> None:
    await store.spend("day", 1)
    await store.spend("day", 5_000_000_000)
    await store.spend("hour", 2)
    assert await store.read("day") == (5_000_000_001, 0)
    assert await store.read("hour") == (2, 0)


async def test_the_allowed_amount_never_decreases(store: BudgetStore) -> None:
    await store.allow_to("day", 20)
    await store.spend("day", 3)
    await store.allow_to("day", 10)
    assert await store.read("day") == (3, 20)
    await store.allow_to("day", 30)
    assert await store.read("day") == (3, 30)


async def test_concurrent_spending_loses_nothing(store: BudgetStore) -> None:
    await within(asyncio.gather(*(store.spend("day", 1) for _ in range(20))))
    assert await store.read("day") == (20, 0)


async def test_any_text_is_a_window(store: BudgetStore) -> None:
    for text in ODD_TEXTS:
        await store.spend(text, 1)
        await store.spend(text, 1)
        assert await store.read(text) == (2, 0)
