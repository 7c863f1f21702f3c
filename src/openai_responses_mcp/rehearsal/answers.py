"""What the stand-in reads in a question, and what it answers.

The text says that it comes from a stand-in, in the language of the question. Addresses are on example.com, but for the
demo's.
"""

import re
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from openai_responses_mcp.domain.policy import SEARCH_TRIGGERS
from openai_responses_mcp.rehearsal.wire import (
    CannedAnswer,
    Item,
    message_item,
    reasoning_item,
    refusal_part,
    search_item,
    text_part,
    url_citation,
)

_HINTS_LINE = "\n[Hints]"
_JAPANESE_LETTER = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_ISO_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_TODAY_HINT = re.compile(r"\btoday=(\d{4}-\d{2}-\d{2})")
_WEATHER_WORDS = ("weather", "forecast", "temperature", "天気", "気温", "降水", "予報")


@dataclass(frozen=True, slots=True)
class AskedInput:
    """The user's own words (markers included) and, apart from them, the line of hints a client may add."""

    text: str
    hints: str = ""


def read_question(given: Any) -> AskedInput:
    """The question in the `input` of a request; empty when no user message is in it."""
    if isinstance(given, str):
        return _split_hints(given)
    users = [item for item in given if _is_user_message(item)]
    return _split_hints(_message_text(users[-1])) if users else AskedInput("")


def needs_search(question: str) -> bool:
    return _TRIGGER.search(question.lower()) is not None


def is_about_weather(question: str) -> bool:
    return _WEATHER.search(question.lower()) is not None


def is_japanese(text: str) -> bool:
    return _JAPANESE_LETTER.search(text) is not None


def maybe_date(question: str, hints: str) -> str | None:
    """The day a question is about: the one it names, else the client's today."""
    named = _ISO_DATE.search(question)
    if named is not None:
        return named.group()
    today = _TODAY_HINT.search(hints)
    return today.group(1) if today else None


def _any_of(words: Iterable[str]) -> re.Pattern[str]:
    # Japanese has no spaces around a word, so only ASCII neighbours make a Latin word part of a longer one.
    latin = "|".join(re.escape(word) for word in words if word.isascii())
    other = "|".join(re.escape(word) for word in words if not word.isascii())
    return re.compile(rf"(?<![a-z0-9_])(?:{latin})(?![a-z0-9_])|{other}")


_TRIGGER = _any_of(SEARCH_TRIGGERS)
_WEATHER = _any_of(_WEATHER_WORDS)


def _split_hints(text: str) -> AskedInput:
    question, line, hints = text.rpartition(_HINTS_LINE)
    return AskedInput(question.strip(), hints) if line else AskedInput(text.strip())


def _is_user_message(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "user"


def _message_text(message: dict[str, Any]) -> str:
    return content_text(message.get("content"))


def content_text(content: Any) -> str:
    """The text of a message or of what a function gave: as it is, or of all its parts."""
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))


_QUOTE_CHARACTERS = 80
_USUAL_CITATIONS = 2
_TOKYO_SECONDS = 9 * 3600


@dataclass(frozen=True, slots=True)
class Situation:
    """All that an answer depends on. `text` and `citations` are None unless the question asks for them."""

    question: str
    hints: str = ""
    is_searching: bool = False
    includes_sources: bool = False
    earlier_question: str | None = None
    text: str | None = None
    citations: int | None = None

    @property
    def citation_count(self) -> int:
        if self.citations is not None:
            return self.citations
        return _USUAL_CITATIONS if self.is_searching else 0


@dataclass(frozen=True, slots=True)
class Phrases:
    stand_in: str
    asked: str
    earlier: str
    found: str
    refusal: str


_ENGLISH = Phrases(
    stand_in="This is a rehearsal answer from the built-in stand-in, not a real one.",
    asked=' You asked: "{}".',
    earlier=' Earlier in this conversation you asked: "{}".',
    found=" What a search finds as of {} would stand here.",
    refusal="This is a rehearsal: I'm sorry, but I can't help with that.",
)
_JAPANESE = Phrases(
    stand_in="これは内蔵の代役によるリハーサル用の回答であり、本物の回答ではありません。",
    asked="ご質問:「{}」。",
    earlier="この会話の前のご質問:「{}」。",
    found="{} 時点の検索結果がここに入ります。",
    refusal="リハーサルです。申し訳ありませんが、お手伝いできません。",
)


@dataclass(frozen=True, slots=True)
class Draft:
    """An answer before it is known how it ends: what comes before the text, the text, the words for a refusal."""

    opening: list[Item]
    text: Item
    refusal: str


