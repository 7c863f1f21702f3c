"""What the stand-in reads in a question, and what it answers.

The text says that it comes from a stand-in, in the language of the question. Addresses are on example.com, except that
of the demo.
"""

import re
import time
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from openai_responses_mcp.domain.policy import SEARCH_TRIGGERS
from openai_responses_mcp.rehearsal.wire import (
    Item,
    message_item,
    reasoning_item,
    search_item,
    text_part,
    url_citation,
)

_HINTS_LINE = "\n[Hints]"
_JAPANESE_LETTER = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_ISO_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_TODAY_HINT = re.compile(r"\btoday=(\d{4}-\d{2}-\d{2})")
_QUOTE_CHARACTERS = 80
_CITATIONS = 2
_TOKYO_SECONDS = 9 * 3600


class AskedInput(NamedTuple):
    """The user's own words (markers included) and, apart from them, the line of hints a client may add."""

    text: str
    hints: str = ""


def read_question(given: Any) -> AskedInput:
    """The question in the `input` of a request; empty when no user message is in it."""
    if not isinstance(given, str):
        users = [item for item in given if isinstance(item, dict) and item.get("role") == "user"]
        given = content_text(users[-1].get("content")) if users else ""
    question, line, hints = given.rpartition(_HINTS_LINE)
    return AskedInput(question.strip(), hints) if line else AskedInput(given.strip())


def content_text(content: Any) -> str:
    """The text of a message or of what a function gave: as it is, or of all its parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


def any_of(words: Iterable[str]) -> re.Pattern[str]:
    # Japanese has no spaces around a word, so only ASCII neighbours make a Latin word part of a longer one.
    latin = "|".join(re.escape(word) for word in words if word.isascii())
    other = "|".join(re.escape(word) for word in words if not word.isascii())
    return re.compile(rf"(?<![a-z0-9_])(?:{latin})(?![a-z0-9_])|{other}")


_TRIGGER = any_of(SEARCH_TRIGGERS)


def needs_search(question: str) -> bool:
    return _TRIGGER.search(question.lower()) is not None


class Phrases(NamedTuple):
    stand_in: str
    asked: str
    earlier: str
    found: str


_ENGLISH = Phrases(
    stand_in="This is a rehearsal answer from the built-in stand-in, not a real one.",
    asked=' You asked: "{}".',
    earlier=' Earlier in this conversation you asked: "{}".',
    found=" What a search finds as of {} would stand here.",
)
_JAPANESE = Phrases(
    stand_in="これは内蔵の代役によるリハーサル用の回答であり、本物の回答ではありません。",
    asked="ご質問:「{}」。",
    earlier="この会話の前のご質問:「{}」。",
    found="{} 時点の検索結果がここに入ります。",
)

# What `--rehearse` asks by itself. Its answer is a real one, so that a newcomer sees what answers look like.
DEMO_QUESTION = "What does HTTP status 404 mean?"
_DEMO_SOURCE = {"type": "url", "url": "https://www.rfc-editor.org/rfc/rfc9110.html"}
_DEMO_ANSWER = (
    "**404 (Not Found)** means that the server has nothing at the address that was asked for, or does not want to say"
    " whether it has. It leaves open whether that is for now or for good; 410 (Gone) would say for good.\n\n"
    "This answer was not made by a model. It comes with the program, to show what answers look like."
)


@dataclass(frozen=True, slots=True)
class Situation:
    """All that an answer depends on."""

    question: str
    hints: str = ""
    is_searching: bool = False
    includes_sources: bool = False
    earlier_question: str | None = None


def write_answer(situation: Situation) -> list[Item]:
    """The output of the response."""
    if situation.question == DEMO_QUESTION:
        citation = url_citation(_DEMO_SOURCE["url"], "RFC 9110: HTTP Semantics", 0, len(_DEMO_ANSWER))
        opening = [reasoning_item(), search_item("HTTP status 404", [_DEMO_SOURCE])]
        return [*opening, message_item([text_part(_DEMO_ANSWER, [citation])])]
    count = _CITATIONS if situation.is_searching else 0
    text = with_links(usual_text(situation), count)
    return [*write_opening(situation, usual_sources(count)), message_item([text])]


def write_opening(situation: Situation, sources: list[dict[str, str]]) -> list[Item]:
    """What comes before the text: the reasoning and the search."""
    if not situation.is_searching:
        return [reasoning_item()]
    return [reasoning_item(), search_item(quote(situation.question), sources if situation.includes_sources else None)]


def usual_sources(cited: int) -> list[dict[str, str]]:
    """One address more than is cited."""
    return [{"type": "url", "url": example_url(number)} for number in range(1, cited + 2)]


def with_links(text: str, count: int) -> Item:
    """The text with this many citations, each a link at its end."""
    citations = []
    for number in range(1, count + 1):
        link = f"([example.com]({example_url(number)}))"
        citations.append(example_citation(number, len(text) + 1, len(text) + 1 + len(link)))
        text += f" {link}"
    return text_part(text, citations)


def usual_text(situation: Situation) -> str:
    phrases = _JAPANESE if _JAPANESE_LETTER.search(situation.question) else _ENGLISH
    text = phrases.stand_in + phrases.asked.format(quote(situation.question))
    if situation.earlier_question is not None:
        text += phrases.earlier.format(quote(situation.earlier_question))
    if situation.is_searching:
        text += phrases.found.format(_date(situation.question, situation.hints))
    return text


def _date(question: str, hints: str) -> str:
    """The day a question is about: the one it names, else the client's today, else Tokyo's."""
    if named := _ISO_DATE.search(question):
        return named[0]
    if today := _TODAY_HINT.search(hints):
        return today[1]
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() + _TOKYO_SECONDS))


def quote(text: str) -> str:
    """One line, shortened."""
    line = " ".join(text.split())
    return line if len(line) <= _QUOTE_CHARACTERS else line[:_QUOTE_CHARACTERS] + "…"


def example_url(number: int) -> str:
    return f"https://example.com/rehearsal/{number}"


def example_citation(number: int, start: int, end: int) -> Item:
    return url_citation(example_url(number), f"Rehearsal example {number}", start, end)
