"""A schema as a document: its draft, where its references lead, and the form of its keywords.

Drafts 4 to 2020-12 are understood, and a schema that names no draft may use the keywords of all of them. A reference is
followed inside the document only; inside a part that has an address of its own (a nested `$id`) it is not.
"""

from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import unquote

from openai_responses_mcp.gate.json_values import JsonObject, JsonValue, is_number, pointer_steps

Schema = JsonObject | bool

MOST_PARTS = 10_000
LONGEST_PLACE = 200

OUTSIDE = "a reference leads out of the schema"
OWN_ADDRESS = "a part of the schema has an address of its own"

ANY_DRAFT = 0
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef")
_DRAFTS = {
    **{f"json-schema.org/draft-0{number}/schema": number for number in (4, 6, 7)},
    "json-schema.org/draft/2019-09/schema": 2019,
    "json-schema.org/draft/2020-12/schema": 2020,
}
# The first and the last draft that has a keyword; the others ignore it.
_SINCE = {
    **dict.fromkeys(("const", "contains", "propertyNames"), 6),
    "if": 7,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "maxContains", "minContains"), 2019),
    **dict.fromkeys(("unevaluatedItems", "unevaluatedProperties"), 2019),
    **dict.fromkeys(("prefixItems", "$dynamicRef"), 2020),
}
_UNTIL = {"additionalItems": 2019, "$recursiveRef": 2019}

# Where schemas stand inside a schema.
ONE_SCHEMA = frozenset(
    [
        "additionalItems",
        "additionalProperties",
        "contains",
        "else",
        "if",
        "items",
        "not",
        "propertyNames",
        "then",
        "unevaluatedItems",
        "unevaluatedProperties",
    ]
)
LISTED_SCHEMAS = frozenset(["allOf", "anyOf", "items", "oneOf", "prefixItems"])
NAMED_SCHEMAS = frozenset(
    ["$defs", "definitions", "dependencies", "dependentSchemas", "patternProperties", "properties"]
)


class Document:
    def __init__(self, root: JsonObject) -> None:
        self.root = root
        self.draft = draft_of(root)
        own = None if self.ignores_beside_ref and "$ref" in root else root.get("$id")
        self._address = own.partition("#")[0] if isinstance(own, str) else ""
        self._anchors: dict[str, Schema] = {}
        self._known: set[int] = set()
        self._embedded: set[int] = set()

    @property
    def ignores_beside_ref(self) -> bool:
        return self.draft is not None and 4 <= self.draft <= 7

    def knows(self, keyword: str) -> bool:
        draft = self.draft or ANY_DRAFT
        return draft == ANY_DRAFT or _SINCE.get(keyword, 0) <= draft <= _UNTIL.get(keyword, draft)

    def find(
        self, reference: JsonValue, source: JsonObject | None = None, spend: Callable[[int], object] = bool
    ) -> Schema | str:
        """The schema that the reference points to, or why it cannot be found. `source` contains the reference."""
        if not self._known:
            self._read(self.root, spend)
        address, _, fragment = str(reference).partition("#")
        if id(source) in self._embedded:
            return OWN_ADDRESS
        if address not in ("", self._address):
            return OUTSIDE
        place = unquote(fragment)
        if place and not place.startswith("/"):
            return self._anchors.get(place, OUTSIDE)
        found: JsonValue = self.root
        for name in pointer_steps(place):
            if id(found) in self._embedded:
                return OWN_ADDRESS
            found = _inside(found, name)
        if isinstance(found, Mapping) and id(found) not in self._known:
            self._read(found, spend)  # It is below a keyword that JSON Schema does not define.
        return found if isinstance(found, Mapping | bool) else OUTSIDE

    def _read(self, start: JsonObject, spend: Callable[[int], object]) -> None:
        """Find the anchors, and all parts inside a nested `$id`."""
        waiting: list[tuple[JsonValue, bool]] = [(start, False)]
        while waiting:
            node, is_embedded = waiting.pop()
            spend(1)
            if not isinstance(node, Mapping):
                continue
            self._known.add(id(node))
            own = node.get("id" if self.draft == 4 else "$id")
            is_anchor = isinstance(own, str) and own.startswith("#")
            is_addressed = (isinstance(own, str) and not is_anchor) or isinstance(node.get("$schema"), str)
            is_embedded |= is_addressed and node is not self.root
            if is_embedded:
                self._embedded.add(id(node))
            else:
                names = (str(own)[1:] if is_anchor else None, node.get("$anchor"), node.get("$dynamicAnchor"))
                self._anchors |= {name: node for name in names if isinstance(name, str)}
            waiting += [(inner, is_embedded) for _, inner in subschemas(node)]


