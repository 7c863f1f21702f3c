"""From the plain data of a policy file to a policy, strictly: every problem is reported with its key."""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from fnmatch import fnmatchcase
from typing import TypeVar, get_args

from openai_responses_mcp.gate.calls import is_risk_level
from openai_responses_mcp.gate.errors import LONGEST_TEXT, AgentsError
from openai_responses_mcp.gate.json_values import is_number
from openai_responses_mcp.gate.policy.fitting import glob_from, steps_of
from openai_responses_mcp.gate.policy.rules import (
    AskedAt,
    AtMost,
    AuditNeed,
    Budget,
    BudgetPeriod,
    Claim,
    Condition,
    Elements,
    Matches,
    Missing,
    Not,
    OneGlobOf,
    OneOf,
    PathGlob,
    Policy,
    PolicyProfile,
    ProfileName,
    ResultLimits,
    Rule,
    RuleDecision,
    SecretsInResults,
    TextGlob,
    Unstable,
    When,
    with_inner,
)
from openai_responses_mcp.gate.schema.patterns import Patterns

KeyPath = tuple[str | int, ...]
T = TypeVar("T")
V = TypeVar("V")
Name = TypeVar("Name", bound=str)

VERSION = 1
_AROUND_OTHERS = ("any", "every", "not")
LONGEST_GLOB = 500
LONGEST_WAIT_SECONDS = 24 * 60 * 60

TOP_KEYS = (
    *("version", "profile", "rules", "scopes", "audit", "ask", "budget", "wait"),
    *("relative_to", "hide_denied", "results", "notify", "unstable"),
)
RULE_KEYS = ("tools", "claims", "when", "decide", "risk", "reason")
CONDITION_KEYS = ("equals", "in", "matches", "at_most", "any", "every", "not", "missing")
BUDGET_KEYS = ("calls", "per")
RESULTS_KEYS = ("secrets", "max_bytes")
NOTIFY_KEYS = ("webhook_env",)
UNSTABLE_KEYS = ("tools", "parts")

# The parts of a definition that may be unstable: values of a schema at any depth below its properties.
_UNSTABLE_PART = re.compile(
    r"/inputSchema/properties/[^/]+"
    r"(?:/properties/[^/]+|/(?:allOf|anyOf|oneOf|prefixItems)/[0-9]{1,4}|/(?:items|additionalProperties))*"
    r"/(?:default|examples|enum)"
)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,127}")


