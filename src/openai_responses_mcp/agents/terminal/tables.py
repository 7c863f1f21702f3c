"""What a person at a terminal reads: tables for an overview, sheets where everything counts.

Nothing in them steers the terminal or stays invisible. A table cuts its last column; a sheet cuts nothing and wraps.
"""

import unicodedata
from collections.abc import Iterator, Sequence

from openai_responses_mcp.domain.texts import revealed

_NARROWEST = 12
_INDENT = "  "


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    """Columns as wide as they need to be; only the last one is cut to what the terminal has room for."""
    lines = [tuple(headings), *(tuple(_one_line(cell) for cell in row) for row in rows)]
    widths = [max(_columns(line[place]) for line in lines) for place in range(len(headings))]
    room = max(width - sum(widths[:-1]) - 2 * (len(widths) - 1), _NARROWEST)
    return "".join(f"{_row(line, widths, room)}\n" for line in lines)


def sheet(facts: Sequence[tuple[str, str]], width: int) -> str:
    """Each fact below its name, whole. Only names stand at the margin, so that no text can pass for another fact."""
    room = max(width - len(_INDENT), _NARROWEST)
    lines = []
    for name, text in facts:
        lines += [name, *(f"{_INDENT}{line}" for line in _wrapped(revealed(text), room))]
    return "".join(f"{line}\n" for line in lines)


def _row(cells: Sequence[str], widths: Sequence[int], room: int) -> str:
    padded = [cell + " " * (width - _columns(cell)) for cell, width in zip(cells[:-1], widths, strict=False)]
    return "  ".join([*padded, _cut(cells[-1], room)])


def _one_line(cell: str) -> str:
    return revealed(cell).replace("\n", "\\n")


def _columns(text: str) -> int:
    return sum(map(_columns_of, text))


def _columns_of(letter: str) -> int:
    return 2 if unicodedata.east_asian_width(letter) in "WF" else 1


def _cut(text: str, room: int) -> str:
    if _columns(text) <= room:
        return text
    return f"{next(_lines(text, room - 1))}…"


def _wrapped(text: str, room: int) -> Iterator[str]:
    for line in text.split("\n"):
        yield from _lines(line, room)


def _lines(text: str, room: int) -> Iterator[str]:
    """The text in pieces that fit, cut between any two letters, so that nothing of it gets lost."""
    start, used = 0, 0
    for place, letter in enumerate(text):
        used += _columns_of(letter)
        if used > room:
            yield text[start:place]
            start, used = place, _columns_of(letter)
    yield text[start:]
