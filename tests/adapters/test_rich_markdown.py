import pytest

from openai_responses_mcp.adapters.rich_markdown import rendered
from tests.e2e.screens import Screen


def shown(text: str, width: int = 40) -> tuple[list[str], list[str]]:
    """The lines on a terminal, and the addresses behind them."""
    screen = Screen(width)
    screen.feed(rendered(text, width).replace("\n", "\r\n"))
    return screen.lines[:-1], [link for link in screen.links if link]


def test_markdown_is_rendered_without_losing_a_word() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("**bold**, *slanted*, `code`, ~~gone~~", ["bold, slanted, code, gone"]),
        ("# 見出し\n本文", ["見出し", "", "本文"]),
        ("\u3000段落\n\u3000次\u3000", ["\u3000段落", "\u3000次\u3000"]),
        ("Use <b> and <!-- this -->", ["Use <b> and <!-- this -->"]),
        ("![a picture](https://e.com/p)", ["!a picture (https://e.com/p)"]),
        ("- a\n- b\n  1. c", [" • a", " • b", "    1 c"]),
        ("```\n a\n\n  b\n```", ["  a", "", "   b"]),
        ("&amp; &#x202e;abc &#27;[2J", ["&amp; &#x202e;abc &#27;[2J"]),
        ("a\u202eb `\x1b[2J`", ["a\\u202eb \\x1b[2J"]),
    ]
    for text, lines in cases:
        assert shown(text)[0] == lines


def test_every_item_of_deeply_nested_lists_is_shown() -> None:
    text = "\n".join(f"{'  ' * depth}- item {depth}" for depth in range(15))
    assert [line.strip(" •") for line in shown(text, 80)[0]] == [f"item {depth}" for depth in range(15)]


def test_nothing_is_wider_than_the_terminal() -> None:
    lines, _ = shown("東京" * 30 + "\n\nhttps://example.com/" + "x" * 60, 40)
    assert "".join(lines) == "東京" * 30 + "https://example.com/" + "x" * 60


def test_text_too_wide_for_a_table_column_is_wrapped() -> None:
    lines, _ = shown(f"| a | b |\n|---|---|\n| {'x' * 60} | {'y' * 60} |", 40)
    assert "".join(lines).count("x") == 60
    assert "".join(lines).count("y") == 60


def test_a_link_is_clickable_and_shows_its_address() -> None:
    assert shown("[名前](https://e.com/a_b) here") == (["名前 (https://e.com/a_b) here"], ["https://e.com/a_b"])
    assert shown("<https://e.com>") == (["https://e.com"], ["https://e.com"])


@pytest.mark.parametrize(
    "address", ["https://e.com/&#x202e;x", "https://e.com/\x1b]0;owned\x07", "javascript:alert(1)"]
)
def test_an_address_cannot_control_the_terminal(address: str) -> None:
    lines, links = shown(f"[x]({address})")
    assert all(letter.isprintable() for letter in "".join(lines + links))
    assert all(link.startswith("https://e.com/") for link in links)


def test_an_address_is_spelled_out_only_at_its_last_link() -> None:
    lines, links = shown("Yes ([e](https://e.com)).\n\nSources:\n- [E](https://e.com) (2026-11-16)", 60)
    assert lines == ["Yes (e).", "", "Sources:", "", " • E (https://e.com) (2026-11-16)"]
    assert links == ["https://e.com"] * 2


def test_an_empty_text_is_an_empty_line() -> None:
    assert rendered("", 40) == "\n"


def test_japanese_is_wrapped_between_letters_and_english_between_words() -> None:
    cases: list[tuple[str, list[str]]] = [
        ("項目: これは長い行なので折り返す。", ["項目: これは長い行な", "ので折り返す。"]),
        ("句点は行の頭に来ない。次の文", ["句点は行の頭に来な", "い。次の文"]),
        ("括弧は行の末に残す「こと」", ["括弧は行の末に残す", "「こと」"]),
        ("**太字**の後も、折り返して続く", ["太字の後も、折り返し", "て続く"]),
    ]
    for text, lines in cases:
        assert shown(text, 20)[0] == lines


def test_wrapping_loses_and_adds_no_letters() -> None:
    text = "全角（かっこ）と「かぎ括弧」、句読点。English words、数字123、記号！？・ー々を混ぜた長い文章です。" * 3
    for width in range(8, 60):
        lines, _ = shown(text, width)
        assert "".join(line.strip() for line in lines).replace(" ", "") == text.replace(" ", "")
