"""What is odd about a policy that can be read: rules that never apply, rules in the wrong order, unknown names.

Only certain problems are reported, and only those that a simple comparison of two rules shows.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from fnmatch import fnmatchcase

from openai_responses_mcp.gate.json_values import JsonObject
from openai_responses_mcp.gate.policy.argument_names import names_at
from openai_responses_mcp.gate.policy.fitting import (
    Fit,
    RuledCall,
    condition_fit,
    covers_tool,
    is_glob,
    place_of,
    same_json,
)
from openai_responses_mcp.gate.policy.reading import did_you_mean
from openai_responses_mcp.gate.policy.rules import (
    AtMost,
    Claim,
    Condition,
    Matches,
    Missing,
    Not,
    OneGlobOf,
    OneOf,
    PathGlob,
    Paths,
    Policy,
    Rule,
    RuleDecision,
    When,
)

# Programs that start servers. Until version 0.9 a guard without a name took theirs.
LAUNCHERS = ("npx", "uvx", "uv", "bunx", "pnpm", "node", "python", "python3", "docker", "deno")

_ANY_CALL = RuledCall((), {})
_SETS = re.compile(r"\[!?\]?[^\]]*\]")

_STRICTNESS: Mapping[RuleDecision | None, int] = {"allow": 0, "ask": 1, "deny": 2}


@dataclass(frozen=True, slots=True)
class PolicyFindings:
    """The findings of a check, each with its place. The others are looked for only if there are no problems."""

    rules: int
    problems: tuple[str, ...] = ()
    never_apply: tuple[str, ...] = ()
    looser_first: tuple[str, ...] = ()
    unknown_names: tuple[str, ...] = ()

    @property
    def lines(self) -> tuple[str, ...]:
        return (*self.problems, *self.never_apply, *self.looser_first, *self.unknown_names)


# ---------------------------------------------------------------------------------------------------------------------
# Rules that never apply


def rules_that_never_apply(policy: Policy, paths: Paths) -> Iterator[tuple[Rule, str]]:
    for place, rule in enumerate(policy.rules):
        impossible = next((when for when in rule.when if _is_impossible(when, paths)), None)
        earlier = next((one for one in policy.rules[:place] if _asks_no_more(one, rule) and _covers(one, rule)), None)
        if impossible:
            yield rule, f"no value of {place_of(impossible.steps)} can fit all that its when asks for"
        elif earlier:
            yield rule, f"rule {earlier.number} always comes first"


def _is_impossible(when: When, paths: Paths) -> bool:
    lists = [condition for condition in when.conditions if isinstance(condition, OneOf)]
    kinds = {type(condition) for condition in when.conditions}
    if not lists:
        is_missing_and_more = Missing in kinds and len(kinds) > 1
        return is_missing_and_more or {AtMost, Matches} <= kinds  # a number and a text
    return not any(
        all(condition_fit(condition, value, _ANY_CALL, paths) >= Fit.DOUBT for condition in when.conditions)
        for value in lists[0].values
    )


def _asks_no_more(one: Rule, rule: Rule) -> bool:
    """True if `one` fits every call of its tools that `rule` fits."""
    # As they are written: to Python, the values 1 and true are equal.
    asked, known = {repr(when) for when in one.when}, {repr(when) for when in rule.when}
    if not asked <= known or one.claims not in (None, rule.claims):
        return False
    # If it is not clear where a path leads, rules that allow do not fit.
    return one.decide != "allow" or rule.decide == "allow" or not one.path_globs


def _covers(one: Rule, rule: Rule) -> bool:
    return all(any(glob_covers(wide, glob) for wide in one.tools) for glob in rule.tools)


def glob_covers(wide: str, glob: str) -> bool:
    """True if every name that fits `glob` fits `wide`. False where one comparison cannot show it."""
    # Read as a name, the narrower glob shows it, unless a wildcard for one letter would take a star for a letter.
    return wide == glob or ("[" not in wide + glob and "?" not in wide and fnmatchcase(glob, wide))


# ---------------------------------------------------------------------------------------------------------------------
# A looser rule before a stricter one


def looser_rules_first(policy: Policy, paths: Paths, known: "KnownTools | None" = None) -> Iterator[tuple[Rule, str]]:
    """Stricter rules after a looser one that takes some of their calls, unless the looser one is an exception to them.

    Whether a rule with `claims` takes calls of one without depends on the tools that are known.
    """
    idle = {rule.number for rule, _ in rules_that_never_apply(policy, paths)}
    for place, rule in enumerate(policy.rules):
        for one in policy.rules[:place]:
            if idle.isdisjoint({one.number, rule.number}) and _takes_away(one, rule, paths, known):
                yield rule, f"rule {one.number} ({one.decide}) stands before it and decides some of its calls"


def _takes_away(one: Rule, rule: Rule, paths: Paths, known: "KnownTools | None") -> bool:
    if one.decide is None or rule.decide is None or _STRICTNESS[one.decide] >= _STRICTNESS[rule.decide]:
        return False
    if not rule.when and rule.claims is None and _covers(rule, one):
        return False  # the exception, and then the rest
    if one.claims in (None, rule.claims):
        has_common_tools = any(globs_overlap(glob, other) for glob in one.tools for other in rule.tools)
    else:
        calls = [RuledCall((name,), {}, claims) for name, claims in known.claims.items()] if known else []
        has_common_tools = any(covers_tool(one, call) and covers_tool(rule, call) for call in calls)
    # Apart, as far as a look at lists, folders and `not` shows.
    are_apart = any(
        _exclude(condition, opposite, paths)
        for when in one.when
        for other in rule.when
        if when.steps == other.steps
        for condition in when.conditions
        for opposite in other.conditions
    )
    return has_common_tools and not are_apart


def globs_overlap(one: str, other: str) -> bool:
    """Whether a name could fit both globs. A set of letters counts as any letter."""
    first, second = _SETS.sub("?", one), _SETS.sub("?", other)
    # Lengths of the beginnings of `second` that share a text with the part of `first` read so far.
    reached = {0, *_over_stars(second, 0)}
    for letter in first:
        further = set[int]()
        for place in reached:
            if letter == "*":
                further.update(range(place, len(second) + 1))
            elif place < len(second) and second[place] == "*":
                further.add(place)
            elif place < len(second) and (letter == second[place] or "?" in (letter, second[place])):
                further.add(place + 1)
        reached = {after for place in further for after in (place, *_over_stars(second, place))}
    return len(second) in reached


def _over_stars(glob: str, place: int) -> Iterator[int]:
    """A star may stand for nothing."""
    while place < len(glob) and glob[place] == "*":
        place += 1
        yield place


def _exclude(one: Condition, other: Condition, paths: Paths) -> bool:
    if isinstance(one, Missing) != isinstance(other, Missing):
        return True
    if isinstance(one, OneOf) and isinstance(other, OneOf):
        return not any(same_json(a, b) for a in one.values for b in other.values)
    for condition, opposite in ((one, other), (other, one)):
        if isinstance(opposite, Not) and repr(opposite.conditions) == repr((condition,)):
            return True
    folders, others = _folders(one, paths), _folders(other, paths)
    return bool(folders and others) and not any(a.startswith(b) or b.startswith(a) for a in folders for b in others)


def _folders(condition: Condition, paths: Paths) -> list[str]:
    globs = condition.globs if isinstance(condition, OneGlobOf) else (condition,)
    if not all(isinstance(glob, PathGlob) for glob in globs):
        return []
    return [f"{paths.anchor(glob.folder, '')}/" for glob in globs if isinstance(glob, PathGlob)]


# ---------------------------------------------------------------------------------------------------------------------
# Names that nothing has


@dataclass(frozen=True, slots=True)
class KnownTools:
    """The tools in a store by their names in rules; those with a pinned definition with schema and claims."""

    names: frozenset[str]
    schemas: Mapping[str, JsonObject]
    claims: Mapping[str, frozenset[Claim]] = field(default_factory=dict)

    @property
    def servers(self) -> frozenset[str]:
        return frozenset(name.partition("/")[0] for name in self.names)


def unknown_names(policy: Policy, known: KnownTools) -> Iterator[tuple[Rule, str]]:
    for rule in policy.rules:
        for glob in rule.tools:
            if problem := _problem_with(glob, known):
                yield rule, problem
        schemas = [
            schema for name, schema in known.schemas.items() if any(fnmatchcase(name, one) for one in rule.tools)
        ]
        for when in rule.when:
            problems = [_unknown_argument(when.steps, schema) for schema in schemas]
            if problems and all(problems):
                yield rule, problems[0]


def _problem_with(glob: str, known: KnownTools) -> str:
    server, _, tool = glob.partition("/")
    if is_glob(server) or server in ("function", "skill", "mcp"):
        return ""
    if server in known.servers:
        tools = [name for name in known.names if name.startswith(f"{server}/")]
        is_missing = not is_glob(tool) and glob not in tools
        return f"no tool of {server} is known as {tool}{did_you_mean(glob, tools)}" if is_missing else ""
    if server in LAUNCHERS:
        now = ", ".join(sorted(known.servers - set(LAUNCHERS))) or "none is known yet"
        return f"{server} is how a server is started; guards now take the name of the server itself ({now})"
    return f"no server is known as {server}{did_you_mean(server, known.servers)}"


def _unknown_argument(steps: tuple[str, ...], schema: JsonObject) -> str:
    for place, step in enumerate(steps):
        names = names_at(steps[:place], schema)
        if names and step not in names:
            name = place_of(steps[: place + 1]) if place else step
            return f"no argument is called {name}{did_you_mean(step, names)}"
    return ""
