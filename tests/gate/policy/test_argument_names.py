"""Names of arguments that a careless server would take for others are found at every depth."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from openai_responses_mcp.gate.policy.argument_names import names_at, unclear_name

PRICE = {"properties": {"price": {"type": "number"}}}
WAYS: dict[str, dict[str, Any]] = {
    "properties": {"properties": {"item": PRICE}},
    "allOf and oneOf": {"allOf": [{"properties": {"item": {"oneOf": [{"type": "object"}, PRICE]}}}]},
    "anyOf": {"anyOf": [{"properties": {"item": {"anyOf": [PRICE, {"type": "null"}]}}}]},
    "$ref": {"$ref": "#/$defs/all", "$defs": {"all": {"properties": {"item": {"$ref": "#/$defs/p"}}}, "p": PRICE}},
    "then": {"if": {}, "then": {"properties": {"item": {"dependentSchemas": {"x": PRICE}}}}},
    "if": {"if": {"properties": {"item": {"else": PRICE}}}},
    "not": {"not": {"properties": {"item": {"dependencies": {"x": PRICE}}}}},
}


@pytest.mark.parametrize("schema", WAYS.values(), ids=WAYS)
def test_a_name_in_another_case_is_found_however_the_schema_says_it(schema: dict[str, Any]) -> None:
    assert unclear_name({"item": {"price": 5, "note": "x"}}, schema) is None
    assert unclear_name({"item": {"price": 5, "Price": 5000}}, schema) == '"Price" could be taken for "price"'
    assert unclear_name({"item": {"PRICE": 5000}}, schema) is not None
    assert unclear_name({"Item": {"price": 5}}, schema) is not None
    assert unclear_name({"item": {"price": 5, "note": "x", "Note": "y"}}, schema) is not None


def test_names_inside_lists_and_maps_are_found() -> None:
    lists: list[dict[str, Any]] = [{"prefixItems": [{}, PRICE]}]
    lists += [{word: PRICE} for word in ("items", "additionalItems", "unevaluatedItems", "contains")]
    for part in lists:
        schema = {"properties": {"list": part}}
        assert unclear_name({"list": [{"price": 1}, {"Price": 1}]}, schema) is not None
        assert (names_at(("list", "1"), schema), names_at(("list", "x"), schema)) == ({"price"}, set())
    maps: list[dict[str, Any]] = [{"patternProperties": {"^A": PRICE}}]
    maps += [{word: PRICE} for word in ("additionalProperties", "unevaluatedProperties")]
    for part in maps:
        schema = {"properties": {"map": part}}
        assert unclear_name({"map": {"A": {"Price": 1}}}, schema) is not None
        assert unclear_name({"map": {"A": {"price": 1}, "a": {"price": 2}}}, schema) is None


def test_names_that_rules_look_at_are_known() -> None:
    assert unclear_name({"Path": "x"}, {}) is None
    assert unclear_name({"Path": "x"}, {}, [("path",)]) == '"Path" could be taken for "path"'
    assert unclear_name({"a": [{"B": 1}]}, {}, [("a", "0", "b")]) is not None
    assert unclear_name({"a": [{}, {"B": 1}]}, {}, [("a", "0", "b")]) is None
    assert unclear_name({"A": 1, "path": 2}, {}, [("a", "b"), ("path",)]) is not None


def test_free_maps_are_left_alone() -> None:
    schema = {
        "properties": {"headers": {"type": "object"}, "env": {"additionalProperties": {"type": "string"}}, "any": {}}
    }
    free = {"Accept": "x", "accept": "y"}
    assert unclear_name({"headers": free, "env": free, "any": [free]}, schema) is None
    assert unclear_name(free, {"type": "object"}) is None


def test_letters_that_look_alike_are_the_same() -> None:
    for name in ("ｐａｔｈ", "pa\u200bth", "path\0x", "ﬁle"):
        assert unclear_name({name: 1}, {"properties": {"path": {}, "file": {}}}) is not None


def test_a_schema_that_contains_itself_ends() -> None:
    tree: dict[str, Any] = {"$ref": "#/$defs/t", "$defs": {"t": {"properties": {"next": {"$ref": "#/$defs/t"}}}}}
    assert unclear_name({"next": {"next": {"next": {}}}}, tree) is None
    assert unclear_name({"next": {"next": {"Next": {}}}}, tree) is not None
    assert unclear_name({"a": 1}, {"$ref": "#"}) is None


JSON = st.recursive(
    st.none() | st.booleans() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=3), JSON, max_size=3),
    st.dictionaries(st.sampled_from(["properties", "allOf", "items", "$ref", "not"]), JSON, max_size=3),
)
def test_no_schema_and_no_arguments_break_it(args: Any, schema: Any) -> None:
    unclear_name(args, schema)
