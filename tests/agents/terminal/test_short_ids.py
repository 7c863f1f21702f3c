"""Whoever decides may type the beginning of an id, and never decides on another request than the one that is meant."""

import pytest

from openai_responses_mcp.agents.terminal.short_ids import completed

WAITING = ["apr_7f3a0000", "apr_7f3b1111", "apr_c0ffee22"]


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("7f3a", "apr_7f3a0000"),
        ("apr_7f3a", "apr_7f3a0000"),
        ("apr_c0ffee22", "apr_c0ffee22"),
        ("c0ffee", "apr_c0ffee22"),
    ],
)
def test_the_beginning_of_one_means_it(said: str, meant: str) -> None:
    assert completed(said, WAITING) == meant


@pytest.mark.parametrize("said", ["", "apr_", "7f3", "c0f", "7f3c", "0ffee", "APR_7F3A", "apr_7f3a0000 "])
def test_what_begins_none_several_or_is_too_short_stays_as_it_is(said: str) -> None:
    assert completed(said, WAITING) == said


def test_of_two_that_begin_the_same_neither_is_meant() -> None:
    assert completed("7f3a", [*WAITING, "apr_7f3a9999"]) == "7f3a"
