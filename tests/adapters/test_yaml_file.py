from typing import Any

import pytest

from openai_responses_mcp.adapters.yaml_file import MAX_DEPTH, MAX_NODES, YamlProblem, read_yaml


def test_yaml_becomes_plain_data() -> None:
    cases: list[tuple[str, Any]] = [
        ("", None),
        ("\ufeffa: 1", {"a": 1}),
        ("%YAML 1.2\n---\na: 1", {"a": 1}),
        ("a: {b: [1, two, 3.5]}", {"a": {"b": [1, "two", 3.5]}}),
        ("1: a\ntrue: b", {"1": "a", "true": "b"}),
        ("a: !!map {}\nb: !!seq []", {"a": {}, "b": []}),
    ]
    for text, data in cases:
        assert read_yaml(text).data == data


def test_scalars_follow_the_core_schema_of_yaml_1_2() -> None:
    cases: list[tuple[str, Any]] = [
        ("", None),
        ("FALSE", False),
        ("yes", "yes"),
        ("007", 7),
        ("0o17", 15),
        ("1_000", "1_000"),
        ("-.inf", float("-inf")),
        ("9" * 5000, float("inf")),
        ("2026-01-31", "2026-01-31"),
        ("!!str 12", "12"),
        ("!!int '12'", 12),
    ]
    for text, value in cases:
        found = read_yaml(f"a: {text}").data["a"]
        assert found == value
        assert type(found) is type(value)


def test_every_key_and_item_has_its_line() -> None:
    document = read_yaml("a:\n  b: 1\n  c:\n  - x\n  - y\nd: {e: 1,\n  f: 2}\n")
    assert document.lines == {
        ("a",): 1,
        ("a", "b"): 2,
        ("a", "c"): 3,
        ("a", "c", 0): 4,
        ("a", "c", 1): 5,
        ("d",): 6,
        ("d", "e"): 6,
        ("d", "f"): 7,
    }


def test_a_missing_key_has_the_line_of_its_nearest_parent() -> None:
    cases: list[tuple[tuple[str | int, ...], int]] = [
        (("c",), 2),
        (("c", "nothing", 3), 2),
        (("nothing",), 1),
    ]
    for path, line in cases:
        assert read_yaml("a: &x {b: 1}\nc: {b: 2}").line_of(path) == line


def test_a_problem_has_a_line_and_a_message() -> None:
    cases: list[tuple[str, int, str]] = [
        ("a: 1\nb: [", 2, "not valid YAML: expected the node content"),
        ("a: 1\nb: \x01", 2, "a character that YAML does not allow"),
        ("%YAML 1.7\n---\na: 1", 1, "not valid YAML: version"),
        ('a: 1\nb: "\\U00110000"', 2, "not valid YAML: chr()"),
        ('a: "\\ud800"', 1, "half a character"),
        ("a: 1\nb: 2\na: 3", 3, "a is there twice, first on line 1"),
        ("a:\n  b: 1\n  'b': 2", 3, "a.b is there twice, first on line 2"),
        ("? [a]\n: 1", 1, "a key that is not plain text"),
        ("a: 1\n---\nb: 2", 2, "a second document"),
        ("a: &x 1\nb: *x", 2, "the alias *x is not allowed: write its value out"),
        ("a: !!python/object/apply:os.system [ls]", 1, "the tag !!python/object/apply:os.system does not"),
        ("!!python/name:os.system a: 1", 1, "the tag !!python/name:os.system does not"),
        ("a: !!int many", 1, "the tag !!int does not belong here"),
    ]
    for text, line, words in cases:
        with pytest.raises(YamlProblem) as caught:
            read_yaml(text)
        assert caught.value.line == line
        assert words in caught.value.text
        assert str(caught.value) == f"line {line}: {caught.value.text}"


def test_a_file_may_have_the_most_values_and_not_one_more() -> None:
    allowed = "[" + "x, " * (MAX_NODES - 1) + "]"
    assert len(read_yaml(allowed).data) == MAX_NODES - 1
    with pytest.raises(YamlProblem, match="more than 10000 values"):
        read_yaml(allowed.replace("[", "[x, "))


def test_a_file_may_nest_to_the_greatest_depth_and_no_deeper() -> None:
    assert read_yaml("[" * MAX_DEPTH + "]" * MAX_DEPTH).data != []
    with pytest.raises(YamlProblem, match="nested deeper than 32 levels"):
        read_yaml("[" * 100_000)
