"""Names of arguments that some servers would take for others.

A server that ignores the case of names would read another argument than the rules do. So a name that differs from a
known one only in case is refused, at every depth, and so are two such names in one object. Known are the names that the
tool's schema declares and those that a rule looks at. A map without known names is left alone.
"""

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence

from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, squeezed
from openai_responses_mcp.gate.schema.documents import REFERENCES, Document

# Keywords that hold further schemas for the same value.
_LISTED = ("allOf", "anyOf", "oneOf")
_SINGLE = ("if", "then", "else", "not")
_NAMED = ("dependentSchemas", "dependencies")

_Pointers = Sequence[tuple[str, ...]]


def unclear_name(args: JsonObject, schema: JsonObject, pointers: Iterable[tuple[str, ...]] = ()) -> str | None:
    """The first such name, with what it could be taken for, or None."""
    parts = _Parts(schema)
    waiting: list[tuple[JsonValue, list[JsonObject], _Pointers]] = [(args, [schema], tuple(pointers))]
    while waiting:
        value, schemas, looked_at = waiting.pop()
        if isinstance(value, Mapping):
            about = parts.about(schemas)
            known = _declared(about) | {steps[0] for steps in looked_at if steps}
            if problem := _problem(value, known):
                return problem
            waiting += [(inner, _schemas_of(name, about), _below(name, looked_at)) for name, inner in value.items()]
        elif isinstance(value, list | tuple):
            about = [one for part in parts.about(schemas) for one in _schemas_of_items(part)]
            waiting += [(inner, about, _below(str(place), looked_at)) for place, inner in enumerate(value)]
    return None


def names_at(steps: Sequence[str], schema: JsonObject) -> set[str]:
    """The names that the schema declares in the object that the steps lead to. Empty where it does not say."""
    parts, schemas = _Parts(schema), [schema]
    for step in steps:
        about = parts.about(schemas)
        items = [one for part in about for one in _schemas_of_items(part)] if step.isdecimal() else []
        schemas = [*_schemas_of(step, about), *items]
    return _declared(parts.about(schemas))


def _declared(about: Iterable[JsonObject]) -> set[str]:
    return {name for one in about for name in _object(one.get("properties"))}


def _problem(given: JsonObject, known: set[str]) -> str | None:
    if not known:
        return None
    meant = {squeezed(name): name for name in sorted(known)}
    for name in given:
        if name not in known:
            if other := meant.get(squeezed(name)):
                return f"{json.dumps(name)} could be taken for {json.dumps(other)}"
            meant[squeezed(name)] = name
    return None


def _below(step: str, pointers: _Pointers) -> _Pointers:
    return [steps[1:] for steps in pointers if steps[:1] == (step,)]


class _Parts:
    """All schemas that apply to a value, also through others. Cached: the elements of a list share them."""

    def __init__(self, root: JsonObject) -> None:
        self._document = Document(root)
        self._found: dict[tuple[int, ...], list[JsonObject]] = {}

    def about(self, schemas: Sequence[JsonObject]) -> list[JsonObject]:
        key = tuple(map(id, schemas))
        if key not in self._found:
            self._found[key] = list(self._expanded(schemas))
        return self._found[key]

    def _expanded(self, schemas: Sequence[JsonObject]) -> Iterator[JsonObject]:
        waiting: list[JsonValue] = list(schemas)
        seen: set[int] = set()
        while waiting:
            schema = waiting.pop()
            if not isinstance(schema, Mapping) or id(schema) in seen:
                continue
            seen.add(id(schema))
            yield schema
            waiting += [self._document.find(schema[word]) for word in REFERENCES if word in schema]
            waiting += [schema.get(word) for word in _SINGLE]
            for word in _LISTED:
                listed = schema.get(word)
                waiting += listed if isinstance(listed, list) else []
            for word in _NAMED:
                waiting += _object(schema.get(word)).values()


def _schemas_of(name: str, about: Iterable[JsonObject]) -> list[JsonObject]:
    """Patterns of names are not tried: what they say counts for every name."""
    found: list[JsonValue] = []
    for schema in about:
        declared = _object(schema.get("properties"))
        found += [declared.get(name)] if name in declared else [schema.get("additionalProperties")]
        found += [schema.get("unevaluatedProperties"), *_object(schema.get("patternProperties")).values()]
    return [one for one in found if isinstance(one, Mapping)]


def _schemas_of_items(schema: JsonObject) -> list[JsonObject]:
    found: list[JsonValue] = []
    for word in ("items", "prefixItems", "additionalItems", "unevaluatedItems", "contains"):
        part = schema.get(word)
        found += part if isinstance(part, list) else [part]
    return [one for one in found if isinstance(one, Mapping)]


def _object(value: JsonValue) -> JsonObject:
    return value if isinstance(value, Mapping) else {}
