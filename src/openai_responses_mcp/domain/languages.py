"""Which language a person reads, a `Sentence` in that language, and sentences put together."""

from collections.abc import Mapping, Sequence
from functools import reduce
from typing import Literal

from openai_responses_mcp.domain.texts import Sentence

Language = Literal["en", "ja"]

_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")


def language_of(environ: Mapping[str, str]) -> Language:
    """The first variable that is set decides, as in every other program."""
    given = next((environ[name] for name in _VARIABLES if environ.get(name)), "")
    return "ja" if given.lower().startswith("ja") else "en"


def translated(text: str, table: Mapping[str, str]) -> str:
    """A `Sentence` by the templates in the table, and so are the sentences in it. Other texts stay as they are."""
    if not isinstance(text, Sentence):
        return text
    facts = {name: translated(fact, table) if isinstance(fact, str) else fact for name, fact in text.facts.items()}
    return table.get(text.template, text.template).format(**facts)


def about(subject: str, text: str) -> Sentence:
    return Sentence("{subject}: {text}", subject=subject, text=text)


def linked(template: str, texts: Sequence[str]) -> str:
    """The texts in a row; the template has places for the `first` ones and the `second`, such as "{first} and {second}"."""
    return reduce(lambda first, second: Sentence(template, first=first, second=second), texts)
