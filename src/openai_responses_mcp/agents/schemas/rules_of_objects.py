"""Rules about objects. Patterns for names are not tried: where there are some, any further name may fit one of them."""

from collections.abc import Iterable, Mapping
from typing import Any

from openai_responses_mcp.agents.schemas.cases import Case, Problem, Rule, first
from openai_responses_mcp.agents.schemas.rules import at_least, at_most


def _properties(case: Case, wanted: Any) -> Problem | None:
    value = _names(case)
    case.spend(min(len(wanted), len(value)))
    present = (
        [name for name in wanted if name in value] if len(wanted) < len(value) else filter(wanted.__contains__, value)
    )
    return first(_named(case, [name], wanted[name]) for name in present)


def _pattern_properties(case: Case, wanted: Any) -> Problem | None:
    if case.seen is not None and wanted:
        case.seen.has_all_names = True
    return None


def _additional_properties(case: Case, wanted: Any) -> Problem | None:
    if case.schema.get("patternProperties"):
        return None
    case.spend(len(_names(case)))
    known = case.schema.get("properties", {})
    return _named(case, [name for name in _names(case) if name not in known], wanted)


def _unevaluated_properties(case: Case, wanted: Any) -> Problem | None:
    if case.seen is None or case.seen.has_all_names:
        return None
    case.spend(len(_names(case)))
    return _named(case, [name for name in _names(case) if name not in case.seen.names], wanted)


def _property_names(case: Case, wanted: Any) -> Problem | None:
    return first(case.check_inside(name, wanted, name) for name in _names(case))


def _required(case: Case, wanted: Any) -> Problem | None:
    if not isinstance(case.value, Mapping):
        return None
    case.spend(len(wanted))
    missing = [name for name in wanted if name not in case.value]
    return case.problem("lacks ", missing[0]) if missing else None


def _dependencies(case: Case, wanted: Any) -> Problem | None:
    """What must hold where a name is there: further names, or a schema."""
    case.spend(len(wanted))
    return first(
        _required(case, one) if isinstance(one, list) else case.check(one)
        for name, one in wanted.items()
        if name in _names(case)
    )


def _named(case: Case, names: Iterable[str], schema: Any) -> Problem | None:
    for name in names:
        problem = case.check_inside(name, schema, case.value[name])
        if problem is not None:
            return case.problem("may not have ", name) if schema is False else problem
        if case.seen is not None:
            case.seen.names.add(name)
    return None


def _names(case: Case) -> Mapping[str, Any]:
    return case.value if isinstance(case.value, Mapping) else {}


RULES: Mapping[str, Rule] = {
    "additionalProperties": _additional_properties,
    "dependencies": _dependencies,
    "dependentRequired": _dependencies,
    "dependentSchemas": _dependencies,
    "maxProperties": at_most(Mapping, "names"),
    "minProperties": at_least(Mapping, "names"),
    "patternProperties": _pattern_properties,
    "properties": _properties,
    "propertyNames": _property_names,
    "required": _required,
    "unevaluatedProperties": _unevaluated_properties,
}
