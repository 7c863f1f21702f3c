"""Which schemas can be used, and the messages for those that cannot."""

from typing import Any

from openai_responses_mcp.gate.schema.documents import LONGEST_PLACE, MOST_PARTS, problem_in

NO_SCHEMA = "is not a schema, which is an object, true or false"
ELSEWHERE = "$ref leads to something that the schema does not contain; write it inside"

BAD: list[tuple[Any, str]] = [
    ([], "A schema is a JSON object"),
    ({"anyOf": [{}] * MOST_PARTS}, f"The schema has more than {MOST_PARTS} parts; make it smaller"),
    ({"anyOf": [{}, 7]}, f"anyOf.1 {NO_SCHEMA}"),
    ({"items": [7]}, f"items.0 {NO_SCHEMA}"),
    ({"dependencies": {"a": 7}}, f"dependencies.a {NO_SCHEMA}"),
    *(({keyword: []}, f"{keyword} {NO_SCHEMA}") for keyword in ("not", "if", "contains", "additionalProperties")),
    ({"properties": {"a": {"type": "text"}}}, "properties.a.type is not one of array, boolean"),
    *(({"type": names}, "type is not one of") for names in ([], ["string"] * 8)),
    ({"anyOf": []}, "anyOf is not a list of schemas"),
    ({"enum": 7}, "enum is not a list"),
    *(({"required": names}, "required is not a list of names") for names in (True, [7])),
    *(({"maxItems": count}, "maxItems is not a whole number from 0 up") for count in (-1, 1.5, "1")),
    *(({"minimum": limit}, "minimum is not a number") for limit in ("1", True)),
    ({"multipleOf": 0}, "multipleOf is not a number above 0"),
    ({"uniqueItems": 1}, "uniqueItems is neither true nor false"),
    *(({word: 7}, f"{word} is not an object with names") for word in ("properties", "patternProperties", "dependentRequired")),
    *(({word: 7}, f"{word} is not a text") for word in ("pattern", "$ref")),
    *(({"$ref": to, "allOf": [{}], "title": "a text"}, ELSEWHERE)
      for to in ("https://example.com/other", "other.json", "#/$defs/a", "#/allOf/7", "#/title", "#nowhere")),
    ({"$ref": "#mine", "properties": {"a": {"id": "mine"}}}, ELSEWHERE),
]  # fmt: skip


def test_a_schema_that_cannot_be_used_is_reported_with_its_place() -> None:
    for schema, problem in BAD:
        assert (problem_in(schema) or "").startswith(problem)


def test_a_schema_of_known_or_meaningless_keywords_is_accepted() -> None:
    cases: list[dict[str, Any]] = [
        {},
        {"type": "object", "title": 7, "format": 7, "default": [], "x-mine": {"type": 7}},
        {"properties": {"id": {"type": "string"}, "$ref": {"type": "string"}, "type": {"const": "x"}}},
        {"properties": {"a": {"$id": "#/properties/a", "id": "mine"}}},
        {"items": [{}, True], "dependencies": {"a": ["b"], "c": {}}},
        {"const": {"$ref": "https://example.com/", "type": 7}, "enum": [{"$ref": 7}]},
    ]
    for schema in cases:
        assert problem_in(schema) is None


def test_a_deep_place_is_shortened() -> None:
    schema: dict[str, Any] = {"type": 7}
    for _ in range(2_000):
        schema = {"properties": {"a": schema}}
    problem = problem_in(schema)
    assert problem is not None
    assert len(problem) < 2 * LONGEST_PLACE
