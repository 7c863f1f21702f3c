import math
from collections.abc import Iterator
from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from openai_responses_mcp.config.settings import Range, Settings, from_text, kind_at, wanted

Key = tuple[str | int, ...]

TIMEOUT: Key = ("request", "timeout_ms")
RETRIES: Key = ("request", "max_retries")
RECENCY: Key = ("search", "defaults", "recency_days")
EFFORT: Key = ("model_profiles", "answer", "reasoning_effort")
MODEL: Key = ("model_profiles", "answer_quick", "model")
BASE_URL: Key = ("openai", "base_url")


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ((), "a mapping of keys"),
        (TIMEOUT, "a whole number of at least 1"),
        (RETRIES, "a whole number between 0 and 10"),
        (("request", "store"), "true or false"),
        (("request", "extra"), "a mapping of keys without NaN and infinity"),
        (RECENCY, "a number of at least 0"),
        (EFFORT, "one of none, minimal, low, medium, high, xhigh, max"),
        (("search", "defaults", "domains"), "a list"),
        (("server", "tools"), "a list with at least one name and none twice"),
        (BASE_URL, "text that is an http:// or https:// address with a host"),
        (MODEL, "text that is not blank"),
    ],
)
def test_every_kind_of_key_says_what_it_takes(path: Key, words: str) -> None:
    assert wanted(kind_at(path)) == words


@pytest.mark.parametrize("path", [("nothing",), ("request", "nothing"), ("request", "store", "deeper"), ("request", 0)])
def test_a_path_that_leads_nowhere_is_a_lookup_error(path: Key) -> None:
    with pytest.raises(LookupError):
        kind_at(path)


@pytest.mark.parametrize(
    ("path", "text", "value"),
    [
        (TIMEOUT, "1", 1),
        (RETRIES, "0", 0),
        (RETRIES, "+10", 10),
        (RECENCY, "0", 0),
        (RECENCY, "7", 7),
        (RECENCY, "0.5", 0.5),
        (EFFORT, "xhigh", "xhigh"),
        (MODEL, "gpt-5.2", "gpt-5.2"),
        (BASE_URL, "http://localhost:8080/v1", "http://localhost:8080/v1"),
    ],
)
def test_text_becomes_the_value_it_spells(path: Key, text: str, value: Any) -> None:
    assert from_text(kind_at(path), text) == value
    assert type(from_text(kind_at(path), text)) is type(value)


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (TIMEOUT, "0"),
        (TIMEOUT, "1.5"),
        (TIMEOUT, "1_000"),
        (TIMEOUT, "9" * 5000),
        (RETRIES, "-1"),
        (RETRIES, "11"),
        (RECENCY, "-0.5"),
        (RECENCY, "nan"),
        (EFFORT, "huge"),
        (EFFORT, "LOW"),
        (MODEL, " "),
        (MODEL, "gpt\x1b[0m"),
        (BASE_URL, "api.openai.com/v1"),
    ],
)
def test_text_that_spells_no_allowed_value_is_refused(path: Key, text: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - which text was wrong is the caller's to say
        from_text(kind_at(path), text)


@pytest.mark.parametrize(
    ("address", "is_one"),
    [
        ("https://api.openai.com/v1", True),
        ("http://[::1]:8080/v1?x=1", True),
        ("https://user:word@gateway.example/v1", True),
        ("https://", False),
        ("https://user@", False),
        ("https://host:port/", False),
        ("ftp://host", False),
        ("https://a b", False),
    ],
)
def test_a_base_url_needs_a_scheme_and_a_host(address: str, is_one: bool) -> None:
    errors = _errors({"openai": {"base_url": address}})
    assert errors == ([] if is_one else [BASE_URL])


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_an_open_range_holds_finite_numbers_only(value: float) -> None:
    assert not Range(ge=0).allows(value)


@pytest.mark.parametrize(
    ("document", "errors"),
    [
        ({}, []),
        ({"request": {"max_retries": 10, "omit": ["store"]}}, []),
        ({"request": {"max_retries": 11}}, [RETRIES]),
        ({"request": {"max_retries": True}}, [RETRIES]),
        ({"request": {"max_retries": "3"}}, [RETRIES]),
        ({"request": {"store": 1}}, [("request", "store")]),
        ({"request": {"omit": ["model"]}}, [("request", "omit", 0)]),
        ({"request": {"extra": {"service_tier": "flex", "metadata": {"a": ["b", 1, 0.5, True, None]}}}}, []),
        ({"server": {"tools": []}}, [("server", "tools")]),
        ({"server": {"tools": ["answer", "answer"]}}, [("server", "tools")]),
        ({"nothing": {}}, [("nothing",)]),
    ],
)
def test_pydantic_keeps_the_same_rules(document: dict[str, Any], errors: list[Key]) -> None:
    assert _errors(document) == errors


def _errors(document: dict[str, Any]) -> list[Key]:
    return list(_error_paths(document))


def _error_paths(document: dict[str, Any]) -> Iterator[Key]:
    adapter = TypeAdapter(Settings)
    try:
        adapter.validate_json(TypeAdapter(Any).dump_json(document), strict=True)
    except ValidationError as exc:
        yield from (error["loc"] for error in exc.errors())
