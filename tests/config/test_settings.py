"""What the text of a variable or a flag may spell. The file keeps the same rules: test_file.py."""

from typing import Any

import pytest

from openai_responses_mcp.config.settings import from_text, kind_at

Key = tuple[str | int, ...]

TIMEOUT: Key = ("request", "timeout_ms")
RETRIES: Key = ("request", "max_retries")
RECENCY: Key = ("search", "defaults", "recency_days")
EFFORT: Key = ("model_profiles", "answer", "reasoning_effort")
MODEL: Key = ("model_profiles", "answer_quick", "model")
BASE_URL: Key = ("openai", "base_url")


def test_text_becomes_the_value_it_spells() -> None:
    cases: list[tuple[Key, str, Any]] = [
        (RETRIES, "0", 0),
        (RETRIES, "+10", 10),
        (RECENCY, "0.5", 0.5),
        (EFFORT, "xhigh", "xhigh"),
        (BASE_URL, "http://[::1]:8080/v1?x=1", "http://[::1]:8080/v1?x=1"),
    ]
    for path, text, value in cases:
        assert from_text(kind_at(path), text) == value
        assert type(from_text(kind_at(path), text)) is type(value)


def test_text_that_spells_no_allowed_value_is_refused() -> None:
    cases: list[tuple[Key, str]] = [
        (TIMEOUT, "0"),
        (TIMEOUT, "1.5"),
        (TIMEOUT, "1_000"),
        (TIMEOUT, "9" * 5000),
        (RETRIES, "-1"),
        (RETRIES, "11"),
        (RECENCY, "nan"),
        (EFFORT, "LOW"),
        (MODEL, " "),
        (MODEL, "gpt\x1b[0m"),
        *((BASE_URL, text) for text in ("api.openai.com/v1", "https://user@", "https://host:port/", "ftp://host")),
        (BASE_URL, "https://a b"),
    ]
    for path, text in cases:
        with pytest.raises(ValueError):  # noqa: PT011 - which text was wrong is the caller's to say
            from_text(kind_at(path), text)
