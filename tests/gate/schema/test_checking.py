"""Which values fit a schema, compared with another validator, and within a budget for hostile schemas."""

import asyncio
import json
from typing import Any

import jsonschema  # type: ignore[import-untyped]
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from openai_responses_mcp.adapters.policy_file import LinearPatterns
from openai_responses_mcp.gate.schema.checking import TOO_MANY_STEPS, SchemaChecker, SchemaFit
from openai_responses_mcp.gate.schema.documents import problem_in
from openai_responses_mcp.gate.schema.keywords import Steps

CHECKER = SchemaChecker(LinearPatterns())
OLD = "http://json-schema.org/draft-07/schema#"
NEW = "https://json-schema.org/draft/2020-12/schema"


def answer(value: Any, schema: Any) -> str:
    return CHECKER.check_here(value, schema).answer


# ---------------------------------------------------------------------------------------------------------------------
# A schema, values that fit it, values that do not. What the property below makes up too is not repeated here.

CASES: list[tuple[dict[str, Any], list[Any], list[Any]]] = [
    ({"type": "integer"}, [1, 1.0, -3], [1.5, True, "1", None, float("nan"), float("inf")]),
    ({"type": "number"}, [1, 0.5], [False, "1", float("nan"), float("inf")]),
    ({"enum": [1, "a", [True], {"b": None}]}, [1, 1.0, "a", [True], {"b": None}], [True, "b", [1], {"b": 0}, {}]),
    ({"const": {"a": [1, 2]}}, [{"a": [1, 2]}, {"a": [1.0, 2]}], [{"a": [2, 1]}, {}]),
    ({"minimum": 1, "maximum": 3}, [1, 3, "x"], [0, 3.5]),
    ({"minimum": 1, "exclusiveMinimum": True, "maximum": 3, "exclusiveMaximum": True}, [2], [1, 3]),
    ({"multipleOf": 0.1}, [0.3, 1, "x", 1e300], [0.35]),
    ({"multipleOf": 2}, [4, 10**400], [5]),
    ({"minLength": 1, "maxLength": 2}, ["a", "雨雨", 7], ["", "abc"]),
    ({"minItems": 1, "maxItems": 2}, [[1], {}], [[], [1, 2, 3]]),
    ({"minProperties": 1, "maxProperties": 2}, [{"a": 1}, []], [{}, {"a": 1, "b": 2, "c": 3}]),
    ({"items": [{"type": "string"}], "additionalItems": False}, [["a"], []], [["a", 1], [1]]),
    ({"contains": {"type": "string"}, "minContains": 2, "maxContains": 3}, [["a", "b"]], [["a"], ["a"] * 4]),
    ({"uniqueItems": True}, [[1, True, "1", [1], {"a": 1}], "x"], [[1, 1.0], [{"a": 1, "b": 2}, {"b": 2, "a": 1}]]),
    ({"dependencies": {"a": ["b"], "c": {"minProperties": 2}}}, [{}, {"a": 1, "b": 1}], [{"a": 1}, {"c": 1}]),
    ({"$ref": "#/$defs/a~1b%25/allOf/0", "$defs": {"a/b%": {"allOf": [{"type": "string"}]}}}, ["x"], [1]),
    ({"if": {"type": "string"}, "then": {"minLength": 2}, "else": {"minimum": 2}}, ["xx", 3], ["x", 1]),
    ({"$ref": "#name", "$defs": {"x": {"$anchor": "name", "type": "string"}}}, ["x"], [1]),
    ({"$ref": "#name", "definitions": {"x": {"$id": "#name", "type": "string"}}}, ["x"], [1]),
    ({"$id": "https://example.com/s", "$ref": "https://example.com/s#/$defs/a", "$defs": {"a": {"const": 1}}}, [1], [2]),
    ({"properties": {"next": {"$ref": "#"}}, "required": ["v"]}, [{"v": 1, "next": {"v": 2}}], [{"v": 1, "next": {}}]),
    ({"$schema": OLD, "$ref": "#/definitions/a", "minimum": 5, "definitions": {"a": {"type": "integer"}}}, [1], ["x"]),
    ({"$schema": NEW, "$ref": "#/$defs/a", "minimum": 5, "$defs": {"a": {"type": "integer"}}}, [5], [1]),
    (
        {"anyOf": [{"required": ["a"], "properties": {"a": {}}}, {"properties": {"b": {}}}], "unevaluatedProperties": False},
        [{"a": 1, "b": 1}, {"b": 1}],
        [{"a": 1, "c": 1}],
    ),
    ({"prefixItems": [{}], "contains": {"const": 7}, "unevaluatedItems": False}, [[1, 7], [7, 7]], [[7, 1]]),
    ({"pattern": "^a+$"}, ["aa", 7], ["a\n", "b"]),
    ({"patternProperties": {"^a": {"type": "string"}}, "additionalProperties": False}, [{"ab": ""}], [{"ab": 1}, {"b": ""}]),
    ({"allOf": [{"patternProperties": {"^a": {}}}], "unevaluatedProperties": False}, [{"ab": 1}], [{"b": 1}]),
    ({"$schema": OLD, "unevaluatedProperties": False, "dependentRequired": {"a": ["b"]}}, [{"a": 1}], []),
    ({"$schema": NEW, "items": {"type": "string"}, "additionalItems": False}, [["a"]], [[1]]),
    ({"$schema": "https://json-schema.org/draft/2019-09/schema", "contains": {"const": 7}, "unevaluatedItems": False}, [[]][:0], [[7]]),
    ({"$ref": "#/x-mine/a", "x-mine": {"a": {"type": "string"}}}, ["x"], [1]),
    ({"$ref": "#/$defs/a", "$defs": {"a": {"$id": "urn:a", "type": "string"}}}, ["x"], [1]),
]  # fmt: skip


