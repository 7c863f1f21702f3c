"""A schema as a document: its draft, where its references lead, and the form of its keywords.

Drafts 4 to 2020-12 are understood, and a schema that names no draft may use the keywords of all of them. A reference is
followed inside the document only; inside a part with its own address (a nested `$id`) it is not.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple
from urllib.parse import unquote

from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, is_number, pointer_steps, value_at

MOST_PARTS = 10_000
LONGEST_PLACE = 200

OUTSIDE = "a reference leads out of the schema"
OWN_ADDRESS = "a part of the schema has an address of its own"

ANY_DRAFT = 0
UNKNOWN_DRAFT = -1
DEFINITIONS = ("$defs", "definitions")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DRAFTS = {
    **{f"json-schema.org/draft-0{number}/schema": number for number in (4, 6, 7)},
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
}
# The first and the last draft that has a keyword; the others ignore it.
_SINCE_AND_UNTIL = {
    **dict.fromkeys(("const", "contains", "propertyNames"), (6, 2020)),
    "if": (7, 2020),
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "maxContains", "minContains"), (2019, 2020)),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), (2019, 2020)),
    **dict.fromkeys(("prefixItems", "$dynamicRef"), (2020, 2020)),
    **dict.fromkeys(("additionalItems", "$recursiveRef"), (4, 2019)),
}


class Document:
    def __init__(self, root: JsonObject, spend: Callable[[int], object] = bool) -> None:
        """`spend` counts the parts that are read to follow references."""
        self._root = root
        self._spend = spend
        named = root.get("$schema")
        is_named = isinstance(named, str) and named != ""
        draft = str(named).partition("://")[2].removesuffix("#")
        self.draft = _DRAFTS.get(draft, UNKNOWN_DRAFT) if is_named else ANY_DRAFT
        self.ignores_beside_ref = 4 <= self.draft <= 7
        self._address = self._id_of(root).partition("#")[0]
        self._anchors: dict[str, JsonObject] = {}
        self._is_embedded: dict[int, bool] = {}

    def knows(self, keyword: str) -> bool:
        since, until = _SINCE_AND_UNTIL.get(keyword, (4, 2020))
        return keyword in FORMS and (self.draft <= ANY_DRAFT or since <= self.draft <= until)

    def find(self, reference: JsonValue, source: JsonObject | None = None) -> JsonObject | bool | str:
        """The schema that the reference points to, or why it cannot be found. `source` contains the reference."""
        if not self._is_embedded:
            self._read(self._root)
        address, _, fragment = str(reference).partition("#")
        if self._is_embedded.get(id(source)):
            return OWN_ADDRESS
        if address not in ("", self._address):
            return OUTSIDE
        place = unquote(fragment)
        if place and not place.startswith("/"):
            return self._anchors.get(place, OUTSIDE)
        found: JsonValue = self._root
        for name in pointer_steps(place):
            if self._is_embedded.get(id(found)):
                return OWN_ADDRESS
            found = value_at([name], found)
        if isinstance(found, Mapping) and id(found) not in self._is_embedded:
            self._read(found)  # It is below a keyword that JSON Schema does not define.
        return found if isinstance(found, Mapping | bool) else OUTSIDE

    def _read(self, start: JsonObject) -> None:
        """Find the anchors, and all parts inside a nested `$id`."""
        waiting: list[tuple[JsonValue, bool]] = [(start, False)]
        while waiting:
            node, is_embedded = waiting.pop()
            self._spend(1)
            if not isinstance(node, Mapping):
                continue
            address, _, anchor = self._id_of(node).partition("#")
            is_embedded |= node is not self._root and (address != "" or isinstance(node.get("$schema"), str))
            self._is_embedded[id(node)] = is_embedded
            if not is_embedded:
                names = (anchor, node.get("$anchor"), node.get("$dynamicAnchor"))
                self._anchors |= {name: node for name in names if isinstance(name, str)}
            waiting += [(inner, is_embedded) for _, inner in _subschemas(node)]

    def _id_of(self, node: JsonObject) -> str:
        own = None if self.ignores_beside_ref and "$ref" in node else node.get("id" if self.draft == 4 else "$id")
        return own if isinstance(own, str) else ""


def problem_in(schema: object) -> str | None:
    """What is wrong with a schema, for the person who wrote it. A schema from elsewhere is not checked."""
    if not isinstance(schema, Mapping):
        return "A schema is a JSON object"
    document = Document(schema)
    waiting: list[tuple[str, JsonValue]] = [("", schema)]
    for _ in range(MOST_PARTS):
        if not waiting:
            return None
        place, node = waiting.pop()
        if isinstance(node, bool):
            continue
        if not isinstance(node, Mapping):
            return f"{place} is not a schema, which is an object, true or false"
        for keyword, value in node.items():
            if keyword in FORMS and not FORMS[keyword].is_kept(value):
                return f"{_below(place, keyword)} {FORMS[keyword].problem}"
            if keyword == "$ref" and isinstance(document.find(value, node), str):
                return f"{_below(place, keyword)} leads to something that the schema does not contain; write it inside"
        waiting += [(_below(place, name), one) for name, one in _subschemas(node)]
    return f"The schema has more than {MOST_PARTS} parts; make it smaller"


def _below(place: str, name: str) -> str:
    return f"{place}.{name}".removeprefix(".")[-LONGEST_PLACE:]


def _subschemas(schema: JsonObject) -> Iterator[tuple[str, JsonValue]]:
    """Every value where a schema is expected, with its place; it may not be a valid schema."""
    for keyword, value in schema.items():
        form = FORMS.get(keyword)
        if form and form.schemas and form.is_kept(value):
            yield from ((f"{keyword}.{name}".removesuffix("."), one) for name, one in form.schemas(value))


def are_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_whole(value: Any) -> bool:
    return is_number(value) and value == value // 1


def _are_types(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return are_texts(names) and 0 < len(names) <= len(TYPES) and TYPES.keys() >= set(names)


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "array": lambda value: isinstance(value, list),
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_whole,
    "null": lambda value: value is None,
    "number": is_number,
    "object": lambda value: isinstance(value, Mapping),
    "string": lambda value: isinstance(value, str),
}


class Form(NamedTuple):
    """What the value of a keyword has to be, and the schemas in it."""

    is_kept: Callable[[Any], bool]
    problem: str
    schemas: Callable[[Any], Iterable[tuple[object, JsonValue]]] | None = None


_ANYTHING = Form(lambda value: True, "")
_COUNT = Form(lambda value: _is_whole(value) and value >= 0, "is not a whole number from 0 up")
_NAMES = Form(TYPES["object"], "is not an object with names")
_NAMED_SCHEMAS = _NAMES._replace(schemas=lambda value: value.items())
_NUMBER = Form(is_number, "is not a number")
# The oldest draft says true or false here.
_NUMBER_OR_FLAG = _NUMBER._replace(is_kept=lambda value: is_number(value) or isinstance(value, bool))
_SCHEMA = _ANYTHING._replace(schemas=lambda value: [("", value)])
_SCHEMAS = Form(lambda value: isinstance(value, list) and value != [], "is not a list of schemas", enumerate)
_TEXT = Form(TYPES["string"], "is not a text")

FORMS: Mapping[str, Form] = {
    **dict.fromkeys((*DEFINITIONS, "dependentSchemas", "patternProperties", "properties"), _NAMED_SCHEMAS),
    **dict.fromkeys(("$dynamicRef", "$recursiveRef", "const"), _ANYTHING),
    **dict.fromkeys(("$ref", "pattern"), _TEXT),
    **dict.fromkeys(("additionalItems", "additionalProperties", "contains", "else", "if", "not"), _SCHEMA),
    **dict.fromkeys(("propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"), _SCHEMA),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), _SCHEMAS),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum"), _NUMBER_OR_FLAG),
    **dict.fromkeys(("maxContains", "minContains", "maxItems", "minItems"), _COUNT),
    **dict.fromkeys(("maxLength", "minLength", "maxProperties", "minProperties"), _COUNT),
    **dict.fromkeys(("maximum", "minimum"), _NUMBER),
    "dependencies": _NAMES._replace(
        schemas=lambda value: [named for named in value.items() if not isinstance(named[1], list)]
    ),
    "dependentRequired": _NAMES,
    "enum": Form(TYPES["array"], "is not a list"),
    "items": _SCHEMA._replace(schemas=lambda value: enumerate(value) if isinstance(value, list) else [("", value)]),
    "multipleOf": Form(lambda value: is_number(value) and value > 0, "is not a number above 0"),
    "required": Form(are_texts, "is not a list of names"),
    "type": Form(_are_types, f"is not one of {', '.join(TYPES)}"),
    "uniqueItems": Form(TYPES["boolean"], "is neither true nor false"),
}
