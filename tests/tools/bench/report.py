"""From the results to what people read: tables on stdout, and the same with the pictures between the marks in `docs`."""

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.tools.bench import svg, tables
from tests.tools.bench.figures import exponent, growth_in_words
from tests.tools.bench.results import BY_KEY, MEASURES, Measure, Results
from tests.tools.bench.servers import OURS
from tests.tools.bench.targets import targets
from tests.tools.docs.regions import replaced

ROUNDS_WANTED = 10

_FLOORS = (("python -c pass", "run"), ("python -c 'import asyncio'", "run"), ("node -e 0", "run"))
_DRAWN = (
    "initialize", "first_call", "first_call_idle", "warm_p50", "warm_p95", "cpu_per_call", "burst_200",
    "burst_1000", "memory_200_calls", "installed",
)  # fmt: skip
_GROWS_FROM = {"flight": 30, "size": 64}


def write(file: Path, docs: Path, *, updates_docs: bool) -> None:
    results = Results.read(file)
    sys.stdout.write(as_text(results) + "\n")
    if not updates_docs:
        return
    page = docs / "reference" / "figures.md"
    text = replaced(page.read_text(), "bench", f"\n{as_text(results)}\n\n")
    more = {"guarded": tables.guarded_run, "guard": tables.guarded_server, "http": tables.over_http}
    for name, as_table in more.items():
        if name in results.raw:
            text = replaced(text, f"bench:{name}", f"\n{as_table(results.raw[name])}\n\n")
    page.write_text(text)
    (docs / "benchmarks.svg").write_text(bar_picture(results))
    (docs / "benchmarks-growth.svg").write_text(growth_picture(results))


def as_text(results: Results) -> str:
    return "\n\n".join(
        [
            _about(results),
            _comparison(results),
            *(f"{name}: {problem}." for name, problem in results.problems.items()),
            "Floors (median):",
            _floors(results),
            "What is to be reached:",
            _targets(results),
            "How the cost grows:",
            _growth(results),
        ]
    )


def _about(results: Results) -> str:
    machine = results.raw["machine"]
    return (
        f"Measured on {results.raw['date']}: {results.rounds} rounds in {results.raw['seconds']} s on {machine['cores']} cores"
        f" ({machine['system']}, load {machine['load']}), Python {machine['python']}, Node {machine['node']}."
        f" Medians; in brackets {OURS} ÷ the peer, so less than 1 means that {OURS} needs less.{_doubts(results)}"
    )


def _doubts(results: Results) -> str:
    """What a reader must know before trusting a figure."""
    machine, doubts = results.raw["machine"], ""
    if results.rounds < ROUNDS_WANTED:
        doubts += f" **Fewer than {ROUNDS_WANTED} rounds.**"
    if machine["load"] > machine["cores"]:
        doubts += (
            " **Others were using the machine: its load was above the number of its cores. The figures are rough.**"
        )
    return doubts


def _comparison(results: Results) -> str:
    rows = [[measure.label, *(_cell(results, name, measure) for name in results.servers)] for measure in MEASURES]
    return table(["", *results.servers], rows)


def _cell(results: Results, name: str, measure: Measure) -> str:
    median, ours = results.maybe_median(name, measure.key), results.maybe_median(OURS, measure.key)
    if median is None:
        return _without_value(results, name, measure)
    ratio = f" ({ours / median:.2f})" if ours is not None and name != OURS else ""
    return measure.show(median) + ratio


def _without_value(results: Results, name: str, measure: Measure) -> str:
    if not measure.key.startswith("burst"):
        return "—"
    if results.is_one_by_one(name):
        return "one after another"
    return f"{results.lost(name, measure.key)} lost"


def _floors(results: Results) -> str:
    milliseconds = Measure("", "", "ms", 2)
    names = [*_FLOORS, ("bare HTTP request", "warm_p50")]
    found = [(name, results.maybe_median(name, key)) for name, key in names]
    module = results.maybe_median(OURS, "initialize_module")
    found.append(("initialize, started as python -m openai_responses_mcp", module))
    return table(["", "time"], [[f"`{name}`", milliseconds.show(ms)] for name, ms in found if ms is not None])


