"""Numbers out of samples: medians, percentiles, and how fast something grows."""

import math
import statistics
from collections.abc import Sequence
from typing import NamedTuple


class Summary(NamedTuple):
    median: float
    spread: float  # between the quartiles


def summary(samples: Sequence[float]) -> Summary:
    spread = percentile(samples, 0.75) - percentile(samples, 0.25)
    return Summary(statistics.median(samples), spread)


def percentile(samples: Sequence[float], share: float) -> float:
    """Between the two nearest samples when it falls between them."""
    ordered = sorted(samples)
    position = share * (len(ordered) - 1)
    below = ordered[math.floor(position)]
    return below + (ordered[math.ceil(position)] - below) * (position % 1)


def exponent(sizes: Sequence[float], costs: Sequence[float]) -> float:
    """The k of cost ~ size ** k that fits best: 0 is constant, 1 linear, 2 quadratic."""
    xs, ys = [math.log(size) for size in sizes], [math.log(max(cost, 1e-9)) for cost in costs]
    return statistics.linear_regression(xs, ys).slope


def growth_in_words(power: float) -> str:
    if power < 0.2:
        return "hardly grows"
    if power < 0.85:
        return "grows less than linearly"
    return "grows linearly" if power <= 1.15 else "grows faster than linearly"
