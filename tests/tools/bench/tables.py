"""Tables for the page of figures, each between marks of its own: a guarded call, a call through the guard, HTTP."""

from typing import Any

from tests.tools.bench.figures import Summary, summary

PLAIN, MEMORY, FILE, WAL = "plain SDK", "guarded, in memory", "guarded, SQLite file", "guarded, SQLite file in WAL mode"
BARE = "bare server"
STDIO, HTTP, PEER = "stdio", "HTTP", "HTTP, MCPServer (FastMCP)"

_MOST_TIMES_PLAIN = {MEMORY: 1.5, FILE: 3.0}
_MOST_MS, _MOST_MB = 4.0, 45.0
_OVER_HTTP = {
    "warm": ("a warm call", "ms"),
    "burst_200": ("200 × 500 ms at once", "ms"),
    "burst_1000": ("1,000 callers at once, 500 ms each", "ms"),
    "memory": ("memory after that", "MB"),
}


def guarded_run(found: dict[str, Any]) -> str:
    wall = {name: summary(samples) for name, samples in found["wall"].items()}
    cpu = {name: summary(samples) for name, samples in found["cpu"].items()}
    rows = [_guarded_row(name, wall, cpu, found["writes"][name]) for name in wall]
    about = f"Medians of {found['runs']} runs of each, SQLite {found['sqlite']}, load {found['load']}:"
    head = ["| | time | × plain | wanted | between quartiles | CPU | × plain | durable writes |", "| --- " * 8 + "|"]
    return "\n".join([about, "", *head, *rows])


def _guarded_row(name: str, wall: dict[str, Summary], cpu: dict[str, Summary], writes: int) -> str:
    slower, limit = wall[name].median / wall[PLAIN].median, _MOST_TIMES_PLAIN.get(name)
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


def guarded_server(found: dict[str, Any]) -> str:
    times = {name: summary(samples) for name, samples in found["times"].items()}
    about = f"Medians of {found['calls']} calls of each, SQLite {found['sqlite']}, load {found['load']}:"
    head = [
        "| | a call | more than bare | wanted | between quartiles | memory of its own | wanted |",
        "| --- " * 7 + "|",
    ]
    rows = [_server_row(name, times, found["memory"][name]) for name in times]
    disk = f"Writing 4 KB and waiting until the disk has them (`fsync`) took {summary(found['fsync']).median:.2f} ms meanwhile."
    return "\n".join([about, "", *head, *rows, "", disk])


def _server_row(name: str, times: dict[str, Summary], memory_mb: float) -> str:
    more = times[name].median - times[BARE].median
    cells = [name, f"{times[name].median:.2f} ms", "", "", f"{times[name].spread:.2f} ms", f"{memory_mb:.0f} MB", ""]
    if name != BARE:
        cells[2], cells[3] = f"{more:.2f} ms", _wanted(more, _MOST_MS, "ms")
        cells[6] = _wanted(memory_mb, _MOST_MB, "MB")
    return f"| {' | '.join(cells)} |"


def _wanted(value: float, most: float, unit: str) -> str:
    return f"at most {most:g} {unit}: {'yes' if value <= most else 'no'}"


def over_http(found: dict[str, Any]) -> str:
    about = f"Medians of {found['rounds']} rounds, load {found['load']}:"
    head = [
        "| | " + " | ".join(found["samples"]) + " | no slower than the peer |",
        "| --- " * (len(found["samples"]) + 2) + "|",
    ]
    return "\n".join([about, "", *head, *(_http_row(found["samples"], measure) for measure in _OVER_HTTP)])


def _http_row(samples: dict[str, dict[str, list[float]]], measure: str) -> str:
    words, unit = _OVER_HTTP[measure]
    medians = {way: summary(found[measure]).median for way, found in samples.items()}
    cells = [f"{value:.{1 if value < 100 else 0}f} {unit}" for value in medians.values()]
    return f"| {words} | {' | '.join(cells)} | {'yes' if medians[HTTP] <= medians[PEER] else 'no'} |"
