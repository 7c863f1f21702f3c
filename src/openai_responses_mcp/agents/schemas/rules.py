"""Rules about any value, about numbers and about texts."""

from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

from openai_responses_mcp.agents.schemas.canonical import canonical
from openai_responses_mcp.agents.schemas.cases import Case, Problem, Rule, first

_MOST_SHOWN = 10


def is_number(value: Any) -> bool:
    """Python also reads NaN and Infinity, which are not JSON."""
    return isinstance(value, int | float) and not isinstance(value, bool) and value - value == 0


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_number(value) and value == value // 1,
    "null": lambda value: value is None,
    "number": is_number,
    "object": lambda value: isinstance(value, Mapping),
    "string": lambda value: isinstance(value, str),
}


def _type(case: Case, wanted: Any) -> Problem | None:
    names = [wanted] if isinstance(wanted, str) else wanted
    return None if any(TYPES[name](case.value) for name in names) else case.problem(f"must be {' or '.join(names)}")


def _enum(case: Case, wanted: Any) -> Problem | None:
    mine = canonical(case.value, case.fitting.steps)
    if any(canonical(one, case.fitting.steps) == mine for one in wanted):
        return None
    return case.problem("must be one of ", *wanted[:_MOST_SHOWN])


def _const(case: Case, wanted: Any) -> Problem | None:
    return None if _enum(case, [wanted]) is None else case.problem("must be ", wanted)


# ---------------------------------------------------------------------------------------------------------------------
# Schemas put together


def _ref(case: Case, wanted: Any) -> Problem | None:
    target = case.fitting.references.find(wanted)
    return case.problem("the schema lacks a part that it refers to") if target is None else case.check(target)


def _all_of(case: Case, wanted: Any) -> Problem | None:
    return first(case.check(one) for one in wanted)


def _any_of(case: Case, wanted: Any) -> Problem | None:
    problems: list[Problem] = []
    for one in wanted:
        problem = case.check(one)
        # A keyword about what is left over needs to know what every one of them has looked at.
        if problem is None and case.seen is None:
            return None
        problems += [] if problem is None else [problem]
    return None if len(problems) < len(wanted) else _fits_none(case, "anyOf", problems)


def _one_of(case: Case, wanted: Any) -> Problem | None:
    problems: list[Problem] = []
    for number, one in enumerate(wanted):
        problem = case.check(one)
        problems += [] if problem is None else [problem]
        if len(problems) < number:
            return case.problem("fits more than one of the forms of oneOf")
    return None if len(problems) < len(wanted) else _fits_none(case, "oneOf", problems)


def _fits_none(case: Case, keyword: str, problems: list[Problem]) -> Problem:
    return case.problem(f"fits none of the {len(problems)} forms of {keyword}; the first: ", problems[0])


def _not(case: Case, wanted: Any) -> Problem | None:
    fits = case.fitting.check(wanted, case.value, None) is None
    return case.problem("has a form that is not allowed") if fits else None


def _if(case: Case, wanted: Any) -> Problem | None:
    return case.check(case.schema.get("then" if case.fits(wanted) else "else", True))


# ---------------------------------------------------------------------------------------------------------------------
# Numbers and texts


def _minimum(case: Case, wanted: Any) -> Problem | None:
    if case.schema.get("exclusiveMinimum") is True:
        return _above(case, wanted)
    return None if not is_number(case.value) or case.value >= wanted else case.problem(f"must be at least {wanted}")


def _maximum(case: Case, wanted: Any) -> Problem | None:
    if case.schema.get("exclusiveMaximum") is True:
        return _below(case, wanted)
    return None if not is_number(case.value) or case.value <= wanted else case.problem(f"must be at most {wanted}")


def _above(case: Case, wanted: Any) -> Problem | None:
    # In the oldest draft it is true or false, and belongs to minimum.
    is_fine = isinstance(wanted, bool) or not is_number(case.value) or case.value > wanted
    return None if is_fine else case.problem(f"must be above {wanted}")


def _below(case: Case, wanted: Any) -> Problem | None:
    is_fine = isinstance(wanted, bool) or not is_number(case.value) or case.value < wanted
    return None if is_fine else case.problem(f"must be below {wanted}")


def _multiple_of(case: Case, wanted: Any) -> Problem | None:
    if not is_number(case.value):
        return None
    # From their digits, as they were written: 0.3 is a multiple of 0.1.
    value, divisor = (Fraction(one) if isinstance(one, int) else Fraction(repr(one)) for one in (case.value, wanted))
    return None if value % divisor == 0 else case.problem(f"must be a multiple of {wanted}")


def at_least(kind: type[Any], what: str) -> Rule:
    def rule(case: Case, wanted: Any) -> Problem | None:
        is_fine = not isinstance(case.value, kind) or len(case.value) >= wanted
        return None if is_fine else case.problem(f"must have at least {wanted} {what}")

    return rule


def at_most(kind: type[Any], what: str) -> Rule:
    def rule(case: Case, wanted: Any) -> Problem | None:
        is_fine = not isinstance(case.value, kind) or len(case.value) <= wanted
        return None if is_fine else case.problem(f"must have at most {wanted} {what}")

    return rule


RULES: Mapping[str, Rule] = {
    "$dynamicRef": _ref,
    "$recursiveRef": _ref,
    "$ref": _ref,
    "allOf": _all_of,
    "anyOf": _any_of,
    "const": _const,
    "enum": _enum,
    "exclusiveMaximum": _below,
    "exclusiveMinimum": _above,
    "if": _if,
    "maxLength": at_most(str, "characters"),
    "maximum": _maximum,
    "minLength": at_least(str, "characters"),
    "minimum": _minimum,
    "multipleOf": _multiple_of,
    "not": _not,
    "oneOf": _one_of,
    "type": _type,
}
