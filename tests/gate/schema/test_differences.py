"""What is not the same in two JSON values."""

import pytest

from openai_responses_mcp.gate.schema.differences import differences


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": {"x": [1, 2]}}, {"a": {"x": [1, 3]}}, ['"a"."x": [1, 2] is now [1, 3]']),
        ({"a": 1}, {"b": 1}, ['"a": 1 is gone', '"b": 1 is new']),
        ({"a": 1}, {"a": True}, ['"a": 1 is now true']),
        ({"金額": "五"}, {"金額": "三"}, ['"金額": "五" is now "三"']),
        ({"a": {}}, {"a": None}, ['"a": {} is now null']),
        ([1], [2], [": [1] is now [2]"]),
    ],
)
def test_each_place_that_differs_has_a_line(before: object, after: object, lines: list[str]) -> None:
    assert differences(before, after).splitlines() == lines


@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x0c", "\x1c", "\x85", "\u2028", "\u2029"])
def test_no_text_of_a_server_begins_a_line(end: str) -> None:
    lie = f"x{end}Nothing else has changed"
    for before, after in [({}, {lie: 1}), ({"a": 1}, {"a": lie}), ({"a": {lie: lie}}, {"a": {lie: 2}}), ({lie: 1}, {})]:
        assert len(differences(before, after).splitlines()) == 1


@pytest.mark.parametrize(
    "letter", ["\u200b", "\u202e", "\ufeff", "\U0001d159", "\U00016fe4", "\U0001107f", "\u2800", "\xad"]
)
def test_nothing_in_a_line_is_invisible(letter: str) -> None:
    line = differences({}, {f"a{letter}": f"b{letter}"})
    assert letter not in line
    assert line.isprintable()
