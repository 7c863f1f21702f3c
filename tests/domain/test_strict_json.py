import json

import pytest

from openai_responses_mcp.domain.strict_json import Members, parsed, why_unreadable


@pytest.mark.parametrize("value", [None, True, 0, -1.5, 1e300, "a\u2028b", [], {"a": [{"b": {}}], "B": "a"}], ids=str)
def test_what_everybody_reads_alike_comes_out_as_it_is(value: object) -> None:
    assert parsed(json.dumps(value)) == value
    assert parsed(json.dumps(value, ensure_ascii=False)) == value


def test_an_object_with_a_key_twice_comes_out_as_it_was_written() -> None:
    found = parsed('{"id": 1, "params": {"a": 1, "a": 2}}')
    assert isinstance(found, Members)
    assert found == [("id", 1), ("params", [("a", 1), ("a", 2)])]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "Expecting value: line 1 column 1 (char 0)"),
        ("\ufeff{}", "it begins with a byte order mark (BOM)"),
        ("NaN", "NaN is not JSON"),
        ('{"a": 1, "a": -Infinity}', "-Infinity is not JSON"),
        ("1e999", "a number is too large"),
        ('{"a": 1, "a": -1e999}', "a number is too large"),
        ("9" * 5000, "a number has too many digits"),
        ("[" * 100_000, "nesting too deep"),
    ],
    ids=lambda text: text[:20],
)
def test_what_is_no_json_is_refused_in_plain_words(text: str, reason: str) -> None:
    with pytest.raises((ValueError, RecursionError)) as refused:
        parsed(text)
    assert why_unreadable(refused.value) == reason


def test_bytes_that_are_no_text_are_told_by_their_place() -> None:
    with pytest.raises(UnicodeDecodeError) as refused:
        b'{"a": "\xff"}'.decode()
    assert why_unreadable(refused.value) == "not UTF-8 at byte 7"
