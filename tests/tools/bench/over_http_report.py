"""Over HTTP beside stdio and beside a peer, as a table between marks of its own in the page."""

from typing import Any

from tests.tools.bench.figures import summary
from tests.tools.bench.pages import between, marks

STDIO, HTTP, PEER = "stdio", "HTTP", "HTTP, MCPServer (FastMCP)"
BEGIN, END = marks("bench:http")

_MEASURES = {
    "warm": ("a warm call", "ms"),
    "burst_200": ("200 × 500 ms at once", "ms"),
    "burst_1000": ("1,000 callers at once, 500 ms each", "ms"),
    "memory": ("memory after that", "MB"),
}


def put_into(page: str, found: dict[str, Any]) -> str:
    return between(page, (BEGIN, END), as_text(found))


def as_text(found: dict[str, Any]) -> str:
    about = f"Medians of {found['rounds']} rounds, load {found['load']}:"
    head = [
        "| | " + " | ".join(found["samples"]) + " | no slower than the peer |",
        "| --- " * (len(found["samples"]) + 2) + "|",
    ]
    return "\n".join([about, "", *head, *(_row(found["samples"], measure) for measure in _MEASURES)])


def _row(samples: dict[str, dict[str, list[float]]], measure: str) -> str:
    words, unit = _MEASURES[measure]
    medians = {way: summary(found[measure]).median for way, found in samples.items()}
    cells = [f"{value:.{1 if value < 100 else 0}f} {unit}" for value in medians.values()]
    return f"| {words} | {' | '.join(cells)} | {'yes' if medians[HTTP] <= medians[PEER] else 'no'} |"
