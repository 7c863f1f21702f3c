"""What a request asks: its question, the hints below it, and whether it needs a search."""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from openai_responses_mcp.domain.policy import SEARCH_TRIGGERS

_HINTS_LINE = "\n[Hints]"
_JAPANESE = re.compile(r"[\u3040-\u30ff\u3400-\u9fff]")
_ISO_DATE = re.compile(r"(?<!\d)\d{4}-\d{2}-\d{2}(?!\d)")
_TODAY_HINT = re.compile(r"\btoday=(\d{4}-\d{2}-\d{2})")
_WEATHER_WORDS = ("weather", "forecast", "temperature", "天気", "気温", "降水", "予報")


@dataclass(frozen=True, slots=True)
class Question:
    """The user's own words (markers included) and, apart from them, the line of hints a client may add."""

    text: str
    hints: str = ""


def read_question(given: Any) -> Question:
    """The question in the `input` of a request; empty when no user message is in it."""
    if isinstance(given, str):
        return _split_hints(given)
    users = [item for item in given if _is_user_message(item)]
    return _split_hints(_message_text(users[-1])) if users else Question("")


def needs_search(question: str) -> bool:
    return _TRIGGER.search(question.lower()) is not None


def is_about_weather(question: str) -> bool:
    return _WEATHER.search(question.lower()) is not None


def is_japanese(text: str) -> bool:
    return _JAPANESE.search(text) is not None


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


def _split_hints(text: str) -> Question:
    question, line, hints = text.rpartition(_HINTS_LINE)
    return Question(question.strip(), hints) if line else Question(text.strip())


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