def test_values_fit_their_schema_or_do_not() -> None:
    for schema, fitting, others in CASES:
        assert problem_in(schema) is None
        assert [CHECKER.check_here(value, schema) for value in fitting] == [SchemaFit("fits")] * len(fitting)
        assert [value for value in others if answer(value, schema) != "does_not_fit"] == []


def test_a_problem_is_said_in_one_short_sentence() -> None:
    cases: list[tuple[dict[str, Any], Any, str]] = [
        ({"properties": {"a": {"items": {"type": ["string", "null"]}}}}, {"a": ["x", 1]}, "a.1: must be string or null"),
        ({"required": ["text"]}, {}, 'it: lacks "text"'),
        ({"additionalProperties": False}, {"extra": 1}, 'it: may not have "extra"'),
        ({"enum": ["a", None]}, "b", 'it: must be one of "a", null'),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, 1, "it: fits none of the 2 forms of anyOf; the first: must be string"),
        ({"const": "x" * 900}, 1, f'it: must be "{"x" * 59}…'),
        ({"additionalProperties": {"const": 1}}, {"k" * 900: 2}, f"{'k' * 60}…: must be 1"),
    ]  # fmt: skip
    for schema, value, problem in cases:
        assert CHECKER.check_here(value, schema).why == problem


# ---------------------------------------------------------------------------------------------------------------------
# What cannot be said: a schema, values of which it cannot be said, values that fit all the same, values that do not

OUT: dict[str, Any] = {"$ref": "https://example.com/other"}

DOUBTS: list[tuple[dict[str, Any], list[Any], list[Any], list[Any]]] = [
    ({"type": "string", **OUT}, ["x"], [], []),
    ({"allOf": [OUT, {"type": "string"}]}, ["x"], [], [1]),
    ({"anyOf": [OUT, {"type": "string"}]}, [1], ["x"], []),
    ({"oneOf": [OUT, {"type": "string"}, {"minLength": 2}]}, ["x"], [], ["xx"]),
    ({"if": OUT, "then": {"type": "string"}, "else": {"minLength": 2}}, ["x"], ["xx"], []),
    ({"if": OUT, "then": {"type": "string"}, "else": {"minimum": 2}}, [], [], [1]),
    ({"contains": {"anyOf": [{"const": 1}, {"allOf": [{"type": "string"}, OUT]}]}, "maxContains": 1}, [[1, "x"]], [[1, 2]], [[1, 1]]),
    ({"properties": {"a": OUT}, "required": ["a"]}, [{"a": 1}], [], [{}]),
    ({"pattern": "(?=a)"}, ["a"], [7], []),
    ({"pattern": "a"}, ["\ud800"], ["a"], ["b"]),
    ({"patternProperties": {"(?=a)": {"type": "string"}}, "additionalProperties": False}, [{"a": "x"}, {"a": 1}], [{}], []),
    ({"anyOf": [OUT, True], "unevaluatedProperties": {"type": "string"}}, [{"a": 1}], [{"a": "x"}], []),
    ({"allOf": [{"if": OUT, "then": {"properties": {"a": {}}}}], "unevaluatedProperties": False}, [{"a": 1}, {"b": 1}], [{}], []),
    ({"prefixItems": [{}], "contains": OUT, "minContains": 0, "unevaluatedItems": False}, [[1, 2]], [[1]], []),
    ({"$recursiveRef": "#"}, [1], [], []),
    ({"allOf": [{"$id": "urn:a", "$ref": "#/$defs/a"}], "$defs": {"a": {"type": "string"}}}, [1], [], []),
    ({"$schema": OLD, "not": {"$id": "urn:a", "allOf": [{"$ref": "#/definitions/a"}]}, "definitions": {"a": {"const": 1}}}, [1, 2], [], []),
    ({"$ref": "#/$defs/a/$defs/b", "$defs": {"a": {"$id": "urn:a", "$defs": {"b": {}}}}}, [1], [], []),
    ({"$schema": "https://example.com/own", "type": "string"}, [1], [], [float("inf")]),
    ({"$schema": NEW, "dependencies": {"a": ["b"]}}, [{"a": 1}], [{}], []),
    ({"$ref": "#/$defs/a", "minimum": 5, "$defs": {"a": {"type": "integer"}}}, [1], [5], ["x"]),
    ({"minLength": "3"}, ["x"], [], []),
    ({"properties": {"a": 7}}, [{"a": 1}], [{}], []),
]  # fmt: skip


