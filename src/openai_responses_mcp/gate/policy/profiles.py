"""Policy profiles: which risk runs alone, which is refused, and which tools are in scope; and the store of them."""

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, Protocol, cast, get_args

from openai_responses_mcp.gate.calls import ToolKind
from openai_responses_mcp.gate.errors import is_text, require

ProfileName = Literal["strict", "balanced", "fast"]
DEFAULT_PROFILE: ProfileName = "balanced"


@dataclass(frozen=True, slots=True)
class PolicyProfile:
    """Runs alone up to `allow_up_to`, is refused from `refuse_from`, and a human decides what lies between."""

    name: ProfileName
    allow_up_to: int
    refuse_from: int
    allowed_tool_scopes: tuple[str, ...]

    def __post_init__(self) -> None:
        code = "AGENTS-E-POLICY-INVALID"
        names = get_args(ProfileName)
        require(self.name in names, code, f"a profile is called one of {names}")
        limits = (self.allow_up_to, self.refuse_from)
        require(all(type(limit) is int for limit in limits), code, "allow_up_to and refuse_from are whole numbers")
        require(0 <= self.allow_up_to < self.refuse_from <= 6, code, "0 <= allow_up_to < refuse_from <= 6 must hold")
        require(not isinstance(self.allowed_tool_scopes, str), code, "allowed_tool_scopes is a list of texts")
        object.__setattr__(self, "allowed_tool_scopes", tuple(self.allowed_tool_scopes))
        for scope in self.allowed_tool_scopes:
            kind, _, name = str(scope).partition(":")
            is_scope = is_text(scope) and name != "" and kind in (*get_args(ToolKind), "*")
            require(is_scope, code, f"a scope is kind:name with kind mcp, function or skill, not {scope!r}")


PROFILES: Mapping[str, PolicyProfile] = {
    "strict": PolicyProfile("strict", 1, 5, ("function:*", "skill:*")),
    "balanced": PolicyProfile("balanced", 2, 5, ("function:*", "skill:*", "mcp:*")),
    "fast": PolicyProfile("fast", 3, 5, ("function:*", "skill:*", "mcp:*")),
}


def stricter(name: str, other: str | None) -> str:
    """The stricter of two profiles, by the built-in order of their names."""
    order: list[str] = list(get_args(ProfileName))
    if other is None or name not in order or other not in order:
        return name
    return min(name, other, key=order.index)


def profile_name(name: str) -> ProfileName:
    """Raises `AGENTS-E-POLICY-INVALID` for a name that no profile has."""
    require(name in PROFILES, "AGENTS-E-POLICY-INVALID", f"no policy profile is called {name!r}")
    return cast(ProfileName, name)


class PolicyStore(Protocol):
    async def get_profile(self, name: str) -> PolicyProfile:
        """The profile as it was last set, else as it is built in. Unknown: `AGENTS-E-POLICY-INVALID`."""
        ...

    async def set_profile(self, profile: PolicyProfile) -> None: ...


# Reading the store before every call costs more than deciding.
KEPT_SECONDS = 1.0


class RecentProfiles(PolicyStore):
    """Caches another store for a moment; changes by other processes count after that."""

    def __init__(self, store: PolicyStore, now: Callable[[], float] = time.monotonic) -> None:
        self._store = store
        self._now = now
        self._read: dict[str, tuple[float, PolicyProfile]] = {}

    async def get_profile(self, name: str) -> PolicyProfile:
        read_at, profile = self._read.get(name, (0.0, None))
        if profile is None or self._now() - read_at > KEPT_SECONDS:
            profile = await self._store.get_profile(name)
            self._read[name] = (self._now(), profile)
        return profile

    async def set_profile(self, profile: PolicyProfile) -> None:
        await self._store.set_profile(profile)
        self._read.clear()
