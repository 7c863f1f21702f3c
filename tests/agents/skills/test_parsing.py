"""Markdown taken apart, and names made from names."""

import pytest

from openai_responses_mcp.agents.skills.parsing import (
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


@pytest.mark.parametrize(
    ("text", "titles"),
    [
        ("# A #", ["A"]),
        ("# A#", ["A#"]),
        ("   ## A", ["A"]),
        ("    # A", []),
        ("#A", []),
        ("####### A", []),
        ("# A\n```\n# B\n```\n~~~~\n# C\n~~~\n# D\n~~~~\n# E", ["A", "E"]),
        ("# A\n```json\n# B\n", ["A"]),
        ("```a``` is code\n# A", ["A"]),
    ],
)
def test_headings_are_found_as_in_markdown_and_not_in_fenced_blocks(text: str, titles: list[str]) -> None:
    assert [section.title for section in sections_of(text)] == titles


@pytest.mark.parametrize(
    ("heading", "is_known"),
    [
        ("2.1) Input schema", True),
        ("**Parameters**", True),
        ("入力（Input）", True),
        ("３．入力 スキーマ", True),
        ("Input validation", False),
        ("入力の確認", False),
        ("Input " + "(x) " * 50, False),
    ],
)
def test_an_input_heading_is_found_in_many_spellings_and_no_other(heading: str, is_known: bool) -> None:
    sections = sections_of(f"# Other\n## {heading}\nhere")
    assert (section_named(sections, INPUT_HEADINGS) is not None) == is_known


def test_fenced_blocks_carry_their_language_and_the_line_that_introduces_them() -> None:
    (section,) = sections_of("# A\nFirst:\n```JSON title=x\n{}\n```\n\n````\n```\n````")
    assert section.fences == [Fence("json", "{}", "First"), Fence("", "```", "First")]


def test_the_first_paragraph_is_the_first_prose() -> None:
    assert first_paragraph("# A\n```\ncode\n```\n\none\ntwo\n\nthree") == "one two"
    assert first_paragraph("# A\n") == ""


def test_points_of_a_list_are_taken_without_their_marks() -> None:
    assert list_items("intro\n- one\n* two\n3. three\n・四\n") == ["one", "two", "three", "四"]
    assert list_items("one\n### not me\ntwo\n") == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "skill_id"), [("Writer Skill", "writer-skill"), ("ＰＤＦ__変換 (beta)", "pdf-変換-beta"), ("---", "")]
)
def test_a_name_always_gives_the_same_id(name: str, skill_id: str) -> None:
    assert skill_id_for(name) == skill_id
    assert skill_id_for(skill_id) == skill_id


@pytest.mark.parametrize("skill_id", ["pdf-変換", "list", "x" * 200])
def test_where_the_slug_is_not_enough_a_hash_is_added(skill_id: str) -> None:
    name = tool_name_for(skill_id)
    assert name.isascii()
    assert name.replace("_", "").isalnum()
    assert len(name) <= LONGEST_TOOL_NAME
    assert len(name.rpartition("_")[2]) == 8


def test_different_ids_never_share_a_tool_name() -> None:
    ids = ["議事録", "翻訳", "pdf-変換", "pdf-結合", "pdf", "x" * 100, "x" * 101, "list", "describe"]
    assert len({tool_name_for(one) for one in ids}) == len(ids)
