"""Rules about lists."""

from collections.abc import Iterable, Mapping
from typing import Any

from openai_responses_mcp.agents.schemas.canonical import canonical
from openai_responses_mcp.agents.schemas.cases import Case, Problem, Rule
from openai_responses_mcp.agents.schemas.rules import at_least, at_most


def _prefix_items(case: Case, wanted: Any) -> Problem | None:
    for place, schema in enumerate(wanted[: _count(case)]):
        problem = _items_at(case, [place], schema)
        if problem is not None:
            return problem
    return None


def _items(case: Case, wanted: Any) -> Problem | None:
    if isinstance(wanted, list):
        return _prefix_items(case, wanted)
    return _items_at(case, range(len(case.schema.get("prefixItems", ())), _count(case)), wanted)


def _additional_items(case: Case, wanted: Any) -> Problem | None:
    prefix = case.schema.get("items")
    return _items_at(case, range(len(prefix), _count(case)), wanted) if isinstance(prefix, list) else None


def _unevaluated_items(case: Case, wanted: Any) -> Problem | None:
    case.spend(_count(case))
    looked_at = case.seen.items if case.seen else ()
    return _items_at(case, [place for place in range(_count(case)) if place not in looked_at], wanted)


def _contains(case: Case, wanted: Any) -> Problem | None:
    if not isinstance(case.value, list):
        return None
    found = [place for place, item in enumerate(case.value) if case.check_inside(place, wanted, item) is None]
    if case.seen is not None:
        case.seen.items.update(found)
    least, most = case.schema.get("minContains", 1), case.schema.get("maxContains", len(found))
    if least <= len(found) <= most:
        return None
    return case.problem(f"has {len(found)} items of the form of contains, but must have {least} to {most}")


def _unique_items(case: Case, wanted: Any) -> Problem | None:
    if not wanted or not isinstance(case.value, list):
        return None
    different = {canonical(item, case.fitting.steps) for item in case.value}
    return None if len(different) == len(case.value) else case.problem("has the same item twice")


def _items_at(case: Case, places: Iterable[int], schema: Any) -> Problem | None:
    for place in places:
        problem = case.check_inside(place, schema, case.value[place])
        if problem is not None:
            return problem
        if case.seen is not None:
            case.seen.items.add(place)
    return None


def _count(case: Case) -> int:
    return len(case.value) if isinstance(case.value, list) else 0


RULES: Mapping[str, Rule] = {
    "additionalItems": _additional_items,
    "contains": _contains,
    "items": _items,
    "maxItems": at_most(list, "items"),
    "minItems": at_least(list, "items"),
    "prefixItems": _prefix_items,
    "unevaluatedItems": _unevaluated_items,
    "uniqueItems": _unique_items,
}
