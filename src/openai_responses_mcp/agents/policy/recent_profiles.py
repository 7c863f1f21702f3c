"""Profiles, remembered for a moment: reading the store before every call costs more than deciding."""

import time

from openai_responses_mcp.agents.policy.ports import PolicyStore
from openai_responses_mcp.agents.policy.profiles import PolicyProfile

KEPT_SECONDS = 1.0


class RecentProfiles(PolicyStore):
    """Around another store; what another process changes there counts a moment later."""

    def __init__(self, store: PolicyStore) -> None:
        self._store = store
        self._read: dict[str, tuple[float, PolicyProfile]] = {}

    async def get_profile(self, name: str) -> PolicyProfile:
        read_at, profile = self._read.get(name, (0.0, None))
        if profile is None or time.monotonic() - read_at > KEPT_SECONDS:
            profile = await self._store.get_profile(name)
            self._read[name] = (time.monotonic(), profile)
        return profile

    async def set_profile(self, profile: PolicyProfile) -> None:
        await self._store.set_profile(profile)
        self._read.clear()
