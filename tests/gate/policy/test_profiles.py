"""Profiles: their limits and scopes, the stricter of two, and how long one that was read counts."""

from typing import Any

import pytest

from openai_responses_mcp.gate.errors import AgentsError
from openai_responses_mcp.gate.policy.rules import (
    KEPT_SECONDS,
    PROFILES,
    Policy,
    PolicyProfile,
    RecentProfiles,
    profile_name,
    stricter,
)
from tests.agents.fake_stores import FakePolicyStore


def test_a_profile_that_makes_no_sense_is_refused() -> None:
    cases: list[tuple[Any, Any, Any, Any]] = [
        ("mine", 1, 5, ()),
        ("fast", 5, 5, ()),
        ("fast", -1, 5, ()),
        ("fast", 1, 7, ()),
        ("fast", 1.0, 5, ()),
        ("fast", 1, 5, ""),
        ("fast", 1, 5, ("function",)),
        ("fast", 1, 5, ("shell:*",)),
        ("fast", 1, 5, (5,)),
    ]
    for name, allow_up_to, refuse_from, scopes in cases:
        with pytest.raises(AgentsError, match="AGENTS-E-POLICY-INVALID"):
            PolicyProfile(name, allow_up_to, refuse_from, scopes)


def test_limits_may_allow_nothing_or_refuse_nothing_and_scopes_may_be_a_list() -> None:
    scopes: Any = ["mcp:*", "*:pay"]
    assert PolicyProfile("fast", 0, 6, scopes).allowed_tool_scopes == ("mcp:*", "*:pay")


def test_functions_and_skills_are_in_scope_of_every_profile_and_servers_of_all_but_strict() -> None:
    scopes = {name: set(profile.allowed_tool_scopes) for name, profile in PROFILES.items()}
    own = {"function:*", "skill:*"}
    assert scopes == {"strict": own, "balanced": {*own, "mcp:*"}, "fast": {*own, "mcp:*"}}


def test_the_profile_is_balanced_where_none_is_named_and_an_unknown_name_is_refused() -> None:
    assert Policy().profile_name() == "balanced"
    with pytest.raises(AgentsError, match="AGENTS-E-POLICY-INVALID"):
        profile_name("lenient")
    assert profile_name("fast") == "fast"


def test_the_stricter_of_two_profiles_counts() -> None:
    cases: list[tuple[str, str | None, str]] = [
        ("fast", "strict", "strict"),
        ("strict", "balanced", "strict"),
        ("fast", "balanced", "balanced"),
        ("fast", "lenient", "fast"),
    ]
    for name, other, found in cases:
        assert stricter(name, other) == found


async def test_a_profile_that_was_read_counts_for_a_moment() -> None:
    store, now = FakePolicyStore(), [5.0]
    recent = RecentProfiles(store, lambda: now[0])
    changed = PolicyProfile("fast", 1, 2, ())
    await recent.get_profile("fast")
    await store.set_profile(changed)
    now[0] += KEPT_SECONDS
    assert await recent.get_profile("fast") == PROFILES["fast"]
    now[0] += 0.5
    assert await recent.get_profile("fast") == changed
    await recent.set_profile(PROFILES["fast"])
    assert await recent.get_profile("fast") == PROFILES["fast"]
