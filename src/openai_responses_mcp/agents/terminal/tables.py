"""What a person at a terminal reads: tables for an overview, sheets where everything counts.

Nothing in them steers the terminal. A table shows texts by the same rule as an answer, and cuts its last column. A
sheet is what somebody decides on: nothing in it is invisible, and long lines are wrapped, not cut.
"""

from collections.abc import Iterator, Sequence

from openai_responses_mcp.domain.columns import columns, cut, pieces
from openai_responses_mcp.domain.texts import revealed, visible

_NARROWEST = 12
_INDENT = "  "


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    """Columns as wide as they need to be; only the last one is cut to what the terminal has room for."""
    lines = [tuple(headings), *(tuple(_one_line(cell) for cell in row) for row in rows)]
    widths = [max(columns(line[place]) for line in lines) for place in range(len(headings))]
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
    padded = [cell + " " * (width - columns(cell)) for cell, width in zip(cells[:-1], widths, strict=False)]
    return "  ".join([*padded, cut(cells[-1], room)])


def _one_line(cell: str) -> str:
    return visible(cell).replace("\n", "\\n").replace("\t", "\\t")


def _wrapped(text: str, room: int) -> Iterator[str]:
    for line in text.split("\n"):
        yield from pieces(line, room)
