"""An answer on its way to a terminal: titles for its sources, and the footer. The rest: tests/e2e/test_terminal.py."""

from dataclasses import replace

import pytest

from openai_responses_mcp.commands.showing import (
    MOST_RENDERED,
    Showing,
    footer,
    for_a_terminal,
)
from openai_responses_mcp.commands.words import speaking
from openai_responses_mcp.domain.models import Answer, Citation, Usage
from openai_responses_mcp.server.tools import TOOLS
from tests.commands.test_live import FakeTerminal

ANSWER = Answer("Because.", True, (), "gpt-5.2", "resp_1", Usage(700, 23, 723), 1)


@pytest.mark.parametrize(
    ("answer", "is_remembered", "output"),
    [
        (ANSWER, True, "1 search · 723 tokens · continue with --continue"),
        (ANSWER, False, "1 search · 723 tokens · continue with --continue resp_1"),
        (replace(ANSWER, search_count=0, usage=None), True, "0 searches · continue with --continue"),
        (
            replace(ANSWER, search_count=2, usage=Usage(1, 0, 12345), response_id=None),
            False,
            "2 searches · 12,345 tokens",
        ),
    ],
)
def test_the_footer_can_be_read(answer: Answer, is_remembered: bool, output: str) -> None:
    assert footer(answer, is_remembered=is_remembered) == output


def cited(*pairs: tuple[str, str | None]) -> Answer:
    return replace(ANSWER, citations=tuple(Citation(url, "2026-11-16", title) for url, title in pairs))


def test_sources_are_links_with_their_titles() -> None:
    cases: list[tuple[str, str]] = [
        ("- https://a.org", "- [A\\, the \\*first\\*](<https://a.org>)"),
        ("- <https://a.org>", "- [A\\, the \\*first\\*](<https://a.org>)"),
        ("- https://a.org/b", "- [B](<https://a.org/b>)"),
        ("- [mine](https://a.org)", "- [mine](https://a.org)"),
        ("- https://a.org/longer", "- https://a.org/longer"),
        ("- https://other.org", "- https://other.org"),
        ("- oai-weather", "- oai-weather"),
        ("- https://e.org/?q=<x>", "- [E](<https://e.org/?q=%3Cx%3E>)"),
    ]
    for line, shown in cases:
        answer = cited(
            ("https://a.org", "A, the *first*"),
            ("https://a.org/b", "B"),
            ("oai-weather", "api"),
            ("https://e.org/?q=<x>", "E"),
            ("https://other.org", None),
        )
        before = "See https://a.org\n\nSources:\n"
        for has_links, expected in ((True, shown), (False, line)):
            text = for_a_terminal(f"{before}{line} (2026-11-16)", answer, str, has_links=has_links)
            assert text == f"{before}{expected} (read on 2026-11-16)"


def test_our_own_words_around_an_answer_are_japanese_for_a_japanese_reader() -> None:
    say = speaking({"LANG": "ja_JP.UTF-8"})
    answer = replace(cited(("https://a.org", "A")), incomplete_reason="max_output_tokens")
    text = "[Incomplete: max_output_tokens] Sources: none yet.\n\nSources:\n- https://a.org (2026-11-16)"
    assert for_a_terminal(text, answer, say, has_links=False) == (
        "[未完: max_output_tokens] Sources: none yet.\n\n出典:\n- https://a.org (2026-11-16 閲覧)"
    )
    assert footer(answer, say, is_remembered=True) == "検索 1 回 · 723 トークン · 続けるには --continue"
    for text in ("## Sources:\n- x", "Because.", "\u3000Only https://a.org here.\n"):
        assert for_a_terminal(text, cited(("https://a.org", "A")), say, has_links=True) == text


def test_the_date_of_a_source_says_what_it_is() -> None:
    citations = (
        Citation("https://a.org", "2026-11-16", "A"),
        Citation("https://a.org/news", "2025-01-02", date_kind="published"),
        Citation("oai-weather", "2026-11-16"),
    )
    lines = ["- https://a.org (2026-11-16)", "- https://a.org/news (2025-01-02)", "- oai-weather (2026-11-16)"]
    shown = [
        "- https://a.org (read on 2026-11-16)",
        "- https://a.org/news (published 2025-01-02)",
        "- oai-weather (read on 2026-11-16)",
        "- https://other.org (2026-11-16)",
    ]
    text = "\n".join(["On (2026-11-16).", "", "Sources:", *lines, shown[-1]])
    answer = replace(ANSWER, citations=citations)
    assert for_a_terminal(text, answer, str, has_links=False) == "\n".join(["On (2026-11-16).", "", "Sources:", *shown])


@pytest.mark.parametrize(("length", "is_rendered"), [(100, True), (MOST_RENDERED, False)])
def test_a_text_too_long_to_render_is_shown_as_it_is(
    monkeypatch: pytest.MonkeyPatch, length: int, is_rendered: bool
) -> None:
    terminal = FakeTerminal()
    monkeypatch.setattr("sys.stdout", terminal)
    text = f"**bold** {'x' * length}"
    showing = Showing(TOOLS["answer"], {"TERM": "xterm"}, is_json=False, remember=lambda response_id: True)
    assert showing.show(replace(ANSWER, text=text)) == 0
    assert ("**bold**" not in terminal.getvalue()) is is_rendered
    assert is_rendered or terminal.getvalue() == f"{text}\n"
