"""A policy as data: its rules, of which the first that fits decides, and what the file says besides.

`fitting` says how a rule fits a call, and `checking` what a file may hold.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Literal

from openai_responses_mcp.agents.policy.profiles import DEFAULT_PROFILE, PolicyProfile, ProfileName

Choice = Literal["allow", "ask", "deny"]
AuditNeed = Literal["required", "best_effort"]
AskedAt = Literal["client", "desk"]
BudgetPeriod = Literal["session", "hour", "day"]


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


Condition = TextGlob | PathGlob | OneOf | Matches | AtMost


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
    decide: Choice | None = None
    risk: int | None = None
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Budget:
    calls: int
    per: BudgetPeriod


@dataclass(frozen=True, slots=True)
class Policy:
    """None means that the file does not say; the default is up to whoever asks."""

    profile: ProfileName | None = None
    rules: tuple[Rule, ...] = ()
    scopes: tuple[str, ...] | None = None
    audit: AuditNeed | None = None
    ask: AskedAt | None = None
    budget: Budget | None = None
    wait_seconds: float | None = None

    def profile_name(self, chosen: str | None = None) -> str:
        return chosen or self.profile or DEFAULT_PROFILE

    def scoped(self, profile: PolicyProfile) -> PolicyProfile:
        """The profile with the scopes of the policy instead of its own."""
        return profile if self.scopes is None else replace(profile, allowed_tool_scopes=self.scopes)
