"""Patterns whose time is bounded."""

import pytest

from openai_responses_mcp.adapters.linear_patterns import LinearPatterns


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("(a+)+", "a" * 50_000 + "!"), ("(a|a)*b", "a" * 50_000), (r"(.*)*x", "y" * 50_000), ("(a?){50}a{50}", "a" * 49)],
)
@pytest.mark.timeout(5)
def test_a_pattern_that_keeps_others_busy_for_ages_is_done_at_once(pattern: str, text: str) -> None:
    assert not LinearPatterns().compile(pattern)(text)


@pytest.mark.parametrize(
    ("pattern", "words"),
    [
        (r"(a)\1", "backreferences are not supported"),
        ("(?=a)", "look-around, including look-ahead and look-behind, is not supported"),
        (r"\w{1000}{1000}", "Compiled regex exceeds size limit"),
        ("(?x)a # a comment", "unclosed group"),
    ],
)
def test_what_cannot_be_bounded_is_refused_with_the_reason(pattern: str, words: str) -> None:
    with pytest.raises(ValueError, match="can be used") as caught:
        LinearPatterns().compile(pattern)
    assert words in str(caught.value)


def test_half_a_character_is_a_character() -> None:
    assert LinearPatterns().compile("a.b")("a\ud800b")
