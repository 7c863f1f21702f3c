"""Time: the clock, moments as texts, and leases that say who is there now.

Guards that run and people at a desk each renew a lease in the store while they live.
"""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Literal, Protocol

from openai_responses_mcp.gate.errors import AgentsError

BETWEEN_RENEWALS_SECONDS = 10.0
LEASE_SECONDS = 30.0

PresenceKind = Literal["guard", "desk"]


class Clock(Protocol):
    def now(self) -> datetime:
        """This moment, with its time zone."""
        ...


class SystemClock(Clock):
    def now(self) -> datetime:
        return datetime.now(UTC)


def timestamp(moment: datetime) -> str:
    """Texts that sort as the moments do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")


def later(moment: str, seconds: float) -> str:
    return timestamp(datetime.fromisoformat(moment) + timedelta(seconds=seconds))


@dataclass(frozen=True, slots=True)
class Presence:
    """`name` is a server's for a guard, and the page or the terminal for a desk; `detail` is shown by `status`."""

    presence_id: str
    kind: PresenceKind
    name: str
    since: str
    renewed_at: str
    detail: str = ""


class PresenceStore(Protocol):
    """Any text can be stored. Raises `StoreUnavailable`."""

    async def renew(self, presence: Presence) -> None:
        """Create or replace; also removes leases that ran out long ago."""
        ...

    async def leave(self, presence_id: str) -> None: ...

    async def renewed_since(self, moment: str, kind: PresenceKind | None = None) -> list[Presence]:
        """Those renewed at this moment or later, oldest first."""
        ...


async def present(store: PresenceStore, now: datetime, kind: PresenceKind | None = None) -> list[Presence]:
    """The leases that have not run out."""
    return await store.renewed_since(timestamp(now - timedelta(seconds=LEASE_SECONDS)), kind)


async def is_guard_gone(store: PresenceStore, now: datetime, run_id: str) -> bool:
    """Whether the guard of this run stopped renewing its lease. False for a run that has no lease in the store.

    A guard with one client has the id of its run. Over HTTP, the id of each run is the guard's, `_` and a number.
    """
    void_before = timestamp(now - timedelta(seconds=LEASE_SECONDS))
    return any(
        one.renewed_at < void_before
        for one in await store.renewed_since("", "guard")
        if one.presence_id in (run_id, run_id.rpartition("_")[0])
    )


async def stay(
    store: PresenceStore,
    clock: Clock,
    presence: Presence,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
) -> None:
    """Renew the lease until this is cancelled, then leave. A store that fails is tried again with the next renewal."""
    try:
        while True:
            with suppress(AgentsError):
                await store.renew(replace(presence, renewed_at=timestamp(clock.now())))
            await sleep(BETWEEN_RENEWALS_SECONDS)
    finally:
        with suppress(AgentsError):
            await store.leave(presence.presence_id)
