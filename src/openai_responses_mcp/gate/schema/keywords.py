"""The walk through a value and a schema: what each keyword says about a value of its kind.

A finding is None if the value fits, `Misfit` if it does not, `Doubt` if that cannot be said here: a pattern that the
engine cannot read, a reference that leads out of the schema, a keyword of the wrong form. A doubt stays a doubt under
`not`; it is lost only where it makes no difference, as beside a misfit, or beside a form of `anyOf` that fits.
"""

import json
import operator
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any, TypeAlias

from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, is_number
from openai_responses_mcp.gate.schema.documents import ANY_DRAFT, DEFINITIONS, FORMS, TYPES, Document, are_texts
from openai_responses_mcp.gate.schema.patterns import SchemaPatterns

DEEPEST = 100
_LONGEST_NAME = 60
_MOST_SHOWN = 10
_CHARACTERS_PER_STEP = 64
_PATTERN_WORK_PER_STEP = 100


class OutOfSteps(Exception):
    """The budget is used up."""


class Steps:
    """A budget. A step is a small, bounded piece of work: looking at one value, one keyword, one name of a list."""

    def __init__(self, most: int) -> None:
        self.left = most

    def spend(self, count: int = 1) -> None:
        self.left -= count
        if self.left < 0:
            raise OutOfSteps


@dataclass(frozen=True, slots=True)
class Misfit:
    """Put into words only when it is reported: most are in branches that do not matter."""

    said: str
    about: tuple[Any, ...] = ()
    path: tuple[str | int, ...] = ()

    def __str__(self) -> str:
        return f"{'.'.join(_short(str(name)) for name in self.path) or 'it'}: {self.without_path()}"

    def without_path(self) -> str:
        texts = (
            one.without_path() if isinstance(one, Misfit) else _short(json.dumps(one, ensure_ascii=False))
            for one in self.about
        )
        return f"{self.said}{', '.join(texts)}"


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"


@dataclass(frozen=True, slots=True)
class Doubt:
    why: str


Finding: TypeAlias = Misfit | Doubt | None
# Which names and items some keyword has looked at, for `unevaluated…`, which is about the others. False stands for those
# that it may have looked at: that depends on a doubt.
Seen: TypeAlias = dict[str | int, bool]


