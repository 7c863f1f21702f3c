"""Arguments that a person types as JSON."""

import argparse

import pytest

from openai_responses_mcp.desk.terminal.typed_values import json_arguments


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": Infinity}', '{"a": 1e400}', "[" * 100_000, "{", "[1]", ""]
)
def test_json_that_can_be_read_in_two_ways_or_in_none_is_wrong_usage(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        json_arguments(text)


def test_an_object_is_read() -> None:
    assert json_arguments('{"a": [1, 2.5, "x"]}') == {"a": [1, 2.5, "x"]}
