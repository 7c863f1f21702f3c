"""Is this a JSON Schema that values can be checked against, right here and within bounds?

Looks at the form of every keyword that means something to `fitting`, in every place where a schema may stand. Drafts 4
to 2020-12 are understood; keywords that say nothing about a value (`title`, `format`, …) are not looked at.
"""

import re
from collections.abc import Callable, Iterable, Mapping
from itertools import islice
from typing import Any

from openai_responses_mcp.agents.schemas.references import REFERENCES, References, nodes_of

# A schema is sent to the model with every request.
MOST_PARTS = 10_000
LONGEST_PLACE = 200

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

# Where schemas stand inside a schema.
ONE_SCHEMA = frozenset(
    {
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    }
)
LISTED_SCHEMAS = frozenset({"allOf", "anyOf", "oneOf", "prefixItems"})
NAMED_SCHEMAS = frozenset({"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"})


def problem_in(schema: Any, *, checks_patterns: bool = True) -> str | None:
    """Why the schema cannot be used, in one sentence. Patterns are only read, in the form that Python gives them."""
    if not isinstance(schema, Mapping):
        return "A schema is a JSON object"
    if len(list(islice(nodes_of(schema), MOST_PARTS + 1))) > MOST_PARTS:
        return f"The schema has more than {MOST_PARTS} parts; make it smaller"
    return _Reading(schema, checks_patterns).problem()


class _Reading:
    def __init__(self, root: Mapping[str, Any], checks_patterns: bool) -> None:
        self._root = root
        self._references = References(root)
        self._checks_patterns = checks_patterns

    def problem(self) -> str | None:
        waiting: list[tuple[str, Any]] = [("", self._root)]
        seen: set[int] = set()
        while waiting:
            place, schema = waiting.pop()
            if isinstance(schema, bool) or id(schema) in seen:
                continue
            if not isinstance(schema, Mapping):
                return f"{place} is not a schema, which is an object, true or false"
            seen.add(id(schema))
            for keyword, value in schema.items():
                here = f"{place}.{keyword}".removeprefix(".")[-LONGEST_PLACE:]
                problem = self._problem_of(keyword, value, is_root=schema is self._root)
                if problem:
                    return f"{here} {problem}"
                waiting.extend((f"{here}.{name}".rstrip("."), one) for name, one in self._schemas_in(keyword, value))
        return None

    def _problem_of(self, keyword: str, value: Any, *, is_root: bool) -> str | None:
        if keyword in REFERENCES:
            is_known = self._references.find(value) is not None
            return None if is_known else "leads to something that the schema does not contain; write it inside"
        if keyword == "$id" and isinstance(value, str) and not is_root and not value.startswith("#"):
            return "gives a part an address of its own; take it out"
        if keyword in ("pattern", "patternProperties") and self._checks_patterns:
            names = value if isinstance(value, Mapping) else [value]
            if not all(isinstance(name, str) and _is_pattern(name) for name in names):
                return "is not a regular expression"
        is_fine, said = FORMS.get(keyword, (_anything, ""))
        return None if is_fine(value) else said

    def _schemas_in(self, keyword: str, value: Any) -> Iterable[tuple[object, Any]]:
        if keyword in REFERENCES:
            return [(value, self._references.find(value))]
        if keyword in LISTED_SCHEMAS or (keyword == "items" and isinstance(value, list)):
            return enumerate(value)
        if keyword in NAMED_SCHEMAS:
            return list(value.items())
        if keyword == "dependencies":
            return [(name, one) for name, one in value.items() if not isinstance(one, list)]
        return [("", value)] if keyword in ONE_SCHEMA or keyword == "items" else []


def _anything(value: Any) -> bool:
    return True


def _is_pattern(text: str) -> bool:
    try:
        re.compile(text)
    except (re.error, OverflowError, RecursionError):
        return False
    return True


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_limit(value: Any) -> bool:
    """The oldest draft says true or false here."""
    return _is_number(value) or isinstance(value, bool)


def _is_count(value: Any) -> bool:
    return _is_number(value) and value >= 0 and value == value // 1


def _is_divisor(value: Any) -> bool:
    return _is_number(value) and 0 < value < float("inf")


def _are_texts(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _are_types(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return _are_texts(names) and 0 < len(names) <= len(TYPES) and TYPES.issuperset(names)


def _are_named_texts(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_are_texts, value.values()))


def _are_dependencies(value: Any) -> bool:
    return isinstance(value, Mapping) and all(map(_are_texts, (one for one in value.values() if isinstance(one, list))))


def _are_schemas(value: Any) -> bool:
    return isinstance(value, list) and bool(value)


_Form = tuple[Callable[[Any], bool], str]
_COUNT: _Form = (_is_count, "is not a whole number from 0 up")
_NUMBER: _Form = (_is_number, "is not a number")
_LIMIT: _Form = (_is_limit, "is not a number")
_OBJECT: _Form = (lambda value: isinstance(value, Mapping), "is not an object with names")

FORMS: Mapping[str, _Form] = {
    **dict.fromkeys(("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"), _COUNT),
    **dict.fromkeys(("maxContains", "minContains"), _COUNT),
    **dict.fromkeys(("maximum", "minimum"), _NUMBER),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), _LIMIT),
    **dict.fromkeys(NAMED_SCHEMAS, _OBJECT),
    **dict.fromkeys(LISTED_SCHEMAS, (_are_schemas, "is not a list of schemas")),
    "dependencies": (_are_dependencies, "gives no schema or list of names for each name"),
    "dependentRequired": (_are_named_texts, "gives no list of names for each name"),
    "enum": (lambda value: isinstance(value, list), "is not a list"),
    "multipleOf": (_is_divisor, "is not a number above 0"),
    "pattern": (lambda value: isinstance(value, str), "is not a text"),
    "required": (_are_texts, "is not a list of names"),
    "type": (_are_types, f"is not one of {', '.join(sorted(TYPES))}"),
    "uniqueItems": (lambda value: isinstance(value, bool), "is neither true nor false"),
}
