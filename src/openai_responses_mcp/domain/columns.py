"""How much room a text takes on a terminal, counted in columns: a letter of Chinese, Japanese or Korean takes two.

A letter never counts for less than it takes. What joins or follows another letter is counted as if it stood alone, so
that a line that is cut to fit always fits.
"""

import unicodedata
from collections.abc import Iterator


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
    """The text in lines that fit, broken at blanks; only a word that is wider than a line is cut."""
    line = ""
    for word in text.split(" "):
        longer = f"{line} {word}" if line else word
        if columns(longer) <= room:
            line = longer
            continue
        if line:
            yield line
        *whole, line = pieces(word, room)
        yield from whole
    yield line


def _columns_of(letter: str) -> int:
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1
