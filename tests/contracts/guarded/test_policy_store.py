"""What every `PolicyStore` must do, asked of the fake, of SQLite and of PostgreSQL."""

import pytest

from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.rules import PROFILES, PolicyProfile, PolicyStore
from openai_responses_mcp.gate.stores import Stores


@pytest.fixture
def store(stores: Stores) -> PolicyStore:
    return stores.policies


@pytest.mark.parametrize("name", ["strict", "balanced", "fast"])
async def test_the_three_profiles_are_always_there(store: PolicyStore, name: str) -> None:
    assert await store.get_profile(name) == PROFILES[name]


async def test_a_profile_can_be_redefined_more_than_once(store: PolicyStore) -> None:
    await store.set_profile(PolicyProfile("strict", 2, 4, ("mcp:github/*",)))
    await store.set_profile(PolicyProfile("strict", 0, 3, ("mcp:github/*", "function:a")))
    assert await store.get_profile("strict") == PolicyProfile("strict", 0, 3, ("mcp:github/*", "function:a"))
    assert await store.get_profile("fast") == PROFILES["fast"]


async def test_an_unknown_profile_is_refused(store: PolicyStore) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-POLICY-INVALID"):
        await store.get_profile("lenient")