class Walk:
    """One value and one schema."""

    def __init__(self, schema: JsonObject, steps: Steps, patterns: SchemaPatterns) -> None:
        self.document = Document(schema, steps.spend)
        self.steps = steps
        self.patterns = patterns
        self._depth = 0

    def check(self, schema: Any, value: Any, seen: Seen | None = None) -> Finding:
        """`seen` collects the names and items that were looked at, if a keyword above needs them."""
        if isinstance(schema, bool):
            self.steps.spend()
            return None if schema else Misfit("is not allowed here")
        if not isinstance(schema, Mapping):
            return Case(self, {}, value, seen).doubt("a part of it is no schema")
        self.steps.spend(1 + len(schema))
        self._depth += 1
        if self._depth > DEEPEST:
            raise RecursionError
        needs_seen = seen is not None or "unevaluatedItems" in schema or "unevaluatedProperties" in schema
        case = Case(self, schema, value, {} if needs_seen else None)
        finding: Finding = None  # a misfit if there is one, else a doubt if there is one
        for one in case.findings():
            finding = one if isinstance(one, Misfit) else finding or one
            if isinstance(one, Misfit):
                break
        self._depth -= 1
        if isinstance(finding, Misfit):
            if self.document.draft == ANY_DRAFT and "$ref" in schema and not isinstance(case.of_ref, Misfit):
                # Of the drafts that it may be, the older ones ignore what stands beside a reference.
                return Case(self, {}, value, seen).doubt("it does not name its draft")
        elif case.seen and seen is not None:
            self.steps.spend(len(case.seen))
            for place, is_certain in case.seen.items():
                seen[place] = seen.get(place, False) or (is_certain and finding is None)
        return finding

    def canonical(self, value: JsonValue, depth: int = 0) -> str:
        """A text that is the same for equal values: 1 and 1.0 are equal, 1 and true are not.

        Values are not compared themselves, because numbers can be chosen so that a set of them takes for ever.
        """
        self.steps.spend()
        if depth > DEEPEST:
            raise RecursionError
        if isinstance(value, Mapping):
            named = [f"{self.canonical(name)}:{self.canonical(value[name], depth + 1)}" for name in sorted(value)]
            return f"{{{','.join(named)}}}"
        if isinstance(value, list):
            return f"[{','.join([self.canonical(inner, depth + 1) for inner in value])}]"
        if isinstance(value, str):
            self.steps.spend(len(value) // _CHARACTERS_PER_STEP)
            return json.dumps(value)
        if isinstance(value, float) and value.is_integer():
            value = int(value)
        # In this base, because Python refuses to write very long numbers in base 10.
        return f"{value:x}" if isinstance(value, int) and not isinstance(value, bool) else repr(value)


class Case:
    """A value and a schema that it must fit. `said` has the keywords that count."""

    def __init__(self, walk: Walk, schema: JsonObject, value: Any, seen: Seen | None) -> None:
        self.walk = walk
        self.schema = schema
        self.value = value
        self.seen = seen
        self.of_ref: Finding = None
        words = ["$ref"] if walk.document.ignores_beside_ref and "$ref" in schema else schema
        self.said: dict[str, Any] = {word: schema[word] for word in words if walk.document.knows(word)}

    @property
    def places(self) -> Iterable[str | int]:
        """The names or the items of the value."""
        if isinstance(self.value, Mapping):
            return self.value
        return range(len(self.value)) if isinstance(self.value, list) else ()

    def findings(self) -> Iterator[Finding]:
        for word in [word for word, value in self.said.items() if not FORMS[word].is_kept(value)]:
            del self.said[word]
            if word not in DEFINITIONS:
                yield self.doubt(f"{word} of the schema has a form that it should not have")
        if "$ref" in self.said:
            target = self.walk.document.find(self.said["$ref"], self.schema)
            self.of_ref = self.doubt(target) if isinstance(target, str) else self.check(target)
            yield self.of_ref
        yield from _about_any(self)
        if isinstance(self.value, str):
            yield from _about_texts(self, self.value)
        elif isinstance(self.value, list):
            yield from _about_lists(self, self.value)
        elif isinstance(self.value, Mapping):
            yield from _about_objects(self, self.value)
        elif is_number(self.value):
            yield from _about_numbers(self, self.value)

    def doubt(self, why: str) -> Doubt:
        """What cannot be read may have looked at every part of the value."""
        self.note(self.places, is_certain=False)
        return Doubt(why)

    def note(self, places: Iterable[str | int], is_certain: bool = True) -> None:
        if self.seen is not None:
            self.seen.update({place: is_certain or self.seen.get(place, False) for place in places})

    def check(self, schema: Any) -> Finding:
        """The same value with another schema."""
        return self.walk.check(schema, self.value, self.seen)

    def check_inside(self, place: str | int, schema: Any, value: Any) -> Finding:
        finding = self.walk.check(schema, value)
        return replace(finding, path=(place, *finding.path)) if isinstance(finding, Misfit) else finding

    def check_parts(self, places: Mapping[Any, bool | None], schema: Any) -> Iterator[Finding]:
        """Names or items of the value. They have to fit where it says true, and may have to where it does not."""
        for place, is_certain in places.items():
            finding = self.check_inside(place, schema, self.value[place])
            self.note([place], bool(is_certain))
            if not is_certain:
                yield finding and Doubt("it depends on a pattern of the schema")
            else:
                yield Misfit("may not have ", (place,)) if schema is False and isinstance(place, str) else finding

    def check_unseen(self, keyword: str) -> Iterator[Finding]:
        """The parts that no other keyword has looked at."""
        if keyword in self.said:
            self.walk.steps.spend(len(self.value))
            seen = self.seen or {}
            unseen = {place: place not in seen for place in self.places if not seen.get(place)}
            yield from self.check_parts(unseen, self.said[keyword])

    def is_match(self, pattern: str, text: str) -> bool | None:
        """None if that cannot be said."""
        read = self.walk.patterns.read(pattern)
        if read is None or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)):
            return None
        self.walk.steps.spend(1 + len(text) * read.size // _PATTERN_WORK_PER_STEP)
        return read.is_in(text)


def _about_any(case: Case) -> Iterator[Finding]:
    said, canonical = case.said, case.walk.canonical
    if "type" in said:
        names = [said["type"]] if isinstance(said["type"], str) else said["type"]
        if not any(TYPES[name](case.value) for name in names):
            yield Misfit(f"must be {' or '.join(names)}")
    if "const" in said and canonical(case.value) != canonical(said["const"]):
        yield Misfit("must be ", (said["const"],))
    if "enum" in said:
        mine = canonical(case.value)
        if not any(canonical(one) == mine for one in said["enum"]):
            yield Misfit("must be one of ", tuple(said["enum"][:_MOST_SHOWN]))
    if "$dynamicRef" in said or "$recursiveRef" in said:
        yield case.doubt("a reference of the schema depends on the way to it")
    yield from map(case.check, said.get("allOf", ()))
    yield _forms(case, "anyOf", is_one=False)
    yield _forms(case, "oneOf", is_one=True)
    if "not" in said:
        finding = case.walk.check(said["not"], case.value)
        if not isinstance(finding, Misfit):
            yield finding or Misfit("has a form that is not allowed")
    if "if" in said:
        yield _branch(case, said["if"], [case.schema.get("then", True), case.schema.get("else", True)])


def _forms(case: Case, keyword: str, is_one: bool) -> Finding:
    """`anyOf` and `oneOf`."""
    findings: list[Finding] = []
    for form in case.said.get(keyword, ()):
        findings.append(case.check(form))
        if is_one and findings.count(None) > 1:
            return Misfit("fits more than one of the forms of oneOf")
        # A keyword about what is left over needs to know what every form has looked at.
        if not is_one and findings[-1] is None and case.seen is None:
            break
    doubt = next((finding for finding in findings if isinstance(finding, Doubt)), None)
    if None in findings or not findings:
        return doubt if is_one else None
    return doubt or Misfit(f"fits none of the {len(findings)} forms of {keyword}; the first: ", (findings[0],))


def _branch(case: Case, condition: Any, branches: list[Any]) -> Finding:
    finding = case.check(condition)
    if not isinstance(finding, Doubt):
        return case.check(branches[isinstance(finding, Misfit)])
    doubt = case.doubt(finding.why)
    findings = [case.walk.check(branch, case.value) for branch in branches]
    if all(isinstance(one, Misfit) for one in findings):
        return findings[0]
    return doubt if any(findings) else None


def _about_numbers(case: Case, value: int | float) -> Iterator[Finding]:
    for keyword, (said, is_within) in _LIMITS.items():
        limit = case.said.get(keyword)
        if limit is True:  # In the oldest draft it makes the other limit a strict one.
            limit = case.said.get(keyword.removeprefix("exclusive").lower())
        if is_number(limit) and not is_within(value, limit):
            yield Misfit(f"must be {said} {limit}")
    divisor = case.said.get("multipleOf")
    if divisor is not None and _fraction(value) % _fraction(divisor):
        yield Misfit(f"must be a multiple of {divisor}")


_LIMITS = {
    "maximum": ("at most", operator.le),
    "minimum": ("at least", operator.ge),
    "exclusiveMaximum": ("below", operator.lt),
    "exclusiveMinimum": ("above", operator.gt),
}


def _fraction(number: int | float) -> Fraction:
    """From its digits, as it was written: 0.3 is a multiple of 0.1."""
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _about_texts(case: Case, value: str) -> Iterator[Finding]:
    yield from _about_size(case, "Length", "characters")
    is_match = "pattern" not in case.said or case.is_match(case.said["pattern"], value)
    if is_match is None:
        yield Doubt("a pattern of the schema cannot be tried here")
    elif not is_match:
        yield Misfit("must match the pattern ", (case.said["pattern"],))


def _about_size(case: Case, what: str, unit: str) -> Iterator[Finding]:
    size, least, most = len(case.value), case.said.get(f"min{what}"), case.said.get(f"max{what}")
    if least is not None and size < least:
        yield Misfit(f"must have at least {least} {unit}")
    if most is not None and size > most:
        yield Misfit(f"must have at most {most} {unit}")


def _about_lists(case: Case, value: list[Any]) -> Iterator[Finding]:
    said, places = case.said, range(len(value))
    yield from _about_size(case, "Items", "items")
    is_old = isinstance(said.get("items"), list)
    prefix, rest = said.get("prefixItems", said["items"] if is_old else ()), "additionalItems" if is_old else "items"
    for place, schema in zip(places, prefix, strict=False):
        yield from case.check_parts({place: True}, schema)
    if rest in said:
        yield from case.check_parts(dict.fromkeys(places[len(prefix) :], True), said[rest])
    if said.get("uniqueItems") and len({case.walk.canonical(item) for item in value}) < len(value):
        yield Misfit("has the same item twice")
    if "contains" in said:
        yield _contains(case, [case.check_inside(place, said["contains"], value[place]) for place in places])
    yield from case.check_unseen("unevaluatedItems")


def _contains(case: Case, findings: list[Finding]) -> Finding:
    certain = [place for place, finding in enumerate(findings) if finding is None]
    doubts = [place for place, finding in enumerate(findings) if isinstance(finding, Doubt)]
    if case.walk.document.draft != 2019:
        case.note(certain)
        case.note(doubts, is_certain=False)
    least, most = case.said.get("minContains", 1), case.said.get("maxContains", len(findings))
    if len(certain) + len(doubts) < least or len(certain) > most:
        return Misfit(f"has {len(certain)} items of the form of contains, but must have {least} to {most}")
    return None if least <= len(certain) and len(certain) + len(doubts) <= most else findings[doubts[0]]


def _about_objects(case: Case, value: Mapping[str, Any]) -> Iterator[Finding]:
    said = case.said
    yield from _about_size(case, "Properties", "names")
    yield from _lacking(case, said.get("required", ()))
    case.walk.steps.spend(len(value))
    properties, patterns = said.get("properties", {}), said.get("patternProperties", {})
    for name in sorted(properties.keys() & value.keys()):
        yield from case.check_parts({name: True}, properties[name])
    matches = {name: {pattern: case.is_match(pattern, name) for pattern in patterns} for name in value}
    for pattern, schema in patterns.items():
        matching = {name: found[pattern] for name, found in matches.items() if found[pattern] is not False}
        yield from case.check_parts(matching, schema)
    if "additionalProperties" in said:
        unnamed = {name: found.values() for name, found in matches.items() if name not in properties}
        others = {name: None not in found for name, found in unnamed.items() if True not in found}
        yield from case.check_parts(others, said["additionalProperties"])
    if "propertyNames" in said:
        yield from (case.check_inside(name, said["propertyNames"], name) for name in value)
    yield from _about_dependents(case, value)
    yield from case.check_unseen("unevaluatedProperties")


def _lacking(case: Case, names: Sequence[str]) -> Iterator[Finding]:
    case.walk.steps.spend(len(names))
    yield from (Misfit("lacks ", (name,)) for name in names if name not in case.value)


def _about_dependents(case: Case, value: Mapping[str, Any]) -> Iterator[Finding]:
    """What must hold where a name is there: further names, or a schema."""
    for keyword in ("dependencies", "dependentRequired", "dependentSchemas"):
        dependents = case.said.get(keyword, {})
        case.walk.steps.spend(len(dependents))
        for one in [one for name, one in dependents.items() if name in value]:
            finding = next(_lacking(case, one), None) if are_texts(one) else case.check(one)
            is_dropped = keyword == "dependencies" and case.walk.document.draft > 7
            yield (finding and Doubt("dependencies is no keyword of this draft")) if is_dropped else finding
