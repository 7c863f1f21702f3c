"""From the plain data of a policy file to a policy, strictly: every problem is reported with its key."""

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TypeGuard, TypeVar, get_args

from openai_responses_mcp.agents.calls import is_risk_level
from openai_responses_mcp.agents.checks import LONGEST_TEXT
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.policy.glob_cover import NAMES_OF_TOOLS, is_covered
from openai_responses_mcp.agents.policy.path_globs import is_path, path_glob
from openai_responses_mcp.agents.policy.pointers import steps_of
from openai_responses_mcp.agents.policy.ports import Patterns
from openai_responses_mcp.agents.policy.profiles import PolicyProfile, ProfileName
from openai_responses_mcp.agents.policy.rules import (
    AskedAt,
    AtMost,
    AuditNeed,
    Budget,
    BudgetPeriod,
    Choice,
    Condition,
    Matches,
    OneOf,
    Policy,
    Rule,
    TextGlob,
    When,
)

KeyPath = tuple[str | int, ...]
T = TypeVar("T")
V = TypeVar("V")
Name = TypeVar("Name", bound=str)

VERSION = 1
LONGEST_GLOB = 500
LONGEST_WAIT_SECONDS = 24 * 60 * 60

TOP_KEYS = ("version", "profile", "rules", "scopes", "audit", "ask", "budget", "wait")
RULE_KEYS = ("tools", "when", "decide", "risk", "reason")
CONDITION_KEYS = ("equals", "in", "matches", "at_most")
BUDGET_KEYS = ("calls", "per")


@dataclass(frozen=True, slots=True)
class Problem:
    """`path` leads to the key in the file; the key is not repeated in `text`."""

    path: KeyPath
    text: str

    def __str__(self) -> str:
        return f"{shown(self.path)} {self.text}".strip()


@dataclass(frozen=True, slots=True)
class PolicyFindings:
    """What a check of a file found, each with its place; without problems, also the rules that can never apply."""

    rules: int
    problems: tuple[str, ...] = ()
    never_apply: tuple[str, ...] = ()


def shown(path: KeyPath) -> str:
    """A key as people say it: `rule 2: when.path`. Rules count from 1."""
    if path[:1] == ("rules",) and len(path) > 1:
        rest = shown(path[2:])
        return f"rule {int(path[1]) + 1}{':' if rest else ''} {rest}".rstrip()
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).removeprefix(".")


def policy_from(data: object, patterns: Patterns) -> tuple[Policy, list[Problem]]:
    """The policy may be used only if there are no problems."""
    checker = _Checker(patterns)
    return checker.policy(data), checker.problems


