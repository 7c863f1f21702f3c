"""What a request asks: its question, the hints below it, the outputs of functions it hands back, and whether to search."""

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


def function_outputs(given: Any) -> dict[str, str]:
    """The outputs of functions in the `input` of a request, by the id of their call."""
    return {
        str(item.get("call_id")): _content_text(item.get("output"))
        for item in _items(given)
        if item.get("type") == "function_call_output"
    }


def function_call_ids(given: Any) -> set[str]:
    """The calls of functions that the `input` of a request repeats."""
    return {str(item.get("call_id")) for item in _items(given) if item.get("type") == "function_call"}


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


def _items(given: Any) -> list[dict[str, Any]]:
    return [item for item in given if isinstance(item, dict)] if isinstance(given, list) else []


def _is_user_message(item: Any) -> bool:
    return isinstance(item, dict) and item.get("role") == "user"


def _message_text(message: dict[str, Any]) -> str:
    return _content_text(message.get("content"))


def _content_text(content: Any) -> str:
    if isinstance(content, str):
        return content
    if not isinstance(content, list):
        return ""
    parts = [part.get("text") for part in content if isinstance(part, dict)]
    return "\n".join(part for part in parts if isinstance(part, str))
