"""Patterns of ECMA-262 on the engine of linear time, and those that it cannot read."""

import pytest

from openai_responses_mcp.adapters.policy_file import LinearPatterns
from openai_responses_mcp.gate.schema.patterns import SchemaPatterns, UnreadablePattern, translate

PATTERNS = SchemaPatterns(LinearPatterns())


def test_a_pattern_matches_these_texts_and_no_others() -> None:
    cases: list[tuple[str, list[str], list[str]]] = [
        ("^a+$", ["a", "aa"], ["b", "a\n", "\na"]),
        ("^a|b$", ["ax", "xb"], ["xax"]),
        (r"^\d{3}-\w*$", ["123-a_9"], ["１２３-a", "123-é"]),
        (r"^\S\s\D\W$", ["a\u00a0b!"], ["a b1", "a bb"]),
        ("^.$", ["a", "😀", "\v"], ["\r", "\u2028", ""]),
        (r"\bfoo\b", ["a foo b", "éfooé"], ["xfoo"]),
        ("^[a-z-9]+$", ["a-9"], ["0"]),
        ("^[--/]$", ["."], ["a"]),
        (r"^[\w-]+$", ["a-b"], ["+"]),
        ("^[[&&~-]+$", ["[&~-"], ["a"]),
        (r"^[\u0041-\x43]$", ["B"], ["D"]),
        (r"^\p{L}\P{Lu}$", ["éa"], ["1a", "éA"]),
        (r"^(?:\u{1F600}|\ud83d\ude00)$", ["😀"], ["x"]),
        (r"^(?<year>\d{4})(-(?:a|b))?$", ["2020-a", "2020"], ["2020-c"]),
        (r"^\cA\0\t\.\/\-$", ["\x01\0\t./-"], [""]),
        ("^a{2}b{1,}c{0,2}?$", ["aab", "aabbcc"], ["ab", "aabccc"]),
    ]
    for pattern, matching, others in cases:
        read = PATTERNS.read(pattern)
        assert read is not None
        assert [text for text in matching if not read.is_in(text)] == []
        assert [text for text in others if read.is_in(text)] == []


def test_a_pattern_that_the_engine_does_not_support_is_not_read() -> None:
    cases: list[str] = [
        *("(?=a)", r"(a)\1", r"(?<a>b)\k<a>", "(?i:a)", r"\B", r"\pL", r"\p{Nothing}", "a++", "*a", "(|*)", "a{", "a}"),
        *("]", "[]", "[^]", "[z-a]", r"[\w-x]", r"[a-\d]", "[a", "(", "a)", "\\", "a" * 2_001, "(?:a{99}){99}"),
    ]
    for pattern in cases:
        assert PATTERNS.read(pattern) is None


def test_the_size_of_a_pattern_counts_what_repetitions_repeat() -> None:
    sizes = [translate(pattern)[1] for pattern in ("a", "a*", "a{50}", "(?:ab{10}){10}")]
    assert sizes == sorted(sizes)
    assert sizes[2] > 50
    assert sizes[3] > 100
    with pytest.raises(UnreadablePattern):
        translate("(?:a{100}){100}")


def test_not_all_patterns_are_kept() -> None:
    patterns = SchemaPatterns(LinearPatterns())
    for number in range(1_001):
        assert patterns.read(f"(?=a{number})") is None
    assert patterns.read("a") is not None