# What `--rehearse` asks by itself. Its answer is a real one, so that a newcomer sees what answers look like.
DEMO_QUESTION = "What does HTTP status 404 mean?"
_DEMO_SOURCE = {"type": "url", "url": "https://www.rfc-editor.org/rfc/rfc9110.html"}
_DEMO_ANSWER = (
    "**404 (Not Found)** means that the server has nothing at the address that was asked for, or does not want to say"
    " whether it has. It leaves open whether that is for now or for good; 410 (Gone) would say for good.\n\n"
    "This answer was not made by a model. It comes with the program, to show what answers look like."
)


def write_answer(situation: Situation, outcome: str | None = None) -> CannedAnswer:
    refusal = phrases_for(situation.question).refusal
    if situation.question == DEMO_QUESTION:
        citation = url_citation(_DEMO_SOURCE["url"], "RFC 9110: HTTP Semantics", 0, len(_DEMO_ANSWER))
        opening = [reasoning_item(), search_item("HTTP status 404", [_DEMO_SOURCE])]
        return OUTCOMES[outcome](Draft(opening, text_part(_DEMO_ANSWER, [citation]), refusal))
    draft = Draft(write_opening(situation, usual_sources(situation)), write_text(situation), refusal)
    return OUTCOMES[outcome](draft)


def _completed(draft: Draft) -> CannedAnswer:
    return CannedAnswer([*draft.opening, message_item([draft.text])])


def _refused(draft: Draft) -> CannedAnswer:
    return CannedAnswer([*draft.opening, message_item([refusal_part(draft.refusal)])])


def _cut_short(draft: Draft) -> CannedAnswer:
    message = message_item([draft.text], status="incomplete")
    return CannedAnswer([*draft.opening, message], "incomplete", incomplete_reason="max_output_tokens")


def _failed(draft: Draft) -> CannedAnswer:
    message = "The model failed to answer, as this rehearsal asked for."
    return CannedAnswer(draft.opening, "failed", error={"code": "server_error", "message": message})


def _without_text(draft: Draft) -> CannedAnswer:
    return CannedAnswer(draft.opening)


OUTCOMES: dict[str | None, Callable[[Draft], CannedAnswer]] = {
    None: _completed,
    "refusal": _refused,
    "incomplete": _cut_short,
    "failed": _failed,
    "no-text": _without_text,
}


def write_opening(situation: Situation, sources: list[dict[str, str]]) -> list[Item]:
    """What comes before the text: the reasoning and the search."""
    if not situation.is_searching:
        return [reasoning_item()]
    return [reasoning_item(), search_item(quote(situation.question), sources if situation.includes_sources else None)]


def usual_sources(situation: Situation) -> list[dict[str, str]]:
    """One address more than is cited, and the API's own source where the question is about the weather."""
    urls = [{"type": "url", "url": example_url(number)} for number in range(1, situation.citation_count + 2)]
    return [*urls, {"type": "api", "name": "oai-weather"}] if is_about_weather(situation.question) else urls


def write_text(situation: Situation) -> Item:
    if situation.text is None:
        return with_links(usual_text(situation), situation.citation_count)
    numbers = range(1, situation.citation_count + 1)
    return text_part(situation.text, [_citation(number, 0, len(situation.text)) for number in numbers])


def with_links(text: str, count: int) -> Item:
    """The text with this many citations, each a link at its end."""
    citations = []
    for number in range(1, count + 1):
        link = f"([example.com]({example_url(number)}))"
        citations.append(_citation(number, len(text) + 1, len(text) + 1 + len(link)))
        text += f" {link}"
    return text_part(text, citations)


def usual_text(situation: Situation) -> str:
    phrases = phrases_for(situation.question)
    text = phrases.stand_in + phrases.asked.format(quote(situation.question))
    if situation.earlier_question is not None:
        text += phrases.earlier.format(quote(situation.earlier_question))
    if situation.is_searching:
        text += phrases.found.format(maybe_date(situation.question, situation.hints) or _today_in_tokyo())
    return text


def phrases_for(question: str) -> Phrases:
    return _JAPANESE if is_japanese(question) else _ENGLISH


def quote(text: str) -> str:
    """One line, shortened."""
    line = " ".join(text.split())
    return line if len(line) <= _QUOTE_CHARACTERS else line[:_QUOTE_CHARACTERS] + "…"


def example_url(number: int) -> str:
    return f"https://example.com/rehearsal/{number}"


def _citation(number: int, start: int, end: int) -> Item:
    return url_citation(example_url(number), f"Rehearsal example {number}", start, end)


def _today_in_tokyo() -> str:
    return time.strftime("%Y-%m-%d", time.gmtime(time.time() + _TOKYO_SECONDS))
