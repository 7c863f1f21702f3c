"""Pictures without a plotting library: bars for the table, lines for the growth. Readable on light and dark pages."""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple
from xml.sax.saxutils import escape

COLOURS = (("#0969da", "#58a6ff"), ("#bc4c00", "#f0883e"), ("#6e7781", "#8b949e"), ("#8250df", "#bc8cff"))

_STYLE = (
    "text{font:13px system-ui,sans-serif;fill:#1f2328}.h{font-weight:600}.s{font-size:11px;fill:#59636e}"
    ".page{fill:#fff}.grid{stroke:#d1d9e0;fill:none}"
    + "".join(f".f{n}{{fill:{light}}}.l{n}{{stroke:{light};fill:none}}" for n, (light, _) in enumerate(COLOURS))
    + "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.s{fill:#9198a1}.page{fill:#0d1117}.grid{stroke:#3d444d}"
    + "".join(f".f{n}{{fill:{dark}}}.l{n}{{stroke:{dark}}}" for n, (_, dark) in enumerate(COLOURS))
    + "}"
)


class Bar(NamedTuple):
    """Without a value there is no bar, only the label."""

    value: float | None
    label: str


class Panel(NamedTuple):
    title: str
    bars: Sequence[Bar]


class Chart(NamedTuple):
    title: str
    across: str
    lines: Sequence[Sequence[tuple[float, float]]]
    show: Callable[[float], str]


def bars(title: str, names: Sequence[str], panels: Sequence[Panel]) -> str:
    """One panel per measure, two abreast, each with its own scale from zero."""
    width, row, gap = 860, 20, 24
    panel_width, panel_height = (width - 3 * gap) // 2, 26 + row * len(names) + 12
    parts = [_legend(names, gap, 46)]
    for number, panel in enumerate(panels):
        x, y = gap + number % 2 * (panel_width + gap), 76 + number // 2 * panel_height
        parts.append(_text(x, y + 12, panel.title, "h"))
        longest = max((bar.value for bar in panel.bars if bar.value is not None), default=0) or 1.0
        for line, bar in enumerate(panel.bars):
            top = y + 22 + line * row
            length = 0.0 if bar.value is None else max(1.0, bar.value / longest * (panel_width - 130))
            parts.append(f'<rect class="f{line}" x="{x}" y="{top}" width="{length:.1f}" height="{row - 6}" rx="2"/>')
            parts.append(_text(x + length + 6, top + 11, bar.label, "s"))
    return _page(title, width, 76 + math.ceil(len(panels) / 2) * panel_height + 8, parts)


def charts(title: str, names: Sequence[str], panels: Sequence[Chart]) -> str:
    """One chart per panel, two abreast, both axes logarithmic: a straight line is a power of what is across."""
    width, gap, height = 860, 24, 270
    parts = [_legend(names, gap, 46)]
    for number, chart in enumerate(panels):
        x, y = gap + number % 2 * ((width - gap) // 2), 76 + number // 2 * height
        parts += _chart(chart, x, y, (width - 3 * gap) // 2, height - 40)
    return _page(title, width, 76 + math.ceil(len(panels) / 2) * height, parts)


def _chart(chart: Chart, x: float, y: float, width: float, height: float) -> list[str]:
    points = [point for line in chart.lines for point in line]
    parts = [_text(x, y + 12, chart.title, "h")]
    if not points:
        return [*parts, _text(x, y + 40, "not measured", "s")]
    left, right, top, bottom = x + 62, x + width - 10, y + 26, y + height - 34
    at_x = _scale([px for px, _ in points], left, right)
    at_y = _scale([py for _, py in points], bottom, top)
    for tick in _ticks([py for _, py in points]):
        parts.append(f'<path class="grid" d="M{left:.0f} {at_y(tick):.1f}H{right:.0f}"/>')
        parts.append(_text(left - 6, at_y(tick) + 4, chart.show(tick), "s", anchor="end"))
    ticks = _ticks([px for px, _ in points])
    parts += [_text(at_x(tick), bottom + 16, f"{tick:,.0f}", "s", anchor="middle") for tick in ticks]
    parts.append(_text((left + right) / 2, bottom + 32, chart.across, "s", anchor="middle"))
    for number, line in enumerate(chart.lines):
        corners = " ".join(f"{at_x(px):.1f},{at_y(py):.1f}" for px, py in line)
        parts.append(f'<polyline class="l{number}" stroke-width="2" points="{corners}"/>')
        parts += [f'<circle class="f{number}" cx="{at_x(px):.1f}" cy="{at_y(py):.1f}" r="3"/>' for px, py in line]
    return parts


def _scale(values: Sequence[float], start: float, end: float) -> Callable[[float], float]:
    """From a value to its place, logarithmically, with the ticks inside."""
    ticks = _ticks(values)
    lowest, highest = math.log10(min(*values, *ticks)), math.log10(max(*values, *ticks))
    return lambda value: start + (math.log10(value) - lowest) / ((highest - lowest) or 1) * (end - start)


def _ticks(values: Sequence[float]) -> list[float]:
    """Powers of ten around the values; where those are too few, doublings."""
    first, last = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    if max(values) / min(values) > 30:
        return [10.0**power for power in range(first, last + 1)]
    tick, ticks = 2.0 ** math.floor(math.log2(min(values))), []
    while tick < max(values) * 2:
        ticks.append(tick)
        tick *= 2
    return ticks


def _legend(names: Sequence[str], x: float, y: float) -> str:
    parts = []
    for number, name in enumerate(names):
        parts.append(f'<rect class="f{number}" x="{x}" y="{y}" width="12" height="12" rx="2"/>')
        parts.append(_text(x + 18, y + 11, name))
        x += 40 + 7.5 * len(name)
    return "".join(parts)


def _text(x: float, y: float, content: str, kind: str = "", anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(content)}</text>'


def _page(title: str, width: int, height: int, parts: Sequence[str]) -> str:
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" role="img">'
    heading = f'<text x="24" y="28" class="h" style="font-size:16px">{escape(title)}</text>'
    page = f'<rect class="page" width="{width}" height="{height}"/>'
    head = f"{opening}\n<title>{escape(title)}</title>\n<style>{_STYLE}</style>\n{page}\n{heading}\n"
    return head + "\n".join(parts) + "\n</svg>\n"
