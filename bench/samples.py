"""Percentiles of samples."""

from __future__ import annotations

from collections.abc import Sequence

POINTS = 400  # of a distribution kept for its picture


def percentile(ordered: Sequence[float], percent: float) -> float:
    """The smallest sample that at least `percent` of all do not exceed (nearest rank). `ordered` is sorted, not empty."""
    rank = max(1, -(-len(ordered) * percent // 100))
    return ordered[int(rank) - 1]


def thinned(ordered: Sequence[float]) -> list[float]:
    """About POINTS of the sorted samples, the whole upper end among them: that is where the picture is looked at."""
    tail = ordered[-POINTS // 2 :]
    body = ordered[: -POINTS // 2]
    step = max(1, len(body) // (POINTS // 2))
    return [*body[::step], *tail]
