"""Sentences in two languages; texts made safe for a wire, a terminal, a file or one line; and how wide a text is.

Only harmful characters are replaced. Spaces of other scripts, emoji joiners and direction marks belong to a text. A text
that a person decides on is the exception: nothing in it may be invisible.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import reduce
from typing import Literal


class Sentence(str):
    """A sentence in English that remembers its template and facts, so that it can be translated.

    The first argument is a template, and facts take the places in it: `Sentence("There is no file {file}", file=name)`.
    """

    template: str
    facts: dict[str, object]

    def __new__(cls, template: str, /, **facts: object) -> "Sentence":
        made = super().__new__(cls, template.format(**facts))
        made.template, made.facts = template, facts
        return made

    def __getnewargs_ex__(self) -> tuple[tuple[str], dict[str, object]]:
        """For copies."""
        return (self.template,), self.facts


Language = Literal["en", "ja"]

_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")


def language_of(environ: Mapping[str, str]) -> Language:
    """The first variable that is set decides, as usual."""
    given = next((environ[name] for name in _VARIABLES if environ.get(name)), "")
    return "ja" if given.lower().startswith("ja") else "en"


def translated(text: str, table: Mapping[str, str]) -> str:
    """A `Sentence`, and the sentences in it, with the templates of the table. Other texts are returned unchanged."""
    if not isinstance(text, Sentence):
        return text
    facts = {name: translated(fact, table) if isinstance(fact, str) else fact for name, fact in text.facts.items()}
    return table.get(text.template, text.template).format(**facts)


def about(subject: str, text: str) -> Sentence:
    return Sentence("{subject}: {text}", subject=subject, text=text)


def linked(template: str, texts: Sequence[str]) -> str:
    """The texts joined two by two with a template such as "{first} and {second}"."""
    return reduce(lambda first, second: Sentence(template, first=first, second=second), texts)


# Patterns as text, which `re` compiles with the first use: the first reply needs this module, but no pattern.
_LONE_SURROGATE = "[\ud800-\udfff]"
# Controls except tab and newline, and marks that turn the direction of a text around.
_STEERING = "[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]"
_BREAKING = "[\t\n\u2028\u2029]"
# Characters that are invisible although Unicode calls them printable: fillers, blanks, variation selectors.
_BLANK = (
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u2800\u2d7f\u3164\ufe00-\ufe0f\uffa0"
    "\U0001107f\U00013441\U00013442\U00016fe4\U0001d159\U000e0100-\U000e01ef]"
)
_JAPANESE_BLANK = "\u3000"


def without_surrogates(text: str) -> str:
    """A lone surrogate cannot be encoded and becomes U+FFFD."""
    # Encoding is many times faster than a search, and there is hardly ever one.
    try:
        text.encode()
    except UnicodeEncodeError:
        return re.sub(_LONE_SURROGATE, "\ufffd", text)
    return text


def visible(text: str) -> str:
    """For a terminal: control characters become escapes."""
    return re.sub(_STEERING, lambda match: _escape(match[0]), _plain_line_ends(text))


def harmless(text: str) -> str:
    """For a file or a pipe: control characters are removed."""
    return re.sub(_STEERING, "", _plain_line_ends(text))


def harmless_json(text: str) -> str:
    """For a text that is JSON: control characters become JSON escapes, so that no value changes."""
    return re.sub(_STEERING, lambda match: f"\\u{ord(match[0]):04x}", text)


def one_line(text: str) -> str:
    """For a message on one line: line ends, tabs and control characters become spaces."""
    if text.isprintable():  # Nothing to replace, so no pattern has to be compiled.
        return text
    return re.sub(_BREAKING, " ", re.sub(_STEERING, " ", without_surrogates(text)))


def revealed(text: str) -> str:
    """For a person who decides on it: every character is visible, a newline, or an escape."""
    return "".join(map(_seen, text))


def revealed_json(text: str) -> str:
    """The same for a text that is JSON; it stays JSON."""
    import json  # Here: reading a plain configuration needs this module, and no JSON.

    return "".join(letter if _seen(letter) == letter else json.dumps(letter)[1:-1] for letter in text)


def _seen(letter: str) -> str:
    if letter.isprintable() or letter in ("\n", _JAPANESE_BLANK):
        return letter if letter.isascii() or not re.match(_BLANK, letter) else _escape(letter)
    return _escape(letter)


def _plain_line_ends(text: str) -> str:
    return without_surrogates(text).replace("\r\n", "\n")


def _escape(letter: str) -> str:
    code = ord(letter)
    if code < 0x100:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


# ---------------------------------------------------------------------------------------------------------------------
# How many columns a text takes on a terminal: a Chinese, Japanese or Korean letter takes two. Combining characters are
# counted as if they stood alone, so that a line that is cut to fit always fits.


def columns(text: str) -> int:
    return sum(map(_columns_of, text))


def cut(text: str, room: int) -> str:
    """The text, or as much of it as fits, with an ellipsis at its end."""
    if columns(text) <= room:
        return text
    return f"{next(pieces(text, room - 1))}…"


def pieces(text: str, room: int) -> Iterator[str]:
    """The text in pieces that fit, cut between any two letters, so that nothing of it gets lost."""
    start, used = 0, 0
    for place, letter in enumerate(text):
        used += _columns_of(letter)
        if used > room:
            yield text[start:place]
            start, used = place, _columns_of(letter)
    yield text[start:]


def wrapped(text: str, room: int) -> Iterator[str]:
    """The text in lines that fit, broken at blanks and between wide letters; only a word wider than a line is cut."""
    line = ""
    for number, word in enumerate(text.split(" ")):
        blank = " " if number and line else ""
        for part in _parts(word):
            if columns(line + blank + part) <= room:
                line, blank = line + blank + part, ""
                continue
            if line:
                yield line
            *whole, line = pieces(part, room)
            yield from whole
            blank = ""
    yield line


# Marks that no line of Japanese begins with, and those that none ends with.
_CLOSING = "、。」』\u3011ー,.)]:;?!\uff09\uff1a\uff1f\uff01"
_OPENING = "「『\u3010([\uff08"


def _parts(word: str) -> Iterator[str]:
    """The word, cut where a line may be broken: before or after a wide letter, but not before a mark that closes."""
    part = ""
    for letter in word:
        is_break = part and _columns_of(letter) + _columns_of(part[-1]) > 2
        if is_break and letter not in _CLOSING and part[-1] not in _OPENING:
            yield part
            part = ""
        part += letter
    yield part


def _columns_of(letter: str) -> int:
    import unicodedata  # Here: this module is needed before the first reply, and its width is not.

    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