def test_a_value_that_the_checker_cannot_judge_is_reported_as_such() -> None:
    fit = CHECKER.check_here(1, OUT)
    assert (fit.answer, fit.why, fit.problem) == ("cannot_say", "a reference leads out of the schema", None)
    assert SchemaChecker().check_here("a", {"pattern": "a"}).answer == "cannot_say"
    for schema, unsaid, fitting, others in DOUBTS:
        assert [answer(value, schema) for value in unsaid] == ["cannot_say"] * len(unsaid)
        assert [answer(value, schema) for value in fitting] == ["fits"] * len(fitting)
        assert [answer(value, schema) for value in others] == ["does_not_fit"] * len(others)


@pytest.mark.parametrize("number", ["-1e400", "NaN"])
@pytest.mark.parametrize("schema", [{}, OUT, {"not": {"maximum": 1}}])
def test_infinities_fit_nothing(number: str, schema: dict[str, Any]) -> None:
    assert answer(json.loads(f'{{"a": [{number}]}}'), schema) == "does_not_fit"


# ---------------------------------------------------------------------------------------------------------------------
# A second opinion

# Another engine can try this, and ours cannot.
UNREADABLE = "(?=a)"

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, "", "a", "b", "ab"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2),
    max_leaves=6,
)


def json_schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    several, named = st.lists(inner, min_size=1, max_size=3), st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    one_word = [
        st.fixed_dictionaries({word: inner})
        for word in ("not", "additionalProperties", "propertyNames", "contains", "items", "unevaluatedProperties", "unevaluatedItems")
    ]  # fmt: skip
    lists = [st.fixed_dictionaries({word: several}) for word in ("allOf", "anyOf", "oneOf", "prefixItems")]
    objects = [st.fixed_dictionaries({word: named}) for word in ("properties", "dependentSchemas")]
    branch = st.fixed_dictionaries({"if": inner, "then": inner, "else": inner})
    return st.one_of(*one_word, *lists, *objects, branch).flatmap(
        lambda one: st.one_of(*one_word, *objects).map(lambda other: {**one, **other})
    )


plain_schemas = st.one_of(
    st.booleans(),
    st.sampled_from(["string", "integer", "number", "object", "array", "boolean", "null"]).map(lambda t: {"type": t}),
    st.lists(json_values, min_size=1, max_size=3).map(lambda values: {"enum": values}),
    json_values.map(lambda value: {"const": value}),
    st.sampled_from([{"minimum": 1}, {"maxLength": 1}, {"minItems": 1}, {"maxProperties": 1}, {"uniqueItems": True}]),
    st.sampled_from([{"pattern": "^a"}, {"pattern": UNREADABLE}, {"patternProperties": {"b": {"type": "string"}}}]),
    st.sampled_from([{"patternProperties": {UNREADABLE: {"type": "string"}}, "additionalProperties": False}]),
    st.sampled_from(
        [{"required": ["a"]}, {"dependentRequired": {"a": ["b"]}}, {"$ref": "#/$defs/d"}, {"multipleOf": 2}]
    ),
)
schemas = st.recursive(plain_schemas, json_schemas, max_leaves=8)