class _Checker:
    """What is wrong is noted and left out, so that one check finds every problem."""

    def __init__(self, patterns: Patterns) -> None:
        self.problems: list[Problem] = []
        self._patterns = patterns

    def policy(self, data: object) -> Policy:
        if data is None:
            self._problem((), "the file is empty; it needs at least version: 1")
            return Policy()
        file = self._mapping((), data, TOP_KEYS)
        if "version" not in file:
            self._problem((), "version is missing; this is version: 1")
        elif type(file["version"]) is not int or file["version"] != VERSION:
            self._problem(("version",), f"is {VERSION}, the only version there is")
        return Policy(
            profile=self._choice(("profile",), file, get_args(ProfileName)),
            rules=self._rules(file),
            scopes=self._scopes(file),
            audit=self._choice(("audit",), file, get_args(AuditNeed)),
            ask=self._choice(("ask",), file, get_args(AskedAt)),
            budget=self._budget(file),
            wait_seconds=self._wait(file),
        )

    # -----------------------------------------------------------------------------------------------------------------
    # The top of the file

    def _scopes(self, file: Mapping[str, object]) -> tuple[str, ...] | None:
        if "scopes" not in file:
            return None
        if not isinstance(file["scopes"], list):
            self._problem(("scopes",), 'is a list of scopes such as ["mcp:files/*"]')
            return None
        return tuple(self._items(("scopes",), file["scopes"], _scope))

    def _budget(self, file: Mapping[str, object]) -> Budget | None:
        if "budget" not in file:
            return None
        budget = self._mapping(("budget",), file["budget"], BUDGET_KEYS)
        if missing := [key for key in BUDGET_KEYS if key not in budget]:
            if isinstance(file["budget"], dict):
                self._problem(("budget",), f"needs {' and '.join(missing)}")
            return None
        per, calls = self._choice(("budget", "per"), budget, get_args(BudgetPeriod)), budget["calls"]
        if type(calls) is not int or calls < 1:
            self._problem(("budget", "calls"), "is a whole number from 1 up")
            return None
        return Budget(calls, per) if per else None

    def _wait(self, file: Mapping[str, object]) -> float | None:
        if "wait" not in file:
            return None
        wait = file["wait"]
        if not _is_number(wait) or not 0 < wait <= LONGEST_WAIT_SECONDS:
            self._problem(("wait",), f"is a number of seconds above 0, at most {LONGEST_WAIT_SECONDS}")
            return None
        return float(wait)

    # -----------------------------------------------------------------------------------------------------------------
    # Rules

    def _rules(self, file: Mapping[str, object]) -> tuple[Rule, ...]:
        written = file.get("rules", [])
        if not isinstance(written, list):
            self._problem(("rules",), "is a list")
            return ()
        return tuple(self._rule(number, rule) for number, rule in enumerate(written, start=1))

    def _rule(self, number: int, written: object) -> Rule:
        path: KeyPath = ("rules", number - 1)
        if not isinstance(written, dict):
            self._problem(path, f"is a mapping with {', '.join(RULE_KEYS)}")
            return Rule(number, ())
        rule = self._mapping(path, written, RULE_KEYS)
        if ("decide" in rule) == ("risk" in rule):
            self._problem(path, "needs decide or risk, one of the two")
        risk = rule.get("risk")
        if not is_risk_level(risk) and "risk" in rule:
            self._problem((*path, "risk"), "is a whole number from 1 to 5")
        reason = rule.get("reason", "")
        if not isinstance(reason, str) or len(reason) > LONGEST_TEXT:
            self._problem((*path, "reason"), f"is a text of at most {LONGEST_TEXT} characters")
        return Rule(
            number=number,
            tools=self._tools((*path, "tools"), rule.get("tools")),
            when=tuple(self._when((*path, "when"), rule)),
            decide=self._choice((*path, "decide"), rule, get_args(Choice)),
            risk=risk if is_risk_level(risk) else None,
            reason=reason if isinstance(reason, str) else "",
        )

    def _tools(self, path: KeyPath, written: object) -> tuple[str, ...]:
        if not isinstance(written, list) or not written:
            self._problem(path, 'is a list of names such as ["files/read_*"], and not empty')
            return ()
        return tuple(self._items(path, written, _tool_glob))

    def _when(self, path: KeyPath, rule: Mapping[str, object]) -> Iterator[When]:
        written = rule.get("when", {})
        if not isinstance(written, dict) or ("when" in rule and not written):
            self._problem(path, "names arguments and what they must be, such as {path: ~/notes/**}")
            return
        for place, wanted in written.items():
            conditions = tuple(self._conditions((*path, place), wanted))
            steps = self._made((*path, place), place, steps_of)
            if steps is not None:
                yield When(steps, conditions)

    def _conditions(self, path: KeyPath, wanted: object) -> Iterator[Condition]:
        if not isinstance(wanted, dict):
            condition = self._made(path, wanted, _glob)
            if condition is not None:
                yield condition
            return
        known = self._mapping(path, wanted, CONDITION_KEYS)
        if not wanted:
            self._problem(path, "needs one of equals, in, matches, at_most")
        for key, value in known.items():
            made = self._made((*path, key), value, self._readers[key])
            if made is not None:
                yield made

    @property
    def _readers(self) -> Mapping[str, Callable[[object], Condition]]:
        return {"equals": lambda value: OneOf((value,)), "in": _one_of, "matches": self._matches, "at_most": _at_most}

    def _matches(self, value: object) -> Condition:
        if not isinstance(value, str) or len(value) > LONGEST_GLOB:
            raise ValueError(f"is a pattern of at most {LONGEST_GLOB} characters")
        return Matches(value, self._patterns.compile(value))

    # -----------------------------------------------------------------------------------------------------------------
    # Shapes

    def _problem(self, path: KeyPath, text: str) -> None:
        self.problems.append(Problem(path, text))

    def _mapping(self, path: KeyPath, value: object, known: tuple[str, ...]) -> dict[str, object]:
        if not isinstance(value, dict):
            self._problem(path, f"{'' if path else 'the file '}is a mapping with {', '.join(known)}")
            return {}
        for key in value:
            if key not in known:
                self._problem((*path, key), f"is an unknown key{_nearest(key, known)}")
        return {key: item for key, item in value.items() if key in known}

    def _choice(self, path: KeyPath, mapping: Mapping[str, object], names: tuple[Name, ...]) -> Name | None:
        key = path[-1]
        if key not in mapping:
            return None
        value = mapping[str(key)]
        for name in names:
            if name == value:
                return name
        self._problem(path, f"is {', '.join(names[:-1])} or {names[-1]}{_nearest(value, names)}")
        return None

    def _items(self, path: KeyPath, values: list[object], read: Callable[[object], T]) -> Iterator[T]:
        for place, value in enumerate(values):
            made = self._made((*path, place), value, read)
            if made is not None:
                yield made

    def _made(self, path: KeyPath, value: V, make: Callable[[V], T]) -> T | None:
        try:
            return make(value)
        except ValueError as exc:
            self._problem(path, str(exc))
            return None


def _nearest(name: object, known: tuple[str, ...]) -> str:
    near = get_close_matches(name.lower(), known, n=1) if isinstance(name, str) else []
    return f" (did you mean {near[0]}?)" if near else ""


def _tool_glob(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_GLOB:
        raise ValueError(f"is a text of 1 to {LONGEST_GLOB} characters")
    if is_covered([value, NAMES_OF_TOOLS], []):
        hint = "" if "/" in value else f"; write */{value} for the tool of any server"
        raise ValueError(f"fits no tool: tools are called server/tool, function/name or skill/name{hint}")
    return value


def _scope(value: object) -> str:
    try:
        PolicyProfile("strict", 1, 5, (value,))  # type: ignore[arg-type]
    except AgentsError as exc:
        raise ValueError(f"is not a scope: {exc.message}") from exc
    return str(value)


def _glob(value: object) -> Condition:
    if not isinstance(value, str):
        raise ValueError("is a glob, or a mapping such as {equals: 5}")
    if len(value) > LONGEST_GLOB:
        raise ValueError(f"is longer than {LONGEST_GLOB} characters")
    return path_glob(value) if is_path(value) else TextGlob(value)


def _one_of(value: object) -> Condition:
    if not isinstance(value, list) or not value:
        raise ValueError("is a list of values, and not empty")
    return OneOf(tuple(value))


def _is_number(value: object) -> TypeGuard[int | float]:
    return type(value) in (int, float)


def _at_most(value: object) -> Condition:
    if not _is_number(value) or not math.isfinite(value):
        raise ValueError("is a number")
    return AtMost(value)
