"""What the benchmark makes of its samples and rounds."""

from __future__ import annotations

from bench.contestants import BATCH, ONE, RAW, best_peer, pgqueuer
from bench.plan import Plan
from bench.results import Results
from bench.samples import percentile, thinned
from bench.targets import verdicts


def results() -> Results:
    """Three rounds of a drain, and one of a creation."""
    found = Results("2026-01-01T00:00:00Z", {"plan": {"pending_timers": [], "waiting_rows": [10], "burst_jobs": 10}})
    for number, (ours, raw, theirs) in enumerate([(900, 1000, 500), (100, 2000, 700), (800, 1000, 600)], 1):
        found.add("drain", ONE, number, per_sec=ours)
        found.add("drain", RAW, number, per_sec=raw)
        found.add("drain", pgqueuer(1), number, per_sec=theirs)
        found.add("drain", "Celery", number, per_sec=50)
    found.add("create", BATCH, 1, per_sec=5_000)
    return found


def test_a_percentile_is_a_sample_that_so_many_do_not_exceed() -> None:
    samples = [float(n) for n in range(1, 1001)]
    assert [percentile(samples, p) for p in (50, 99, 99.9, 100)] == [500, 990, 999, 1000]
    assert percentile([7.0], 99) == 7


def test_a_thinned_distribution_keeps_its_upper_end() -> None:
    samples = [float(n) for n in range(10_000)]
    assert thinned(samples)[-200:] == samples[-200:]
    assert len(thinned(samples)) <= 410


def test_what_is_compared_are_medians() -> None:
    said = {verdict.text: verdict for verdict in verdicts(results())}
    assert said["drain, one dispatcher / raw aiohttp"].measured == 0.8
    assert said["drain, one dispatcher / PgQueuer, one worker"].is_met


def test_a_missed_target_says_by_how_much() -> None:
    (missed,) = [verdict for verdict in verdicts(results()) if verdict.text.startswith("create")]
    assert (missed.is_met, missed.margin_percent) == (False, -50)


def test_ours_is_compared_with_the_best_peer_that_does_the_same() -> None:
    assert best_peer(results(), "drain", ONE, "per_sec") == (pgqueuer(1), 600)
    assert best_peer(results(), "create", BATCH, "per_sec") is None


def test_a_quick_run_has_the_rounds_that_were_asked_for() -> None:
    plan = Plan.from_environment({"BENCH_QUICK": "1", "BENCH_ROUNDS": "2"})
    assert plan.is_quick
    assert plan.rounds == 2
