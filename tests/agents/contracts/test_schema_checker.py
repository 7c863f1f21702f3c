"""What every checker of schemas must do, asked of the fake and of the JSON Schema library."""

from typing import Any

import pytest

from openai_responses_mcp.agents.adapters.skills.json_schemas import JsonSchemas
from openai_responses_mcp.agents.errors import AgentsError
from openai_responses_mcp.agents.skills.ports import SchemaChecker
from tests.agents.fake_skills import FakeSchemas

SCHEMA = {
    "type": "object",
    "properties": {"text": {"type": "string"}, "count": {"type": "integer"}},
    "required": ["text"],
}


@pytest.fixture(params=[pytest.param(FakeSchemas, id="fake"), pytest.param(JsonSchemas, id="jsonschema")])
def schemas(request: pytest.FixtureRequest) -> SchemaChecker:
    made: SchemaChecker = request.param()
    return made


def test_a_schema_that_can_be_used_passes(schemas: SchemaChecker) -> None:
    schemas.check(SCHEMA)


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "nothing"},
        {"type": "object", "properties": {"a": {"type": "nothing"}}},
        {"type": "object", "properties": {"a": {"$ref": "https://example.com/schema.json"}}},
    ],
)
def test_a_schema_that_cannot_be_used_is_named(schemas: SchemaChecker, schema: dict[str, Any]) -> None:
    with pytest.raises(AgentsError, match="AGENTS-E-SKILL-SCHEMA"):
        schemas.check(schema)


@pytest.mark.parametrize("value", [{"text": "a"}, {"text": "a", "count": 5}, {"text": "a", "more": []}])
def test_a_value_that_fits_has_no_problem(schemas: SchemaChecker, value: dict[str, Any]) -> None:
    assert schemas.problem_with(value, SCHEMA) is None


@pytest.mark.parametrize("value", [{}, {"text": 5}, {"text": "a", "count": "five"}, []])
def test_a_value_that_does_not_fit_has_one_in_words(schemas: SchemaChecker, value: Any) -> None:
    assert schemas.problem_with(value, SCHEMA)
