"""What every `PresenceStore` must do, asked of the fake, of SQLite and of PostgreSQL."""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from openai_responses_mcp.gate.clock import (
    BETWEEN_RENEWALS_SECONDS,
    LEASE_SECONDS,
    Presence,
    PresenceStore,
    is_guard_gone,
    present,
    stay,
    timestamp,
)
from openai_responses_mcp.gate.stores import Stores
from tests.agents.fakes import ODD_TEXTS, FakeClock, within

NOW = datetime(2026, 11, 16, 9, tzinfo=UTC)
MOMENT = timestamp(NOW)


@pytest.fixture
def store(stores: Stores) -> PresenceStore:
    return stores.presence


def a_guard(presence_id: str = "g1") -> Presence:
    return Presence(presence_id, "guard", "files", MOMENT, MOMENT, "policy.yaml")


async def test_a_guard_and_a_desk_are_there_until_they_leave(store: PresenceStore) -> None:
    desk = Presence("d1", "desk", "page", timestamp(NOW + timedelta(seconds=1)), timestamp(NOW + timedelta(seconds=1)))
    await store.renew(desk)
    await store.renew(a_guard())
    assert await store.renewed_since(MOMENT) == [a_guard(), desk]
    assert await store.renewed_since(MOMENT, "desk") == [desk]
    assert desk.detail == ""
    await store.leave("g1")
    await store.leave("never came")
    assert await store.renewed_since(MOMENT) == [desk]


async def test_a_lease_that_is_not_renewed_runs_out(store: PresenceStore) -> None:
    await store.renew(a_guard())
    assert await present(store, NOW + timedelta(seconds=LEASE_SECONDS)) == [a_guard()]
    assert await present(store, NOW + timedelta(seconds=LEASE_SECONDS, microseconds=1)) == []
    renewed = replace(a_guard(), renewed_at=timestamp(NOW + timedelta(seconds=20)))
    await store.renew(renewed)
    assert await present(store, NOW + timedelta(seconds=45), "guard") == [renewed]


async def test_a_guard_is_gone_when_its_own_lease_has_run_out(store: PresenceStore) -> None:
    for guard in ("guard_a", "guard_b"):
        await store.renew(a_guard(guard))
    later = NOW + timedelta(seconds=LEASE_SECONDS + 1)
    await store.renew(replace(a_guard("guard_b"), renewed_at=timestamp(later)))
    # A guard with many clients has several runs. What begins alike by chance is another guard's.
    runs = ["guard_a", "guard_a_1", "guard_b", "guard_b_1", "guard_ab", "guard_c"]
    assert [await is_guard_gone(store, later, one) for one in runs] == [True, True, False, False, False, False]
    assert not await is_guard_gone(store, NOW + timedelta(seconds=LEASE_SECONDS), "guard_a")
    await store.leave("guard_a")
    assert not await is_guard_gone(store, later, "guard_a")


async def test_any_text_can_be_stored(store: PresenceStore) -> None:
    for odd in ODD_TEXTS:
        presence = replace(a_guard(), name=odd, detail=odd)
        await store.renew(presence)
        assert await store.renewed_since(MOMENT) == [presence]


async def test_a_lease_is_renewed_until_its_owner_leaves(store: PresenceStore) -> None:
    clock, sleeps = FakeClock(), asyncio.Queue[float]()

    async def sleep(seconds: float) -> None:
        sleeps.put_nowait(seconds)
        clock.move(seconds)
        if clock.now() > began + timedelta(seconds=LEASE_SECONDS):
            await asyncio.Event().wait()

    began = clock.now()
    staying = asyncio.create_task(stay(store, clock, a_guard(), sleep))
    for _ in range(int(LEASE_SECONDS / BETWEEN_RENEWALS_SECONDS) + 1):
        assert await within(sleeps.get()) == BETWEEN_RENEWALS_SECONDS
    assert [one.presence_id for one in await present(store, clock.now(), "guard")] == ["g1"]
    staying.cancel()
    await within(asyncio.wait([staying]))
    assert await present(store, clock.now()) == []