@dataclass(frozen=True, slots=True)
class Problem:
    """`path` leads to the key in the file; the key is not repeated in `text`."""

    path: KeyPath
    text: str

    def __str__(self) -> str:
        return f"{shown(self.path)} {self.text}".strip()


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
        file = self._mapping((), data, TOP_KEYS) or {}
        if "version" not in file:
            self._problem((), "version is missing; this is version: 1")
        self._given(("version",), file, _version)
        return Policy(
            profile=self._choice(("profile",), file, get_args(ProfileName)),
            rules=self._rules(file.get("rules", [])),
            scopes=self._given(("scopes",), file, self._scopes),
            audit=self._choice(("audit",), file, get_args(AuditNeed)),
            ask=self._choice(("ask",), file, get_args(AskedAt)),
            budget=self._budget(file),
            wait_seconds=self._given(("wait",), file, _seconds),
            relative_to=self._given(("relative_to",), file, self._folders) or {},
            hide_denied=self._given(("hide_denied",), file, _flag) or False,
            results=self._results(file),
            webhook_env=self._webhook(file),
            unstable=tuple(self._unstable(file.get("unstable", []))),
        )

    # -----------------------------------------------------------------------------------------------------------------
    # The top of the file

    def _scopes(self, written: object) -> tuple[str, ...]:
        if not isinstance(written, list):
            raise ValueError('is a list of scopes such as ["mcp:files/*"]')
        return tuple(self._items(("scopes",), written, _scope))

    def _budget(self, file: Mapping[str, object]) -> Budget | None:
        budget = self._mapping(("budget",), file["budget"], BUDGET_KEYS) if "budget" in file else None
        if budget is None:
            return None
        if missing := [key for key in BUDGET_KEYS if key not in budget]:
            self._problem(("budget",), f"needs {' and '.join(missing)}")
        per = self._choice(("budget", "per"), budget, get_args(BudgetPeriod))
        calls = self._given(("budget", "calls"), budget, _count)
        return Budget(calls, per) if calls and per else None

    def _folders(self, written: object) -> dict[str, str]:
        if not isinstance(written, dict):
            raise ValueError("names servers and the folders they start from, such as {files: ~/notes}")
        found = {server: self._given(("relative_to", server), written, _folder) for server in written}
        return {server: folder for server, folder in found.items() if folder}

    def _results(self, file: Mapping[str, object]) -> ResultLimits:
        results = self._mapping(("results",), file.get("results", {}), RESULTS_KEYS) or {}
        secrets = self._choice(("results", "secrets"), results, get_args(SecretsInResults))
        return ResultLimits(secrets or "pass", self._given(("results", "max_bytes"), results, _count))

    def _webhook(self, file: Mapping[str, object]) -> str | None:
        notify = self._mapping(("notify",), file["notify"], NOTIFY_KEYS) if "notify" in file else None
        return notify if notify is None else self._made(("notify", "webhook_env"), notify.get("webhook_env"), _variable)

    def _unstable(self, written: object) -> Iterator[Unstable]:
        if not isinstance(written, list):
            self._problem(("unstable",), "is a list of mappings with tools, parts")
            return
        for place, entry in enumerate(written):
            path: KeyPath = ("unstable", place)
            known = self._mapping(path, entry, UNSTABLE_KEYS)
            if known is None:
                continue
            parts = known.get("parts")
            if not isinstance(parts, list) or not parts:
                self._problem((*path, "parts"), "is a list of JSON pointers, and not empty")
                parts = []
            tools = self._tools((*path, "tools"), known.get("tools"))
            yield Unstable(tools, tuple(self._items((*path, "parts"), parts, _unstable_part)))

    # -----------------------------------------------------------------------------------------------------------------
    # Rules

    def _rules(self, written: object) -> tuple[Rule, ...]:
        if not isinstance(written, list):
            self._problem(("rules",), "is a list")
            return ()
        return tuple(self._rule(number, rule) for number, rule in enumerate(written, start=1))

    def _rule(self, number: int, written: object) -> Rule:
        path: KeyPath = ("rules", number - 1)
        rule = self._mapping(path, written, RULE_KEYS)
        if rule is None:
            return Rule(number, ())
        if ("decide" in rule) == ("risk" in rule):
            self._problem(path, "needs decide or risk, one of the two")
        return Rule(
            number=number,
            risk=self._given((*path, "risk"), rule, _risk),
            reason=self._given((*path, "reason"), rule, _reason) or "",
            tools=self._tools((*path, "tools"), rule.get("tools")),
            when=tuple(self._when((*path, "when"), rule)),
            claims=self._choice((*path, "claims"), rule, get_args(Claim)),
            decide=self._choice((*path, "decide"), rule, get_args(RuleDecision)),
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
        if isinstance(wanted, list) and wanted:
            globs = tuple(self._items(path, wanted, _glob))
            if globs:
                yield OneGlobOf(globs)
            return
        if not isinstance(wanted, dict):
            condition = self._made(path, wanted, _glob)
            if condition is not None:
                yield condition
            return
        known = self._mapping(path, wanted, CONDITION_KEYS) or {}
        if not wanted:
            self._problem(path, f"needs one of {', '.join(CONDITION_KEYS)}")
        for key, value in known.items():
            if key in _AROUND_OTHERS:
                inner = tuple(self._conditions((*path, key), value))
                if inner:
                    yield self._made_around((*path, key), inner)
                continue
            made = self._made((*path, key), value, self._readers[key])
            if made is not None:
                yield made

    def _made_around(self, path: KeyPath, inner: tuple[Condition, ...]) -> Condition:
        if path[-1] == "not":
            return Not(inner)
        if any(isinstance(one, Missing) for one in with_inner(inner)):
            self._problem(path, "is about elements of a list, and none of those is missing")
        return Elements(inner, every=path[-1] == "every")

    @property
    def _readers(self) -> Mapping[str, Callable[[object], Condition]]:
        return {
            "equals": lambda value: OneOf((value,)),
            "in": _one_of,
            "matches": self._matches,
            "at_most": _at_most,
            "missing": _missing,
        }

    def _matches(self, value: object) -> Condition:
        if not isinstance(value, str) or len(value) > LONGEST_GLOB:
            raise ValueError(f"is a pattern of at most {LONGEST_GLOB} characters")
        return Matches(value, self._patterns.compile(value))

    # -----------------------------------------------------------------------------------------------------------------
    # Shapes

    def _problem(self, path: KeyPath, text: str) -> None:
        self.problems.append(Problem(path, text))

    def _mapping(self, path: KeyPath, value: object, known: tuple[str, ...]) -> dict[str, object] | None:
        if not isinstance(value, dict):
            self._problem(path, f"{'' if path else 'the file '}is a mapping with {', '.join(known)}")
            return None
        for key in value:
            if key not in known:
                self._problem((*path, key), f"is an unknown key{did_you_mean(key, known)}")
        return {key: item for key, item in value.items() if key in known}

    def _choice(self, path: KeyPath, mapping: Mapping[str, object], names: tuple[Name, ...]) -> Name | None:
        def chosen(value: object) -> Name:
            for name in names:
                if name == value:
                    return name
            raise ValueError(f"is {', '.join(names[:-1])} or {names[-1]}{did_you_mean(value, names)}")

        return self._given(path, mapping, chosen)

    def _given(self, path: KeyPath, mapping: Mapping[str, object], read: Callable[[object], T]) -> T | None:
        """None if the last key of the path is not there."""
        key = str(path[-1])
        return self._made(path, mapping[key], read) if key in mapping else None

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


def did_you_mean(name: object, known: Iterable[str]) -> str:
    lowered = {one.lower(): one for one in sorted(known)}
    near = get_close_matches(name.lower(), lowered) if isinstance(name, str) else []
    return f" (did you mean {lowered[near[0]]}?)" if near else ""


def _any_that(kind: type[T], fits: Callable[[T], object], problem: str) -> Callable[[object], T]:
    """Reads any value of this kind that fits, as it is."""

    def read(value: object) -> T:
        if not isinstance(value, kind) or not fits(value):
            raise ValueError(problem)
        return value

    return read


_version = _any_that(
    int, lambda value: type(value) is int and value == VERSION, f"is {VERSION}, the only version there is"
)
_flag = _any_that(bool, lambda _: True, "is true or false")
_count = _any_that(int, lambda value: type(value) is int and value >= 1, "is a whole number from 1 up")
_risk = _any_that(int, is_risk_level, "is a whole number from 1 to 5")
_folder = _any_that(
    str,
    lambda value: value == "~" or value.startswith(("/", "~/")),
    "is a whole path, such as ~/notes or /srv/data",
)
_variable = _any_that(str, _VARIABLE.fullmatch, "is the name of the variable that holds the address")
_reason = _any_that(str, lambda value: len(value) <= LONGEST_TEXT, f"is a text of at most {LONGEST_TEXT} characters")


def _seconds(value: object) -> float:
    if not is_number(value) or not 0 < value <= LONGEST_WAIT_SECONDS:
        raise ValueError(f"is a number of seconds above 0, at most {LONGEST_WAIT_SECONDS}")
    return float(value)


def _tool_glob(value: object) -> str:
    if not isinstance(value, str) or not 0 < len(value) <= LONGEST_GLOB:
        raise ValueError(f"is a text of 1 to {LONGEST_GLOB} characters")
    if "*" not in value and not fnmatchcase(value, "?*/?*"):
        hint = "" if "/" in value else f"; write */{value} for the tool of any server"
        raise ValueError(f"fits no tool: tools are called server/tool, function/name or skill/name{hint}")
    return value


def _unstable_part(value: object) -> tuple[str, ...]:
    if not isinstance(value, str) or not _UNSTABLE_PART.fullmatch(value):
        raise ValueError(
            "is not a default, examples or enum below /inputSchema/properties; only those may change unseen"
        )
    return steps_of(value)


def _scope(value: object) -> str:
    try:
        PolicyProfile("strict", 1, 5, (value,))  # type: ignore[arg-type]
    except AgentsError as exc:
        raise ValueError(f"is not a scope: {exc.message}") from exc
    return str(value)


def _glob(value: object) -> TextGlob | PathGlob:
    if not isinstance(value, str):
        raise ValueError("is a glob, a list of globs, or a mapping such as {equals: 5}")
    if len(value) > LONGEST_GLOB:
        raise ValueError(f"is longer than {LONGEST_GLOB} characters")
    return glob_from(value)


def _missing(value: object) -> Condition:
    if value is not True:
        raise ValueError("is true; for an argument that has to be there, write {not: {missing: true}}")
    return Missing()


def _one_of(value: object) -> Condition:
    if not isinstance(value, list) or not value:
        raise ValueError("is a list of values, and not empty")
    return OneOf(tuple(value))


def _at_most(value: object) -> Condition:
    if not is_number(value):
        raise ValueError("is a number")
    return AtMost(value)