@settings(suppress_health_check=list(HealthCheck))
@given(root=schemas, shared=plain_schemas, value=json_values)
def test_another_validator_is_of_the_same_opinion(root: Any, shared: Any, value: Any) -> None:
    assume("$ref" not in (shared if isinstance(shared, dict) else {}))
    schema = {"allOf": [root], "$defs": {"d": shared}}
    assert problem_in(schema) is None
    theirs = jsonschema.Draft202012Validator(schema).is_valid(value)
    ours = answer(value, schema)
    assert ours == ("fits" if theirs else "does_not_fit") or (ours == "cannot_say" and UNREADABLE in json.dumps(schema))


# ---------------------------------------------------------------------------------------------------------------------
# Made to take for ever


def doubling(keyword: str, levels: int, times: int = 3) -> dict[str, Any]:
    """Each level refers to the next one several times; the last one never fits."""
    definitions: dict[str, Any] = {f"l{n}": {keyword: [{"$ref": f"#/$defs/l{n + 1}"}] * times} for n in range(levels)}
    return {"$ref": "#/$defs/l0", "$defs": {**definitions, f"l{levels}": {"type": "string"}}}


WITH_PATTERNS: dict[str, Any] = {
    "properties": {"a": {"pattern": "(a+)+$"}},
    "patternProperties": {"(a+)+$": {"type": "string"}},
    "additionalProperties": False,
    "unevaluatedProperties": False,
}
ENDLESS: dict[str, tuple[dict[str, Any], Any, str | None]] = {
    "anyOf": (doubling("anyOf", 30), {}, TOO_MANY_STEPS),
    "allOf that fits": (doubling("allOf", 30), "x", TOO_MANY_STEPS),
    "looked at": ({**doubling("anyOf", 30), "unevaluatedProperties": False}, "x", TOO_MANY_STEPS),
    "unique objects": ({"uniqueItems": True}, [{"a": n} for n in range(8_000)], None),
    "unique numbers that hash alike": ({"uniqueItems": True}, [n * (2**61 - 1) for n in range(100_000)], None),
    "a long list of choices": ({"items": {"enum": [{"a": n} for n in range(3_000)]}}, [{"a": -1}] * 9_000, "0: must"),
    "many names": ({"items": {"dependentRequired": {"a": ["a"] * 9_000}}}, [{"a": 1}] * 9_000, TOO_MANY_STEPS),
    "the rest": ({"items": {"unevaluatedProperties": {}}}, [dict.fromkeys(map(str, range(1_000)))] * 2_000, TOO_MANY_STEPS),
    "patterns": (WITH_PATTERNS, {"a": "a" * 60_000 + "!"}, "a: must match"),
    "large patterns": ({"pattern": "(?:a?){2000}$"}, "a" * 100_000, TOO_MANY_STEPS),
    "a circle": ({"$ref": "#"}, {}, "it: nested too deeply"),
}  # fmt: skip


@pytest.mark.parametrize("name", ENDLESS)
async def test_a_schema_made_to_take_for_ever_ends_and_the_loop_goes_on(name: str) -> None:
    schema, value, problem = ENDLESS[name]
    checking = asyncio.create_task(CHECKER.check(value, schema))
    await asyncio.sleep(0)
    # What is long goes on elsewhere.
    assert problem != TOO_MANY_STEPS or not checking.done()
    found = await asyncio.wait_for(checking, 30)
    assert found.why.startswith(problem or "")
    assert found.answer == ("fits" if problem is None else "does_not_fit")


def test_nesting_of_values_ends_too() -> None:
    deep: Any = []
    for _ in range(10_000):
        deep = [deep]
    for schema in ({"items": {"$ref": "#"}}, {"uniqueItems": True}, {"enum": [1]}, {"const": 1}):
        assert CHECKER.check_here(deep, schema).why == "it: nested too deeply"


def test_several_values_can_share_one_budget() -> None:
    steps = Steps(100)
    assert CHECKER.check_here([1, 2, 3], {"items": {"type": "integer"}}, steps).answer == "fits"
    assert CHECKER.check_here(list(range(1_000)), {"items": {"type": "integer"}}, steps).why == TOO_MANY_STEPS


async def test_a_value_of_ordinary_size_is_checked_without_waiting() -> None:
    schema = {"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}}
    checking = asyncio.create_task(CHECKER.check({"names": ["a"] * 200}, schema))
    await asyncio.sleep(0)
    assert checking.done()
