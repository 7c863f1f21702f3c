"""What a person at a terminal reads: tables for an overview, sheets where everything counts.

Nothing in them steers the terminal. A table shows texts by the same rule as an answer, and cuts its last column. A
sheet is what somebody decides on: nothing in it is invisible, and long lines are wrapped, not cut.
"""

from collections.abc import Iterator, Sequence

from openai_responses_mcp.domain.texts import columns, cut, pieces, revealed, visible

_NARROWEST = 12
_INDENT = _GAP = "  "


def table(headings: Sequence[str], rows: Sequence[Sequence[str]], width: int) -> str:
    """Columns as wide as they need to be; only the last one is cut to what the terminal has room for.

    What does not fit beside each other goes on in the next line, indented.
    """
    lines = [tuple(headings), *(tuple(_one_line(cell) for cell in row) for row in rows)]
    widths = [max(columns(line[place]) for line in lines) for place in range(len(headings))]
    beside = list(_beside_each_other(widths, width))
    return "".join(f"{text}\n" for line in lines for text in _row(line, widths, beside, width))


def sheet(facts: Sequence[tuple[str, str]], width: int) -> str:
    """Each fact below its name, whole. Only names stand at the margin, so that no text can pass for another fact."""
    room = max(width - len(_INDENT), _NARROWEST)
    lines = []
    for name, text in facts:
        lines += [name, *(f"{_INDENT}{line}" for line in _wrapped(revealed(text), room))]
    return "".join(f"{line}\n" for line in lines)


def _beside_each_other(widths: Sequence[int], width: int) -> Iterator[range]:
    """The columns of each line."""
    needed = [*widths[:-1], min(widths[-1], _NARROWEST)]
    first = used = 0
    for place, wide in enumerate(needed):
        if place > first and used + wide > width:
            yield range(first, place)
            first, used = place, len(_INDENT)
        used += wide + len(_GAP)
    yield range(first, len(widths))


def _row(cells: Sequence[str], widths: Sequence[int], beside: Sequence[range], width: int) -> Iterator[str]:
    for places in beside:
        line = _INDENT if places.start else ""
        for place in places[:-1]:
            line += cells[place] + " " * (widths[place] - columns(cells[place])) + _GAP
        is_last = places.stop == len(cells)
        yield line + (cut(cells[-1], max(width - columns(line), _NARROWEST)) if is_last else cells[places[-1]])


def _one_line(cell: str) -> str:
    return visible(cell).replace("\n", "\\n").replace("\t", "\\t")


def _wrapped(text: str, room: int) -> Iterator[str]:
    for line in text.split("\n"):
        yield from pieces(line, room)
