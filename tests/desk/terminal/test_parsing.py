"""Dates, ports and arguments that a person types."""

import argparse
from datetime import UTC, datetime

import pytest

from openai_responses_mcp.desk.terminal.parsing import duration, json_arguments, moment, port_number


@pytest.mark.parametrize("text", ['{"a": 1, "a": 2}', '{"a": NaN}', '{"a": 1e400}', "[" * 100_000, "[1]", ""])
def test_json_that_can_be_read_in_two_ways_or_in_none_is_wrong_usage(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError):
        json_arguments(text)


@pytest.mark.parametrize("text", ["-1", "65536", "http", "８０"])
def test_a_port_that_does_not_exist_is_wrong_usage(text: str) -> None:
    with pytest.raises(argparse.ArgumentTypeError, match="a port is a number from 0 to 65535"):
        port_number(text)


def test_a_date_is_local_and_anything_else_is_wrong_usage() -> None:
    assert moment("2026-11-01") == datetime(2026, 11, 1).astimezone()
    assert moment("2026-11-01T09:00:00+09:00") == datetime(2026, 11, 1, tzinfo=UTC)
    with pytest.raises(argparse.ArgumentTypeError, match="is not a date such as 2026-11-01"):
        moment("yesterday")


def test_durations_are_from_a_second_to_ten_years() -> None:
    assert [duration(text) for text in ("30s", "90m", "8h", "1h30m", "2w")] == [30, 5400, 28_800, 5400, 1_209_600]
    for wrong in ("8", "0m", "八時間", "８h", "99999w"):
        with pytest.raises(argparse.ArgumentTypeError, match="such as 30m, 8h or 7d"):
            duration(wrong)
