"""Counting many values at once."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st
from prometheus_client import CollectorRegistry, Histogram
from prometheus_client.exposition import generate_latest

from taskexecutor_common.observability.metrics import observe_all

BUCKETS = (0.5, 1, 2.5)


@given(st.lists(st.integers(min_value=0, max_value=30).map(lambda tenths: tenths / 8), max_size=20))
def test_values_observed_together_count_like_values_observed_one_by_one(values: list[float]) -> None:
    together, one_by_one = CollectorRegistry(), CollectorRegistry()
    observe_all(Histogram("seconds", "help", buckets=BUCKETS, registry=together), values)
    histogram = Histogram("seconds", "help", buckets=BUCKETS, registry=one_by_one)
    for value in values:
        histogram.observe(value)
    assert without_times(together) == without_times(one_by_one)


def without_times(registry: CollectorRegistry) -> list[str]:
    return [line for line in generate_latest(registry).decode().splitlines() if "_created" not in line]
