"""What a call through the guard costs beside the bare server, as a table between marks of its own in the page."""

from typing import Any

from tests.tools.bench.figures import Summary, summary
from tests.tools.bench.pages import between, marks

BARE = "bare server"
MOST_MS, MOST_MB = 3.0, 40.0
BEGIN, END = marks("bench:guard")


def put_into(page: str, found: dict[str, Any]) -> str:
    return between(page, (BEGIN, END), as_text(found))


def as_text(found: dict[str, Any]) -> str:
    times = {name: summary(samples) for name, samples in found["times"].items()}
    about = f"Medians of {found['calls']} calls of each, SQLite {found['sqlite']}, load {found['load']}:"
    head = [
        "| | a call | more than bare | wanted | between quartiles | memory of its own | wanted |",
        "| --- " * 7 + "|",
    ]
    rows = [_row(name, times, found["memory"][name]) for name in times]
    disk = f"Writing 4 KB and waiting until the disk has them (`fsync`) took {summary(found['fsync']).median:.2f} ms meanwhile."
    return "\n".join([about, "", *head, *rows, "", disk])


def _row(name: str, times: dict[str, Summary], memory_mb: float) -> str:
    more = times[name].median - times[BARE].median
    cells = [name, f"{times[name].median:.2f} ms", "", "", f"{times[name].spread:.2f} ms", f"{memory_mb:.0f} MB", ""]
    if name != BARE:
        cells[2], cells[3] = f"{more:.2f} ms", _wanted(more, MOST_MS, "ms")
        cells[6] = _wanted(memory_mb, MOST_MB, "MB")
    return f"| {' | '.join(cells)} |"


def _wanted(value: float, most: float, unit: str) -> str:
    return f"at most {most:g} {unit}: {'yes' if value <= most else 'no'}"
