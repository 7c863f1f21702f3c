"""The walk through a value and a schema, and what a rule is told at each place.

`Fitting.check` meets every part of the value with every schema that it must fit, and asks the rule of each keyword. A
rule gets a `Case` and what its keyword wants, and gives back a `Problem` or None.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from openai_responses_mcp.agents.schemas.references import References, Schema
from openai_responses_mcp.agents.schemas.steps import DEEPEST, Steps, TooDeep

_LONGEST_NAME = 60
# In these drafts, what stands beside a $ref is ignored.
_OLD_DRAFTS = ("draft-04/schema", "draft-06/schema", "draft-07/schema")
# Keywords about what is left over come last.
_LAST = ("unevaluatedItems", "unevaluatedProperties")


@dataclass(frozen=True, slots=True)
class Problem:
    """Put into words only when it is reported: most problems are in branches that do not matter."""

    path: tuple[str | int, ...]
    said: str
    about: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{'.'.join(_short(str(name)) for name in self.path) or 'it'}: {self.without_path()}"

    def without_path(self) -> str:
        return f"{self.said}{', '.join(_shown(one) for one in self.about)}"


@dataclass(slots=True)
class Evaluated:
    """Which names and items of a value some keyword has looked at; `unevaluated…` is about the others."""

    names: set[str] = field(default_factory=set)
    items: set[int] = field(default_factory=set)
    has_all_names: bool = False

    def add(self, other: "Evaluated", steps: Steps) -> None:
        steps.spend(len(other.names) + len(other.items))
        self.names |= other.names
        self.items |= other.items
        self.has_all_names |= other.has_all_names


Rule = Callable[["Case", Any], Problem | None]


class Fitting:
    """One value and one schema."""

    def __init__(self, root: Mapping[str, Any], steps: Steps, rules: Mapping[str, Rule]) -> None:
        self.steps = steps
        self.references = References(root)
        self.path: list[str | int] = []
        self._rules = rules
        self._depth = 0
        self._is_old = str(root.get("$schema", "")).removesuffix("#").endswith(_OLD_DRAFTS)

    def check(self, schema: Schema, value: Any, seen: Evaluated | None) -> Problem | None:
        """`seen` gets what was looked at, where somebody above wants to know and the value fits."""
        if isinstance(schema, bool):
            self.steps.spend()
            return None if schema else Problem(tuple(self.path), "is not allowed here")
        self.steps.spend(1 + len(schema))
        if self._is_old and "$ref" in schema:
            schema = {"$ref": schema["$ref"]}
        has_last = any(keyword in schema for keyword in _LAST)
        own = Evaluated() if has_last or seen is not None else None
        self._depth += 1
        if self._depth > DEEPEST:
            raise TooDeep
        problem = self._first_problem(Case(self, schema, value, own), has_last)
        self._depth -= 1
        if problem is None and seen is not None and own is not None:
            seen.add(own, self.steps)
        return problem

    def _first_problem(self, case: "Case", has_last: bool) -> Problem | None:
        keywords: Iterable[str] = case.schema
        if has_last:
            keywords = [*(word for word in case.schema if word not in _LAST), *(w for w in _LAST if w in case.schema)]
        for keyword in keywords:
            rule = self._rules.get(keyword)
            problem = rule(case, case.schema[keyword]) if rule else None
            if problem is not None:
                return problem
        return None


@dataclass(frozen=True, slots=True)
class Case:
    """A value and a schema that it must fit."""

    fitting: Fitting
    schema: Mapping[str, Any]
    value: Any
    seen: Evaluated | None

    def spend(self, steps: int) -> None:
        self.fitting.steps.spend(steps)

    def problem(self, said: str, *about: Any) -> Problem:
        return Problem(tuple(self.fitting.path), said, about)

    def check(self, schema: Schema) -> Problem | None:
        """The same value with another schema."""
        return self.fitting.check(schema, self.value, self.seen)

    def fits(self, schema: Schema) -> bool:
        return self.check(schema) is None

    def check_inside(self, name: str | int, schema: Schema, value: Any) -> Problem | None:
        """A part of the value."""
        path = self.fitting.path
        path.append(name)
        problem = self.fitting.check(schema, value, None)
        path.pop()
        return problem


def first(problems: Iterable[Problem | None]) -> Problem | None:
    return next((problem for problem in problems if problem is not None), None)


def _shown(about: Any) -> str:
    return about.without_path() if isinstance(about, Problem) else _short(json.dumps(about, ensure_ascii=False))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"
