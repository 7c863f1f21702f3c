"""Arguments that were changed without their secrets get these back where they were left as they were shown."""

import pytest

from openai_responses_mcp.gate.secrets.withholding import with_secrets

KEY = "‹OPENAI_API_KEY›"


@pytest.mark.parametrize(
    ("changed", "shown", "original", "restored"),
    [
        ({"key": KEY, "n": 2}, {"key": KEY, "n": 1}, {"key": "sk-1", "n": 1}, {"key": "sk-1", "n": 2}),
        ({"a": {"key": KEY}}, {"a": {"key": KEY}}, {"a": {"key": "sk-1"}}, {"a": {"key": "sk-1"}}),
        ({"a": [KEY, "x", "y"]}, {"a": [KEY]}, {"a": ["sk-1"]}, {"a": ["sk-1", "x", "y"]}),
        ({"a": [KEY]}, {"a": [KEY, "x"]}, {"a": ["sk-1", "x"]}, {"a": ["sk-1"]}),
        ({"a": ["x", KEY]}, {"a": [KEY]}, {"a": ["sk-1"]}, {"a": ["x", KEY]}),
        ({"b": KEY}, {"a": KEY}, {"a": "sk-1"}, {"b": KEY}),
        ({"a": "same"}, {"a": "same"}, {"a": "same"}, {"a": "same"}),
        ({"a": KEY}, {"a": KEY}, {"a": 5}, {"a": KEY}),
        ({"a": {"x": 1}}, {"a": "text"}, {"a": "text"}, {"a": {"x": 1}}),
        ({"a": [1]}, {"a": {"x": 1}}, {"a": {"x": 1}}, {"a": [1]}),
        ({"a": ["x"]}, {"a": "xyz"}, {"a": "abc"}, {"a": ["x"]}),
        ({"a": ["x"]}, {"a": ["x"]}, {"a": "abc"}, {"a": ["x"]}),
        ({}, {"a": KEY}, {"a": "sk-1"}, {}),
    ],
)
def test_what_was_left_as_it_was_shown_is_what_it_was(
    changed: dict[str, object], shown: dict[str, object], original: dict[str, object], restored: dict[str, object]
) -> None:
    assert with_secrets(changed, shown, original) == restored
