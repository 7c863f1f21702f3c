"""A policy as data: its rules, of which the first that fits decides, and what the file says besides.
Ports for the file and for the file system are beside it.

Where no rule fits, a profile decides: which risk runs alone, which is refused, and which tools are in scope.

`reading` makes it from a file, `fitting` says how a rule fits a call.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
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


RuleDecision = Literal["allow", "ask", "deny"]
Claim = Literal["reads", "writes", "destroys"]
AuditNeed = Literal["required", "best_effort"]
AskedAt = Literal["auto", "client", "desk"]
BudgetPeriod = Literal["session", "hour", "day"]
SecretsInResults = Literal["hide", "pass"]


# ---------------------------------------------------------------------------------------------------------------------
# Conditions on one argument


@dataclass(frozen=True, slots=True)
class TextGlob:
    """The whole text fits; `*` stands for anything."""

    glob: str


@dataclass(frozen=True, slots=True)
class PathGlob:
    """A path below `folder`, whose remaining names fit `rest` one by one; `**` stands for any number of them."""

    folder: str
    rest: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class OneOf:
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class Matches:
    """The whole text matches the pattern."""

    pattern: str
    is_match: Callable[[str], bool] = field(repr=False, compare=False)


@dataclass(frozen=True, slots=True)
class AtMost:
    limit: int | float


@dataclass(frozen=True, slots=True)
class OneGlobOf:
    globs: tuple["TextGlob | PathGlob", ...]


@dataclass(frozen=True, slots=True)
class Elements:
    """All conditions hold for one element of a list, or for `every` one."""

    conditions: tuple["Condition", ...]
    every: bool


@dataclass(frozen=True, slots=True)
class Not:
    """Not all of the conditions hold."""

    conditions: tuple["Condition", ...]


@dataclass(frozen=True, slots=True)
class Missing:
    """The argument is not there."""


Condition = TextGlob | PathGlob | OneOf | Matches | AtMost | OneGlobOf | Elements | Not | Missing


def with_inner(conditions: Iterable[Condition]) -> Iterator[Condition]:
    """The conditions, and those inside them."""
    for condition in conditions:
        yield condition
        if isinstance(condition, OneGlobOf):
            yield from condition.globs
        elif isinstance(condition, Elements | Not):
            yield from with_inner(condition.conditions)


# ---------------------------------------------------------------------------------------------------------------------
# Rules


@dataclass(frozen=True, slots=True)
class When:
    """What one argument must be; `steps` lead to it from the top of the arguments. All conditions must hold."""

    steps: tuple[str, ...]
    conditions: tuple[Condition, ...]


@dataclass(frozen=True, slots=True)
class Rule:
    """Has `decide` or `risk`, not both. `number` counts from 1."""

    number: int
    tools: tuple[str, ...]
    when: tuple[When, ...] = ()
    decide: RuleDecision | None = None
    risk: int | None = None
    reason: str = ""
    claims: Claim | None = None

    @property
    def path_globs(self) -> list[PathGlob]:
        return [one for when in self.when for one in with_inner(when.conditions) if isinstance(one, PathGlob)]


# ---------------------------------------------------------------------------------------------------------------------
# The rest of the file


@dataclass(frozen=True, slots=True)
class Budget:
    calls: int
    per: BudgetPeriod


@dataclass(frozen=True, slots=True)
class ResultLimits:
    """What happens to results before the client gets them."""

    secrets: SecretsInResults = "pass"
    max_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Unstable:
    """Parts of definitions that change at every start and do not count, as the steps of JSON pointers."""

    tools: tuple[str, ...]
    parts: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """None means that the file does not say; the default is up to the caller.

    `relative_to` has the folder of each server that reads relative paths from one. `webhook_env` names the variable
    with the address that gets a notice of each question.
    """

    profile: ProfileName | None = None
    rules: tuple[Rule, ...] = ()
    scopes: tuple[str, ...] | None = None
    audit: AuditNeed | None = None
    ask: AskedAt | None = None
    budget: Budget | None = None
    wait_seconds: float | None = None
    relative_to: Mapping[str, str] = field(default_factory=dict)
    hide_denied: bool = False
    results: ResultLimits = ResultLimits()
    webhook_env: str | None = None
    unstable: tuple[Unstable, ...] = ()

    def profile_name(self, chosen: str | None = None) -> str:
        return chosen or self.profile or DEFAULT_PROFILE

    def scoped(self, profile: PolicyProfile) -> PolicyProfile:
        """The profile with the scopes of the policy instead of its own."""
        return profile if self.scopes is None else replace(profile, allowed_tool_scopes=self.scopes)

    def stable_entry(self, tool: str, entry: Mapping[str, object]) -> Mapping[str, object]:
        """The definition of a tool without the parts that do not count; `tool` is its name as rules write it."""
        for unstable in self.unstable:
            if any(fnmatchcase(tool, glob) for glob in unstable.tools):
                for steps in unstable.parts:
                    entry = cast(Mapping[str, object], _without(entry, steps))
        return entry


def _without(value: object, steps: Sequence[str]) -> object:
    """The value without the part that the steps lead to, if they lead to one."""
    step, *further = steps
    if further and isinstance(value, list) and step in map(str, range(len(value))):
        place = int(step)
        return [*value[:place], _without(value[place], further), *value[place + 1 :]]
    if not isinstance(value, Mapping) or step not in value:
        return value
    if not further:
        return {name: inner for name, inner in value.items() if name != step}
    return {**value, step: _without(value[step], further)}


class PolicySource(Protocol):
    def current(self) -> Policy:
        """The policy in force. It follows its file; if that cannot be used, the last good one stays. Never raises."""
        ...


class Paths(Protocol):
    """Absolute paths with `/` between names, without `~`, `..` and links. An empty `directory` is the process's own."""

    @property
    def ignores_case(self) -> bool:
        """Whether names that differ in case may be one file here."""
        ...

    def resolved(self, path: str, directory: str | None) -> str | None:
        """The file that a server reads under this path. None where servers may differ, or it leads nowhere.

        Relative paths begin in `directory`; without one they are in doubt. So are `~` together with `..`, an address
        such as `file:…`, and what leads through `/proc`, `/dev/fd`, `/dev/std*` or `link/..`.
        """
        ...

    def anchor(self, folder: str, directory: str) -> str | None:
        """Where a glob begins. Looked up once: a link that is put in its place later changes nothing.

        None where that cannot be found out.
        """
        ...
