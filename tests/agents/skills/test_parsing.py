"""Markdown taken apart, and names made from names."""

import pytest

from openai_responses_mcp.agents.skills.parsing import (
    CONSTRAINT_HEADINGS,
    EXAMPLE_HEADINGS,
    INPUT_HEADINGS,
    LONGEST_TOOL_NAME,
    Fence,
    first_paragraph,
    list_items,
    section_named,
    sections_of,
    skill_id_for,
    split_front_matter,
    tool_name_for,
)


def test_front_matter_is_what_stands_between_the_first_two_lines_of_dashes() -> None:
    cases: list[tuple[str, tuple[str | None, str]]] = [
        ("---\nname: a\n---\nBody\n", ("name: a", "Body")),
        ("\ufeff---  \nname: a\n---\t\n\nBody", ("name: a", "Body")),
        ("---\nname: a\nBody", ("name: a\nBody", "")),
        ("# Title\n\n---\n", (None, "# Title\n\n---\n")),
        ("", (None, "")),
    ]
    for text, expected in cases:
        assert split_front_matter(text) == expected


def test_a_section_reaches_to_the_next_heading_of_its_rank_and_contains_the_lower_ones() -> None:
    sections = sections_of("# A\none\n## B ##\ntwo\n# C\nthree")
    assert [(section.rank, section.title, section.text) for section in sections] == [
        (1, "A", "one\n## B ##\ntwo"),
        (2, "B", "two"),
        (1, "C", "three"),
    ]


def test_headings_are_found_as_in_markdown() -> None:
    cases: list[tuple[str, list[str]]] = [("# A #", ["A"]), ("# A#", ["A#"]), ("   ## A", ["A"]), ("    # A", []), ("#A", []), ("####### A", []), ("#", []), ("# #", ["#"])]  # fmt: skip
    for line, titles in cases:
        assert [section.title for section in sections_of(line)] == titles


def test_headings_in_fenced_blocks_are_no_headings() -> None:
    assert [s.title for s in sections_of("# A\n```\n# B\n```\n~~~~\n# C\n~~~\n# D\n~~~~\n# E")] == ["A", "E"]


def test_a_fence_that_never_closes_swallows_the_rest() -> None:
    sections = sections_of("# A\n```json\n# B\n")
    assert [section.title for section in sections] == ["A"]
    assert sections[0].fences == []


def test_code_in_a_line_does_not_open_a_fence() -> None:
    assert [s.title for s in sections_of("```a``` is code\n# A")] == ["A"]


def test_an_input_heading_is_found_in_many_spellings() -> None:
    cases: list[str] = ["INPUTS:", "2.1) Input schema", "**Parameters**", "入力（Input）", "３．入力 スキーマ"]
    for heading in cases:
        assert section_named(sections_of(f"# Other\n## {heading}\nhere"), INPUT_HEADINGS) is not None


def test_a_heading_that_only_contains_the_word_is_another_one() -> None:
    cases: list[str] = [
        "Input validation",
        "Your input",
        "入力の確認",
        "Examples of nothing",
        "Step 1. Input",
        "Input " + "(x) " * 50,
    ]
    for heading in cases:
        sections = sections_of(f"## {heading}\nhere")
        assert section_named(sections, INPUT_HEADINGS | EXAMPLE_HEADINGS | CONSTRAINT_HEADINGS) is None


def test_fenced_blocks_carry_their_language_and_the_line_that_introduces_them() -> None:
    (section,) = sections_of("# A\nFirst:\n```JSON title=x\n{}\n```\n\n````\n```\n````")
    assert section.fences == [Fence("json", "{}", "First"), Fence("", "```", "First")]


def test_the_first_paragraph_is_the_first_prose() -> None:
    assert first_paragraph("# A\n```\ncode\n```\n\none\ntwo\n\nthree") == "one two"
    assert first_paragraph("# A\n") == ""


def test_points_of_a_list_are_taken_without_their_marks() -> None:
    assert list_items("intro\n- one\n* two\n3. three\n・四\n") == ["one", "two", "three", "四"]
    assert list_items("one\n### not me\ntwo\n") == ["one", "two"]


def test_a_name_always_gives_the_same_id() -> None:
    cases: list[tuple[str, str]] = [
        ("Writer Skill", "writer-skill"),
        ("pdf-tools", "pdf-tools"),
        ("PDF__変換 (beta)", "pdf-変換-beta"),
        ("ＰＤＦ", "pdf"),
        ("議事録", "議事録"),
        ("---", ""),
    ]
    for name, skill_id in cases:
        assert skill_id_for(name) == skill_id
        assert skill_id_for(skill_id) == skill_id


@pytest.mark.parametrize("skill_id", ["議事録", "pdf-変換", "list", "describe", "x" * 200, "a-" * 40])
def test_where_the_slug_is_not_enough_a_hash_is_added(skill_id: str) -> None:
    name = tool_name_for(skill_id)
    assert name.isascii()
    assert name.replace("_", "").isalnum()
    assert len(name) <= LONGEST_TOOL_NAME
    assert len(name.rpartition("_")[2]) == 8


def test_different_ids_never_share_a_tool_name() -> None:
    ids = ["議事録", "翻訳", "pdf-変換", "pdf-結合", "pdf", "x" * 100, "x" * 101, "list", "describe"]
    assert len({tool_name_for(one) for one in ids}) == len(ids)