def draft_of(root: JsonObject) -> int | None:
    """`ANY_DRAFT` if the schema names none; None if it names one that is not supported."""
    named = root.get("$schema", "")
    if not isinstance(named, str) or not named:
        return ANY_DRAFT
    return _DRAFTS.get(named.partition("://")[2].removesuffix("#"))


def subschemas(schema: JsonObject) -> Iterator[tuple[str, JsonValue]]:
    """Every value where a schema is expected, with its place; it may not be a valid schema."""
    for keyword, value in schema.items():
        if keyword in LISTED_SCHEMAS and isinstance(value, list):
            yield from ((f"{keyword}.{number}", one) for number, one in enumerate(value))
        elif keyword in NAMED_SCHEMAS and isinstance(value, Mapping):
            is_plain = keyword != "dependencies"
            yield from ((f"{keyword}.{name}", one) for name, one in value.items() if is_plain or not is_list(one))
        elif keyword in ONE_SCHEMA:
            yield keyword, value


def _inside(value: JsonValue, name: str) -> JsonValue:
    if isinstance(value, Mapping):
        return value.get(name)
    if not isinstance(value, list) or not (name.isascii() and name.isdigit() and len(name) < 7):
        return None
    return value[int(name)] if int(name) < len(value) else None


# ---------------------------------------------------------------------------------------------------------------------
# The form of keywords


def problem_in(schema: object) -> str | None:
    """What is wrong with a schema, for the person who wrote it. A schema from elsewhere is taken as it is."""
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
            here = f"{place}.{keyword}".removeprefix(".")[-LONGEST_PLACE:]
            is_fine, said = FORMS.get(keyword, _ANYTHING)
            if not is_fine(value):
                return f"{here} {said}"
            if keyword == "$ref" and isinstance(document.find(value, node), str):
                return f"{here} leads to something that the schema does not contain; write it inside"
        waiting += [(f"{place}.{name}".removeprefix(".")[-LONGEST_PLACE:], one) for name, one in subschemas(node)]
    return f"The schema has more than {MOST_PARTS} parts; make it smaller"


def is_list(value: object) -> bool:
    return isinstance(value, list)


def is_text(value: object) -> bool:
    return isinstance(value, str)


def are_texts(value: object) -> bool:
    return isinstance(value, list) and all(map(is_text, value))


def _is_count(value: Any) -> bool:
    return is_number(value) and value >= 0 and value == value // 1


def _are_types(value: Any) -> bool:
    names = [value] if isinstance(value, str) else value
    return are_texts(names) and 0 < len(names) <= len(TYPES) and TYPES.keys() >= set(names)


TYPES: Mapping[str, Callable[[Any], bool]] = {
    "array": is_list,
    "boolean": lambda value: isinstance(value, bool),
    "integer": lambda value: is_number(value) and value == value // 1,
    "null": lambda value: value is None,
    "number": is_number,
    "object": lambda value: isinstance(value, Mapping),
    "string": is_text,
}

_Form = tuple[Callable[[Any], bool], str]
_ANYTHING: _Form = (lambda value: True, "")
_COUNT: _Form = (_is_count, "is not a whole number from 0 up")
_TEXT: _Form = (is_text, "is not a text")
_OBJECT: _Form = (TYPES["object"], "is not an object with names")

FORMS: Mapping[str, _Form] = {
    **dict.fromkeys(("$ref", "pattern"), _TEXT),
    **dict.fromkeys(("maxItems", "maxLength", "maxProperties", "minItems", "minLength", "minProperties"), _COUNT),
    **dict.fromkeys(("maxContains", "minContains"), _COUNT),
    **dict.fromkeys(("maximum", "minimum"), (is_number, "is not a number")),
    # The oldest draft says true or false here.
    **dict.fromkeys(
        ("exclusiveMaximum", "exclusiveMinimum"),
        (lambda value: is_number(value) or isinstance(value, bool), "is not a number"),
    ),
    **dict.fromkeys((*NAMED_SCHEMAS, "dependentRequired"), _OBJECT),
    **dict.fromkeys(
        LISTED_SCHEMAS - {"items"}, (lambda value: is_list(value) and bool(value), "is not a list of schemas")
    ),
    "enum": (is_list, "is not a list"),
    "multipleOf": (lambda value: is_number(value) and value > 0, "is not a number above 0"),
    "required": (are_texts, "is not a list of names"),
    "type": (_are_types, f"is not one of {', '.join(TYPES)}"),
    "uniqueItems": (lambda value: isinstance(value, bool), "is neither true nor false"),
}
