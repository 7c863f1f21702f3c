"""The walk through a value and a schema, with a rule for each keyword.

A rule says None if the value fits, `Misfit` if it does not, and `Doubt` if that cannot be said here: a pattern that the
engine cannot read, a reference that leads out of the schema, a keyword of the wrong form. A doubt stays a doubt under
`not`; it is lost only where it makes no difference, as beside a misfit, or beside a form of `anyOf` that fits.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, TypeAlias

from openai_responses_mcp.gate.json_values import JsonValue, is_number
from openai_responses_mcp.gate.schema.documents import FORMS, TYPES, Document, are_texts
from openai_responses_mcp.gate.schema.patterns import SchemaPatterns

DEEPEST = 100
_LONGEST_NAME = 60
_MOST_SHOWN = 10
_CHARACTERS_PER_STEP = 64
_PATTERN_WORK_PER_STEP = 100


class OutOfSteps(Exception):
    """The budget is used up."""


class TooDeep(Exception):
    """The value or the schema is nested deeper than anybody writes."""


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

    path: tuple[str | int, ...]
    said: str
    about: tuple[Any, ...] = ()

    def __str__(self) -> str:
        return f"{'.'.join(_short(str(name)) for name in self.path) or 'it'}: {self.without_path()}"

    def without_path(self) -> str:
        return f"{self.said}{', '.join(_shown(one) for one in self.about)}"


@dataclass(frozen=True, slots=True)
class Doubt:
    why: str


Finding: TypeAlias = Misfit | Doubt | None
Rule = Callable[["Case", Any], Finding]


def every(findings: Iterable[Finding]) -> Finding:
    """A misfit if there is one, else a doubt if there is one."""
    doubt: Finding = None
    for finding in findings:
        if isinstance(finding, Misfit):
            return finding
        doubt = doubt or finding
    return doubt


# Which names and items some keyword has looked at, for `unevaluated…`, which is about the others. False stands for those
# that it may have looked at: that depends on a doubt.
Seen: TypeAlias = dict[str | int, bool]


def note(seen: Seen | None, places: Iterable[str | int], is_certain: bool = True) -> None:
    if seen is not None:
        seen.update({place: is_certain or seen.get(place, False) for place in places})


class Walk:
    """One value and one schema."""

    def __init__(self, document: Document, steps: Steps, patterns: SchemaPatterns) -> None:
        self.document = document
        self.steps = steps
        self.patterns = patterns
        self.path: list[str | int] = []
        self._depth = 0

    def check(self, schema: Any, value: Any, seen: Seen | None) -> Finding:
        """`seen` gets what was looked at, if somebody above needs it."""
        if isinstance(schema, bool):
            self.steps.spend()
            return None if schema else Misfit(tuple(self.path), "is not allowed here")
        if not isinstance(schema, Mapping):
            return Case(self, {}, value, seen).doubt("a part of it is no schema")
        self.steps.spend(1 + len(schema))
        if self.document.ignores_beside_ref and "$ref" in schema:
            schema = {"$ref": schema["$ref"]}
        own: Seen | None = {} if seen is not None or not _LAST.isdisjoint(schema) else None
        self._depth += 1
        if self._depth > DEEPEST:
            raise TooDeep
        case = Case(self, schema, value, own)
        finding = every(case.asked(keyword) for keyword in sorted(schema, key=_LAST.__contains__))
        self._depth -= 1
        if isinstance(finding, Misfit) and not self.document.draft and "$ref" in schema and len(schema) > 1:
            # Of the drafts that it may be, the older ones ignore what stands beside a reference.
            is_certain = isinstance(case.asked("$ref"), Misfit)
            return finding if is_certain else Case(self, {}, value, seen).doubt("it does not name its draft")
        if own and seen is not None and not isinstance(finding, Misfit):
            self.steps.spend(len(own))
            for place, is_certain in own.items():
                note(seen, [place], is_certain and finding is None)
        return finding

    def canonical(self, value: JsonValue, depth: int = 0) -> str:
        """A text that is the same for equal values: 1 and 1.0 are equal, 1 and true are not.

        Values are not compared themselves, because numbers can be chosen so that a set of them takes for ever.
        """
        self.steps.spend()
        if depth > DEEPEST:
            raise TooDeep
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


@dataclass(frozen=True, slots=True)
class Case:
    """A value and a schema that it must fit."""

    walk: Walk
    schema: Mapping[str, Any]
    value: Any
    seen: Seen | None

    def asked(self, keyword: str) -> Finding:
        rule = RULES.get(keyword)
        if rule is None or not self.walk.document.knows(keyword):
            return None
        is_well_formed, _ = FORMS.get(keyword, (None, ""))
        if is_well_formed is not None and not is_well_formed(self.schema[keyword]):
            return self.doubt(f"{keyword} of the schema has a form that it should not have")
        return rule(self, self.schema[keyword])

    def known(self, keyword: str, default: Any) -> Any:
        """What another keyword of the same schema says, if it can be used."""
        value = self.schema.get(keyword, default) if self.walk.document.knows(keyword) else default
        return value if keyword not in FORMS or FORMS[keyword][0](value) else default

    def misfit(self, said: str, *about: Any) -> Misfit:
        return Misfit(tuple(self.walk.path), said, about)

    def doubt(self, why: str) -> Doubt:
        """What cannot be read may have looked at every part of the value."""
        note(self.seen, [*self.names(), *range(len(self.items()))], is_certain=False)
        return Doubt(why)

    def check(self, schema: Any) -> Finding:
        """The same value with another schema."""
        return self.walk.check(schema, self.value, self.seen)

    def check_inside(self, place: str | int, schema: Any, value: Any) -> Finding:
        self.walk.path.append(place)
        finding = self.walk.check(schema, value, None)
        self.walk.path.pop()
        return finding

    def check_parts(self, places: Iterable[Any], schema: Any) -> Finding:
        """Names or items of the value, which count as looked at from now on."""

        def finding_at(place: Any) -> Finding:
            finding = self.check_inside(place, schema, self.value[place])
            note(self.seen, [place])
            is_forbidden = schema is False and isinstance(place, str) and finding is not None
            return self.misfit("may not have ", place) if is_forbidden else finding

        return every(map(finding_at, places))

    def names(self) -> Mapping[str, Any]:
        return self.value if isinstance(self.value, Mapping) else {}

    def items(self) -> list[Any]:
        return self.value if isinstance(self.value, list) else []

    def is_match(self, pattern: str, text: str) -> bool | None:
        """None if that cannot be said."""
        read = self.walk.patterns.read(pattern)
        if read is None or (not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text)):
            return None
        self.walk.steps.spend(1 + len(text) * read.size // _PATTERN_WORK_PER_STEP)
        return read.is_in(text)


# ---------------------------------------------------------------------------------------------------------------------
# Any value


def _type(case: Case, wanted: Any) -> Finding:
    names = [wanted] if isinstance(wanted, str) else wanted
    return None if any(TYPES[name](case.value) for name in names) else case.misfit(f"must be {' or '.join(names)}")


def _enum(case: Case, wanted: Any) -> Finding:
    mine = case.walk.canonical(case.value)
    if any(case.walk.canonical(one) == mine for one in wanted):
        return None
    return case.misfit("must be one of ", *wanted[:_MOST_SHOWN])


def _const(case: Case, wanted: Any) -> Finding:
    return None if _enum(case, [wanted]) is None else case.misfit("must be ", wanted)


def _ref(case: Case, wanted: Any) -> Finding:
    target = case.walk.document.find(wanted, case.schema, case.walk.steps.spend)
    return case.doubt(target) if isinstance(target, str) else case.check(target)


def _dynamic_ref(case: Case, _: Any) -> Finding:
    return case.doubt("a reference of the schema depends on the way to it")


def _all_of(case: Case, wanted: Any) -> Finding:
    return every(map(case.check, wanted))


def _any_of(case: Case, wanted: Any) -> Finding:
    findings: list[Finding] = []
    for one in wanted:
        findings.append(case.check(one))
        # A keyword about what is left over needs to know what every one of them has looked at.
        if findings[-1] is None and case.seen is None:
            return None
    return None if None in findings else _fits_none(case, "anyOf", findings)


def _one_of(case: Case, wanted: Any) -> Finding:
    findings: list[Finding] = []
    for one in wanted:
        findings.append(case.check(one))
        if findings.count(None) > 1:
            return case.misfit("fits more than one of the forms of oneOf")
    doubts = [finding for finding in findings if isinstance(finding, Doubt)]
    if None in findings:
        return doubts[0] if doubts else None
    return _fits_none(case, "oneOf", findings)


def _fits_none(case: Case, keyword: str, findings: list[Finding]) -> Finding:
    doubt = next((finding for finding in findings if isinstance(finding, Doubt)), None)
    return doubt or case.misfit(f"fits none of the {len(findings)} forms of {keyword}; the first: ", findings[0])


def _not(case: Case, wanted: Any) -> Finding:
    finding = case.walk.check(wanted, case.value, None)
    if isinstance(finding, Doubt):
        return finding
    return case.misfit("has a form that is not allowed") if finding is None else None


def _if(case: Case, wanted: Any) -> Finding:
    condition = case.check(wanted)
    then, otherwise = case.schema.get("then", True), case.schema.get("else", True)
    if not isinstance(condition, Doubt):
        return case.check(then if condition is None else otherwise)
    branches: tuple[Seen, Seen] = ({}, {})
    findings = [case.walk.check(one, case.value, seen) for one, seen in zip((then, otherwise), branches, strict=True)]
    note(case.seen, [*branches[0], *branches[1]], is_certain=False)
    return findings[0] if all(isinstance(finding, Misfit) for finding in findings) else every(findings) and condition


# ---------------------------------------------------------------------------------------------------------------------
# Numbers and texts


def _limit(said: str, is_within: Callable[[Any, Any], bool], strictly: str = "") -> Rule:
    def rule(case: Case, wanted: Any) -> Finding:
        # In the oldest draft the strict limit is true or false, and belongs to the other one.
        if isinstance(wanted, bool) or not is_number(case.value):
            return None
        if case.schema.get(strictly) is True:
            return RULES[strictly](case, wanted)
        return None if is_within(case.value, wanted) else case.misfit(f"must be {said} {wanted}")

    return rule


def _multiple_of(case: Case, wanted: Any) -> Finding:
    if not is_number(case.value):
        return None
    # From their digits, as they were written: 0.3 is a multiple of 0.1.
    value, divisor = (Fraction(one) if isinstance(one, int) else Fraction(repr(one)) for one in (case.value, wanted))
    return None if value % divisor == 0 else case.misfit(f"must be a multiple of {wanted}")


def _pattern(case: Case, wanted: Any) -> Finding:
    if not isinstance(case.value, str):
        return None
    is_match = case.is_match(wanted, case.value)
    if is_match is None:
        return Doubt("a pattern of the schema cannot be tried here")
    return None if is_match else case.misfit("must match the pattern ", wanted)


def _length(kind: type[Any], what: str, *, is_least: bool) -> Rule:
    def rule(case: Case, wanted: Any) -> Finding:
        length = len(case.value) if isinstance(case.value, kind) else wanted
        is_fine = length >= wanted if is_least else length <= wanted
        return None if is_fine else case.misfit(f"must have at {'least' if is_least else 'most'} {wanted} {what}")

    return rule


# ---------------------------------------------------------------------------------------------------------------------
# Lists


def _prefix_items(case: Case, wanted: Any) -> Finding:
    return every(case.check_parts([place], one) for place, one in enumerate(wanted[: len(case.items())]))


def _items(case: Case, wanted: Any) -> Finding:
    if isinstance(wanted, list):
        return _prefix_items(case, wanted)
    return case.check_parts(range(len(case.known("prefixItems", ())), len(case.items())), wanted)


def _additional_items(case: Case, wanted: Any) -> Finding:
    prefix = case.schema.get("items")
    return case.check_parts(range(len(prefix), len(case.items())), wanted) if isinstance(prefix, list) else None


def _contains(case: Case, wanted: Any) -> Finding:
    if not isinstance(case.value, list):
        return None
    findings = [case.check_inside(place, wanted, item) for place, item in enumerate(case.value)]
    certain = [place for place, finding in enumerate(findings) if finding is None]
    doubts = [place for place, finding in enumerate(findings) if isinstance(finding, Doubt)]
    if case.walk.document.draft != 2019:
        note(case.seen, certain)
        note(case.seen, doubts, is_certain=False)
    least, most = case.known("minContains", 1), case.known("maxContains", len(findings))
    if least <= len(certain) and len(certain) + len(doubts) <= most:
        return None
    if len(certain) + len(doubts) < least or len(certain) > most:
        return case.misfit(f"has {len(certain)} items of the form of contains, but must have {least} to {most}")
    return findings[doubts[0]]


def _unique_items(case: Case, wanted: Any) -> Finding:
    different = {case.walk.canonical(item) for item in case.items()} if wanted else case.items()
    return None if len(different) == len(case.items()) else case.misfit("has the same item twice")


# ---------------------------------------------------------------------------------------------------------------------
# Objects


def _properties(case: Case, wanted: Any) -> Finding:
    value = case.names()
    case.walk.steps.spend(min(len(wanted), len(value)))
    fewer, more = (wanted, value) if len(wanted) < len(value) else (value, wanted)
    return every(case.check_parts([name], wanted[name]) for name in fewer if name in more)


def _pattern_properties(case: Case, wanted: Any) -> Finding:
    return every(_matching(case, pattern, one) for pattern, one in wanted.items())


def _matching(case: Case, pattern: str, schema: Any) -> Finding:
    matches = {name: case.is_match(pattern, name) for name in case.names()}
    finding = case.check_parts([name for name, is_match in matches.items() if is_match], schema)
    doubtful = [name for name, is_match in matches.items() if is_match is None]
    return every([finding, _only_perhaps(case, doubtful, schema)])


def _only_perhaps(case: Case, places: Iterable[Any], schema: Any) -> Finding:
    """Parts that perhaps need not fit: if one does not, that is a doubt."""
    findings = {place: case.check_inside(place, schema, case.value[place]) for place in places}
    note(case.seen, findings, is_certain=False)
    return Doubt("it depends on a pattern of the schema") if any(findings.values()) else None


def _additional_properties(case: Case, wanted: Any) -> Finding:
    patterns, known = case.known("patternProperties", {}), case.known("properties", {})
    case.walk.steps.spend(len(case.names()))
    others = [name for name in case.names() if name not in known]
    matches = {name: {case.is_match(pattern, name) for pattern in patterns} for name in others}
    finding = case.check_parts([name for name in others if matches[name] <= {False}], wanted)
    doubtful = [name for name in others if None in matches[name] and True not in matches[name]]
    return every([finding, _only_perhaps(case, doubtful, wanted)])


def _unevaluated(case: Case, wanted: Any, places: Iterable[Any]) -> Finding:
    seen = case.seen or {}
    case.walk.steps.spend(len(case.value) if isinstance(case.value, Mapping | list) else 0)
    doubtful = [place for place in places if seen.get(place) is False]
    finding = case.check_parts([place for place in places if place not in seen], wanted)
    return every([finding, _only_perhaps(case, doubtful, wanted)])


def _property_names(case: Case, wanted: Any) -> Finding:
    return every(case.check_inside(name, wanted, name) for name in case.names())


def _required(case: Case, wanted: Any) -> Finding:
    if not isinstance(case.value, Mapping):
        return None
    case.walk.steps.spend(len(wanted))
    missing = next((name for name in wanted if name not in case.value), None)
    return None if missing is None else case.misfit("lacks ", missing)


def _dependencies(case: Case, wanted: Any) -> Finding:
    """What must hold where a name is there: further names, or a schema."""
    case.walk.steps.spend(len(wanted))
    present = [one for name, one in wanted.items() if name in case.names()]
    return every(_required(case, one) if are_texts(one) else case.check(one) for one in present)


def _old_dependencies(case: Case, wanted: Any) -> Finding:
    finding = _dependencies(case, wanted)
    is_old = not case.walk.document.draft or case.walk.document.ignores_beside_ref
    return finding if is_old or finding is None else Doubt("dependencies is no keyword of this draft")


# Keywords about what is left over come last.
_LAST = frozenset({"unevaluatedItems", "unevaluatedProperties"})

RULES: Mapping[str, Rule] = {
    "$dynamicRef": _dynamic_ref,
    "$recursiveRef": _dynamic_ref,
    "$ref": _ref,
    "additionalItems": _additional_items,
    "additionalProperties": _additional_properties,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _const,
    "contains": _contains,
    "dependencies": _old_dependencies,
    "dependentRequired": _dependencies,
    "dependentSchemas": _dependencies,
    "enum": _enum,
    "exclusiveMaximum": _limit("below", lambda value, limit: value < limit),
    "exclusiveMinimum": _limit("above", lambda value, limit: value > limit),
    "if": _if,
    "items": _items,
    "maxItems": _length(list, "items", is_least=False),
    "maxLength": _length(str, "characters", is_least=False),
    "maxProperties": _length(Mapping, "names", is_least=False),
    "maximum": _limit("at most", lambda value, limit: value <= limit, "exclusiveMaximum"),
    "minItems": _length(list, "items", is_least=True),
    "minLength": _length(str, "characters", is_least=True),
    "minProperties": _length(Mapping, "names", is_least=True),
    "minimum": _limit("at least", lambda value, limit: value >= limit, "exclusiveMinimum"),
    "multipleOf": _multiple_of,
    "not": _not,
    "oneOf": _one_of,
    "pattern": _pattern,
    "patternProperties": _pattern_properties,
    "prefixItems": _prefix_items,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "type": _type,
    "unevaluatedItems": lambda case, wanted: _unevaluated(case, wanted, range(len(case.items()))),
    "unevaluatedProperties": lambda case, wanted: _unevaluated(case, wanted, case.names()),
    "uniqueItems": _unique_items,
}


def _shown(about: Any) -> str:
    return about.without_path() if isinstance(about, Misfit) else _short(json.dumps(about, ensure_ascii=False))


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST_NAME else f"{text[:_LONGEST_NAME]}…"
