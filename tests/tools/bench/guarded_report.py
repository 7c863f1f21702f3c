"""What a guarded call costs beside the plain SDK, as a table between marks of its own in the page."""

from typing import Any

from tests.tools.bench.figures import Summary, summary
from tests.tools.bench.pages import between, marks

PLAIN, MEMORY, FILE, WAL = "plain SDK", "guarded, in memory", "guarded, SQLite file", "guarded, SQLite file in WAL mode"
LIMITS = {MEMORY: 1.5, FILE: 3.0}
BEGIN, END = marks("bench:guarded")


def put_into(page: str, found: dict[str, Any]) -> str:
    return between(page, (BEGIN, END), as_text(found))


def as_text(found: dict[str, Any]) -> str:
    wall = {name: summary(samples) for name, samples in found["wall"].items()}
    cpu = {name: summary(samples) for name, samples in found["cpu"].items()}
    rows = [_row(name, wall, cpu, found["writes"][name]) for name in wall]
    about = f"Medians of {found['runs']} runs of each, SQLite {found['sqlite']}, load {found['load']}:"
    head = ["| | time | × plain | wanted | between quartiles | CPU | × plain | durable writes |", "| --- " * 8 + "|"]
    return "\n".join([about, "", *head, *rows])


def _row(name: str, wall: dict[str, Summary], cpu: dict[str, Summary], writes: int) -> str:
    slower, limit = wall[name].median / wall[PLAIN].median, LIMITS.get(name)
    wanted = "" if limit is None else f"at most {limit:g}: {'yes' if slower <= limit else 'no'}"
    cells = [
        name,
        f"{wall[name].median:.1f} ms",
        f"{slower:.2f}",
        wanted,
        f"{wall[name].spread:.1f} ms",
        f"{cpu[name].median:.1f} ms",
        f"{cpu[name].median / cpu[PLAIN].median:.2f}",
        str(writes),
    ]
    return f"| {' | '.join(cells)} |"
