"""What the project wants to reach, and whether a run has; information, not a test."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from tests.tools.bench.figures import exponent
from tests.tools.bench.results import Results
from tests.tools.bench.servers import O3, OURS

IMPORT_ASYNCIO = "python -c 'import asyncio'"
LINEAR_BELOW = 1.25  # what is not linear in a framer is quadratic; memory costs more per byte the more of it there is


class Target(NamedTuple):
    """`measured` and `limit` in words; nothing is reached that was not measured."""

    name: str
    measured: str
    limit: str
    is_reached: bool


# What is compared with o3-search-mcp, and the highest ratio that counts as reached.
_RATIOS = (
    ("initialize", "`initialize`", 0.3),
    ("tools_list", "`tools/list`", 0.3),
    ("first_call", "First call at once", 2.75),
    ("warm_p50", "Warm call, p50", 1.0),
    ("warm_p95", "Warm call, p95", 0.7),
    ("cpu_per_call", "CPU per call", 0.9),
    ("burst_200", "200 × 500 ms", 1.05),
    ("memory_200_calls", "Memory after 200 calls", 0.65),
)


def targets(results: Results) -> Iterator[Target]:
    for key, name, limit in _RATIOS:
        yield _ratio(name, results.maybe_median(OURS, key), results.maybe_median(O3, key), limit, O3)
    asyncio_ms = results.maybe_median(IMPORT_ASYNCIO, "run")
    for key, name, _ in _RATIOS[:2]:
        yield _ratio(name, results.maybe_median(OURS, key), asyncio_ms, 1.25, "`import asyncio`")
    yield _idle(results)
    yield _without_loss(results)
    yield from _framer(results.raw["framer"])


def _ratio(name: str, ours: float | None, other: float | None, limit: float, against: str) -> Target:
    wanted = f"at most {limit:g} × {against}"
    if ours is None or not other:
        return Target(name, "not measured", wanted, False)
    return Target(name, f"{ours / other:.2f} ×", wanted, ours / other <= limit)


def _idle(results: Results) -> Target:
    name, wanted = "First call after two idle seconds", "at most the warm latency + 5 ms"
    first, warm = (results.maybe_median(OURS, key) for key in ("first_call_idle", "warm_p50"))
    if first is None or warm is None:
        return Target(name, "not measured", wanted, False)
    return Target(name, f"warm {warm:.1f} ms + {first - warm:.1f} ms", wanted, first <= warm + 5)


def _without_loss(results: Results) -> Target:
    lost = results.lost(OURS, "burst_1000")
    is_measured = bool(results.samples(OURS, "burst_1000_lost"))
    return Target(
        "1,000 × 500 ms", f"{lost} lost" if is_measured else "not measured", "none lost", is_measured and not lost
    )


def _framer(framer: dict[str, Any]) -> Iterator[Target]:
    for framing, found in framer.items():
        bodies = _points(found["bodies"])
        speed = 16 * 1024 * 1024 / 1e6 / found["bodies"]["16"]
        growth = exponent(*zip(*bodies, strict=True))
        yield Target(
            f"Framer, {framing}: 16 MiB in 1 KiB chunks", f"{speed:,.0f} MB/s", "at least 100 MB/s", speed >= 100
        )
        yield Target(
            f"Framer, {framing}: time over size",
            f"exponent {growth:.2f}",
            f"exponent below {LINEAR_BELOW}",
            growth < LINEAR_BELOW,
        )
        for key, how in (("messages", "in 1 KiB chunks"), ("messages_at_once", "in one chunk")):
            messages = _points(found[key])
            growth = exponent(*zip(*messages, strict=True))
            count, seconds = messages[-1]
            measured = f"{seconds:.2f} s, exponent {growth:.2f}"
            yield Target(
                f"Framer, {framing}: {count:,.0f} messages {how}",
                measured,
                f"exponent below {LINEAR_BELOW}",
                growth < LINEAR_BELOW,
            )


def _points(found: dict[str, float]) -> list[tuple[float, float]]:
    return [(float(size), seconds) for size, seconds in found.items()]
