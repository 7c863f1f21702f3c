"""Tables for a terminal: as wide as they need to be, without control characters."""

import unicodedata
from collections.abc import Sequence

_NARROWEST = 12


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    """Columns as wide as they need to be; only the last one is cut to what the terminal has room for."""
    lines = [tuple(headings), *(tuple(_one_line(cell) for cell in row) for row in rows)]
    widths = [max(_columns(line[place]) for line in lines) for place in range(len(headings))]
    room = max(width - sum(widths[:-1]) - 2 * (len(widths) - 1), _NARROWEST)
    return "".join(f"{_row(line, widths, room)}\n" for line in lines)


def _row(cells: Sequence[str], widths: Sequence[int], room: int) -> str:
    padded = [cell + " " * (width - _columns(cell)) for cell, width in zip(cells[:-1], widths, strict=False)]
    return "  ".join([*padded, _cut(cells[-1], room)])


def _one_line(cell: str) -> str:
    """Control characters in a tool's name or in arguments must not reach a terminal."""
    return "".join(letter if letter.isprintable() else "�" for letter in cell)


def _columns(text: str) -> int:
    return sum(2 if unicodedata.east_asian_width(letter) in "WF" else 1 for letter in text)


def _cut(text: str, room: int) -> str:
    if _columns(text) <= room:
        return text
    while _columns(text) > room - 1:
        text = text[:-1]
    return f"{text}…"
