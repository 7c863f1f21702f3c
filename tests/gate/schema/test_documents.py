"""Which schemas can be used, and what is said about those that cannot."""

from typing import Any

import pytest

from openai_responses_mcp.gate.schema.documents import FORMS, LONGEST_PLACE, MOST_PARTS, problem_in

BAD: list[tuple[Any, str]] = [
    ([], "A schema is a JSON object"),
    ({"anyOf": [{}] * MOST_PARTS}, f"The schema has more than {MOST_PARTS} parts; make it smaller"),
    ({"properties": 7}, "properties is not an object with names"),
    ({"properties": {"a": 7}}, "properties.a is not a schema, which is an object, true or false"),
    ({"properties": {"a": {"type": "text"}}}, "properties.a.type is not one of array, boolean"),
    ({"type": []}, "type is not one of"),
    ({"type": ["string"] * 8}, "type is not one of"),
    ({"anyOf": []}, "anyOf is not a list of schemas"),
    ({"anyOf": [{}, 7]}, "anyOf.1 is not a schema"),
    ({"items": 7}, "items is not a schema"),
    ({"items": [7]}, "items.0 is not a schema"),
    ({"not": []}, "not is not a schema"),
    ({"enum": 7}, "enum is not a list"),
    ({"required": True}, "required is not a list of names"),
    ({"required": [7]}, "required is not a list of names"),
    ({"minLength": -1}, "minLength is not a whole number"),
    ({"maxItems": 1.5}, "maxItems is not a whole number"),
    ({"maxItems": float("inf")}, "maxItems is not a whole number"),
    ({"minimum": "1"}, "minimum is not a number"),
    ({"minimum": True}, "minimum is not a number"),
    ({"exclusiveMaximum": None}, "exclusiveMaximum is not a number"),
    ({"multipleOf": 0}, "multipleOf is not a number above 0"),
    ({"uniqueItems": 1}, "uniqueItems is neither true nor false"),
    ({"dependentRequired": 7}, "dependentRequired is not an object with names"),
    ({"dependencies": {"a": 7}}, "dependencies.a is not a schema"),
    ({"pattern": 7}, "pattern is not a text"),
    ({"patternProperties": 7}, "patternProperties is not an object with names"),
    ({"$ref": 7}, "$ref is not a text"),
    ({"$ref": "https://example.com/other"}, "$ref leads to something that the schema does not contain"),
    ({"$ref": "other.json"}, "$ref leads to something that the schema does not contain"),
    ({"$ref": "#/$defs/a"}, "$ref leads to something that the schema does not contain"),
    ({"$ref": "#/allOf/7", "allOf": [{}]}, "$ref leads to something that the schema does not contain"),
    ({"$ref": "#/title", "title": "a text"}, "$ref leads to something that the schema does not contain"),
    (
        {"$ref": "#mine", "properties": {"a": {"id": "mine"}}},
        "$ref leads to something that the schema does not contain",
    ),
    ({"$ref": "#nowhere"}, "$ref leads to something that the schema does not contain"),
]


@pytest.mark.parametrize(("schema", "problem"), BAD, ids=[problem[:50] for _, problem in BAD])
def test_a_schema_that_cannot_be_used_is_told_with_its_place(schema: Any, problem: str) -> None:
    assert (problem_in(schema) or "").startswith(problem)


def test_every_form_has_a_case() -> None:
    said = {said for _, said in FORMS.values()}
    assert [one for one in said if not any(one[:12] in problem for _, problem in BAD)] == []


@pytest.mark.parametrize(
    "schema",
    [
        {},
        {"type": "object", "title": 7, "format": 7, "default": [], "x-mine": {"type": 7}},
        {"properties": {"id": {"type": "string"}, "$ref": {"type": "string"}, "type": {"const": "x"}}},
        {"properties": {"a": {"$id": "#/properties/a", "id": "mine"}}},
        {"exclusiveMinimum": True, "minimum": 1.5},
        {"items": [{}, True], "dependencies": {"a": ["b"], "c": {}}},
        {"const": {"$ref": "https://example.com/", "type": 7}, "enum": [{"$ref": 7}]},
    ],
)
def test_whatever_is_understood_or_means_nothing_can_be_used(schema: dict[str, Any]) -> None:
    assert problem_in(schema) is None


def test_a_place_is_told_shortly_however_deep_it_is() -> None:
    schema: dict[str, Any] = {"type": 7}
    for _ in range(2_000):
        schema = {"properties": {"a": schema}}
    problem = problem_in(schema)
    assert problem is not None
    assert len(problem) < 2 * LONGEST_PLACE
