import json

import pytest

from openai_responses_mcp.domain.jsonrpc import KeyTwice, UnreadableJson, read_json


def test_what_everybody_reads_alike_comes_out_as_it_is() -> None:
    cases: list[object] = [None, True, 0, -1.5, 1e300, "a\u2028b", [], {"a": [{"b": {}}], "B": "a"}]
    for value in cases:
        assert read_json(json.dumps(value)) == value
        assert read_json(json.dumps(value, ensure_ascii=False)) == value


def test_an_object_with_a_key_twice_is_refused_and_shown_as_it_was_written() -> None:
    with pytest.raises(KeyTwice, match=r"^a key appears twice$") as refused:
        read_json('{"id": 1, "params": {"a": 1, "a": 2}}')
    assert refused.value.members == [("id", 1), ("params", [("a", 1), ("a", 2)])]


def test_an_object_with_a_key_twice_inside_a_list_has_no_outermost_object() -> None:
    with pytest.raises(KeyTwice) as refused:
        read_json('[{"a": 1, "a": 2}]')
    assert refused.value.members == []


def test_what_is_no_json_is_refused_in_plain_words() -> None:
    cases: list[tuple[str, str]] = [
        ("", "Expecting value: line 1 column 1 (char 0)"),
        ("\ufeff{}", "it begins with a byte order mark (BOM)"),
        ("NaN", "NaN is not JSON"),
        ('{"a": 1, "a": -Infinity}', "-Infinity is not JSON"),
        ("1e999", "a number is too large"),
        ('{"a": 1, "a": -1e999}', "a number is too large"),
        ("9" * 5000, "a number has too many digits"),
        ("[" * 100_000, "nesting too deep"),
    ]
    for text, reason in cases:
        with pytest.raises(UnreadableJson) as refused:
            read_json(text)
        assert str(refused.value) == reason


def test_the_place_of_bytes_that_are_not_utf_8_is_named() -> None:
    with pytest.raises(UnreadableJson, match=r"^not UTF-8 at byte 7$"):
        read_json(b'{"a": "\xff"}')
