"""What every `Patterns` must do."""

import pytest

from openai_responses_mcp.adapters.policy_file import LinearPatterns
from openai_responses_mcp.gate.schema.patterns import Patterns
from tests.agents.fake_policy import FakePatterns


@pytest.fixture(params=[FakePatterns, LinearPatterns], ids=["fake", "linear"])
def patterns(request: pytest.FixtureRequest) -> Patterns:
    made: Patterns = request.param()
    return made


@pytest.mark.parametrize(
    ("pattern", "text", "is_match"),
    [
        ("a+", "aaa", True),
        ("a+", "aab", False),
        ("a+", "aaa\n", False),
        ("a|b", "ab", False),
        ("a|b", "b", True),
        ("(?i)get", "GET", True),
        (r"[\w.]+@example\.com", "me@example.com.evil", False),
        (".*", "日本", True),
    ],
)
def test_a_pattern_matches_the_whole_text(patterns: Patterns, pattern: str, text: str, is_match: bool) -> None:
    assert patterns.compile(pattern)(text) is is_match


@pytest.mark.parametrize("pattern", ["(", "[", "a)|(?:b", "*", "a{2,1}"])
def test_an_invalid_pattern_is_refused(patterns: Patterns, pattern: str) -> None:
    with pytest.raises(ValueError, match=r"^is not a pattern that can be used: \w"):
        patterns.compile(pattern)