def _targets(results: Results) -> str:
    rows = [[t.name, t.measured, t.limit, "yes" if t.is_reached else "no"] for t in targets(results)]
    return table(["", "measured", "wanted", "reached"], rows)


def _growth(results: Results) -> str:
    lines = []
    for name in results.servers:
        lines += [
            _flight_in_words(name, results.curve(name, "flight_ms"), results.curve(name, "flight_mib")),
            _size_in_words(name, results.curve(name, "size_ms"), results.curve(name, "size_mib")),
        ]
    return "\n".join(f"- {line}" for line in lines if line)


_Curve = Sequence[tuple[float, float]]


def _flight_in_words(name: str, times: _Curve, memory: _Curve) -> str:
    if len(times) < 2 or times[-1][0] < 100:
        return f"{name} answers calls one after another: n calls of 500 ms take n × 500 ms." if times else ""
    return (
        f"{name}, calls in flight: from 1 to {times[-1][0]:,.0f} the time beyond the answer's own 500 ms goes from"
        f" {times[0][1]:,.0f} to {times[-1][1]:,.0f} ms, {_slope(times):.2f} ms for each further call, and"
        f" {_words(times, 'flight')}; the peak of its memory goes from {memory[0][1]:,.0f} to {memory[-1][1]:,.0f} MiB,"
        f" {_slope(memory) * 1024:,.0f} KiB for each further call."
    )


def _size_in_words(name: str, times: _Curve, memory: _Curve) -> str:
    if len(times) < 2:
        return ""
    return (
        f"{name}, answer size: from {times[0][0]:,.0f} to {times[-1][0]:,.0f} KB a call goes from {times[0][1]:,.1f} to"
        f" {times[-1][1]:,.1f} ms, {_slope(times) * 1000:.1f} ms for each further MB, and {_words(times, 'size')};"
        f" the peak of its memory goes from {memory[0][1]:,.0f} to {memory[-1][1]:,.0f} MiB,"
        f" {_slope(memory) * 1000:.1f} MiB for each further MB."
    )


def _slope(curve: _Curve) -> float:
    (first, low), (last, high) = curve[0], curve[-1]
    return (high - low) / (last - first)


def _words(curve: _Curve, kind: str) -> str:
    """Of the part where the cost of the calls or bytes outweighs what any call costs."""
    start = _GROWS_FROM[kind]
    power = exponent(*zip(*(point for point in curve if point[0] >= start), strict=True))
    return f"{growth_in_words(power)} from {start} on (exponent {power:.2f})"


def bar_picture(results: Results) -> str:
    panels = [
        svg.Panel(BY_KEY[key].label.replace("`", ""), [_bar(results, name, BY_KEY[key]) for name in results.servers])
        for key in _DRAWN
    ]
    return svg.bars("Shorter is better", results.servers, panels)


def _bar(results: Results, name: str, measure: Measure) -> svg.Bar:
    median = results.maybe_median(name, measure.key)
    return svg.Bar(median, _cell(results, name, measure) if median is None else measure.show(median))


def growth_picture(results: Results) -> str:
    wanted = (
        ("flight_ms", "Time beyond the answer's own 500 ms", "calls in flight", "ms"),
        ("flight_mib", "Peak memory", "calls in flight", "MiB"),
        ("size_ms", "Time of one call", "answer size in KB", "ms"),
        ("size_mib", "Peak memory", "answer size in KB", "MiB"),
    )
    panels = [_chart(results, *words) for words in wanted]
    return svg.charts("How the cost grows (both axes logarithmic)", results.servers, panels)


def _chart(results: Results, key: str, title: str, across: str, unit: str) -> svg.Chart:
    lines = [[(at, value) for at, value in results.curve(name, key) if value > 0] for name in results.servers]
    return svg.Chart(title, across, lines, lambda value: f"{value:,g} {unit}")


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Padded, so that it reads well as it is and as Markdown."""
    widths = [max(map(len, column)) for column in zip(head, *rows, strict=True)]
    lines = [head, ["-" * width for width in widths], *rows]
    return "\n".join(f"| {' | '.join(map(str.ljust, line, widths))} |" for line in lines)
