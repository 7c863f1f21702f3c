"""What is not the same in two JSON values."""

import pytest

from openai_responses_mcp.agents.schemas.differences import differences


@pytest.mark.parametrize(
    ("before", "after", "lines"),
    [
        ({"a": 1}, {"a": 1}, []),
        ({"a": 1, "b": 2}, {"b": 2, "a": 1}, []),
        ({"a": {"x": [1, 2]}}, {"a": {"x": [1, 3]}}, ["a.x: [1, 2] is now [1, 3]"]),
        ({"a": 1}, {"b": 1}, ["a: 1 is gone", "b: 1 is new"]),
        ({"a": 1}, {"a": True}, ["a: 1 is now true"]),
        ({"金額": "五"}, {"金額": "三"}, ['金額: "五" is now "三"']),
        ({"a": {}}, {"a": None}, ["a: {} is now null"]),
        ([1], [2], [": [1] is now [2]"]),
    ],
)
def test_each_place_that_differs_has_a_line(before: object, after: object, lines: list[str]) -> None:
    assert differences(before, after).splitlines() == lines
