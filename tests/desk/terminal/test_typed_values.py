"""Dates and arguments that a person types."""

import argparse
from datetime import UTC, datetime

import pytest

from openai_responses_mcp.desk.terminal.typed_values import json_arguments, moment


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": Infinity}', '{"a": 1e400}', "[" * 100_000, "{", "[1]", ""]
)
def test_json_that_can_be_read_in_two_ways_or_in_none_is_wrong_usage(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        json_arguments(text)


def test_an_object_is_read() -> None:
    assert json_arguments('{"a": [1, 2.5, "x"]}') == {"a": [1, 2.5, "x"]}


def test_a_date_is_local_and_anything_else_is_wrong_usage() -> None:
    assert moment("2026-11-01") == datetime(2026, 11, 1).astimezone()
    assert moment("2026-11-01T09:00:00+09:00") == datetime(2026, 11, 1, tzinfo=UTC)
    with pytest.raises(argparse.ArgumentTypeError, match="is not a date such as 2026-11-01"):
        moment("yesterday")
