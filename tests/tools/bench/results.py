"""What a run has measured, read back from its JSON, and asked for by server and measure."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tests.tools.bench.measures import is_one_by_one


class Measure(NamedTuple):
    key: str
    label: str
    unit: str
    digits: int = 0

    def show(self, value: float) -> str:
        return f"{value:,.{self.digits}f} {self.unit}"


MEASURES = (
    Measure("initialize", "Spawn → reply to `initialize`", "ms"),
    Measure("tools_list", "Spawn → reply to `tools/list`", "ms"),
    Measure("first_call", "Spawn → reply to a first call at once", "ms"),
    Measure("first_call_idle", "First call after two idle seconds", "ms", 1),
    Measure("cpu_until_quiet", "CPU from start until quiet", "ms"),
    Measure("warm_p50", "Warm call, p50", "ms", 2),
    Measure("warm_p95", "Warm call, p95", "ms", 2),
    Measure("cpu_per_call", "CPU per warm call", "ms", 2),
    Measure("burst_200", "200 calls at once, 500 ms each", "ms"),
    Measure("burst_1000", "1,000 calls at once, 500 ms each", "ms"),
    Measure("memory_start", "Memory after start", "MiB"),
    Measure("memory_200_calls", "Memory after 200 calls", "MiB"),
    Measure("installed", "Installed size", "MB"),
)
BY_KEY = {measure.key: measure for measure in MEASURES}


class Results:
    def __init__(self, raw: dict[str, Any]) -> None:
        self.raw = raw
        self.servers: list[str] = raw["servers"]
        self.problems: dict[str, str] = raw["problems"]

    @classmethod
    def read(cls, file: Path) -> "Results":
        return cls(json.loads(file.read_text()))

    @property
    def rounds(self) -> int:
        return len(self.raw["rounds"])

    def samples(self, name: str, key: str) -> list[float]:
        """One per round in which it was measured; an installed size is measured once."""
        if key == "installed":
            return [self.raw["installed_mb"][name]] if name in self.raw["installed_mb"] else []
        return [samples[name][key] for samples in self.raw["rounds"] if key in samples.get(name, {})]

    def maybe_median(self, name: str, key: str) -> float | None:
        samples = self.samples(name, key)
        return median(samples) if samples else None

    def lost(self, name: str, key: str) -> int:
        """The most calls that went without a reply in one round."""
        return int(max(self.samples(name, f"{key}_lost"), default=0))

    def is_one_by_one(self, name: str) -> bool:
        return any(is_one_by_one(samples.get(name, {})) for samples in self.raw["rounds"])

    def curve(self, name: str, key: str) -> list[tuple[float, float]]:
        """The median of the rounds at every point that each of them reached."""
        rounds: Sequence[dict[str, Any]] = [points[key] for points in self.raw["growth"].get(name, [])]
        shared = [at for at in (rounds[0] if rounds else {}) if all(at in points for points in rounds)]
        return [(float(at), median(points[at] for points in rounds)) for at in shared]
