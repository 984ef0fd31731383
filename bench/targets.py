"""What was to be reached, and by how much it was or was not."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator

from bench.contestants import BATCH, ECHO_REST, ONE, OURS, RAW, REST, TWO, grown, late, pgqueuer
from bench.results import Results

BURST_SLACK_SEC = 0.5


@dataclasses.dataclass(frozen=True)
class Verdict:
    """One target and what was measured."""

    text: str
    wanted: float
    measured: float
    unit: str
    at_least: bool
    """True: more is better; False: less."""
    aim: float | None = None
    """What was aimed at beyond the target."""

    @property
    def is_met(self) -> bool:
        """Whether the target was reached."""
        return self.measured >= self.wanted if self.at_least else self.measured <= self.wanted

    @property
    def margin_percent(self) -> float:
        """By how much better (or, negative, worse) it is than wanted, in percent of what was wanted."""
        difference = self.measured - self.wanted if self.at_least else self.wanted - self.measured
        return difference * 100 / self.wanted


def verdicts(results: Results) -> list[Verdict]:
    """All targets that something was measured for."""
    return [*_drain(results), *_create(results), *_times(results), *_growth(results), *_idle(results)]


def _drain(results: Results) -> Iterator[Verdict]:
    rate = {name: results.median("drain", name, "per_sec") for name in (ONE, TWO, RAW, pgqueuer(1), pgqueuer(2))}
    one, raw, rival = rate[ONE], rate[RAW], rate[pgqueuer(1)]
    if one and raw:
        yield Verdict("drain, one dispatcher / raw aiohttp", 0.70, one / raw, "×", True, aim=1.0)
    if one and rival:
        yield Verdict("drain, one dispatcher / PgQueuer, one worker", 1.2, one / rival, "×", True, aim=1.5)
    ours = max(rate[ONE] or 0, rate[TWO] or 0)
    theirs = max(rate[pgqueuer(1)] or 0, rate[pgqueuer(2)] or 0)
    if ours and theirs:
        yield Verdict("drain, each at its best / PgQueuer", 1.1, ours / theirs, "×", True, aim=1.5)


def _create(results: Results) -> Iterator[Verdict]:
    rest = results.median("create", REST, "per_sec")
    echo = results.median("create", ECHO_REST, "per_sec")
    if rest and echo:
        yield Verdict("create over REST / echo through the same Envoy", 0.35, rest / echo, "×", True)
    if batch := results.median("create", BATCH, "per_sec"):
        yield Verdict("create over gRPC in batches", 10_000, batch, "per s", True, aim=20_000)


def _times(results: Results) -> Iterator[Verdict]:
    for figure, wanted, aim in (("p50_ms", 8.0, 4.0), ("p99_ms", 20.0, 9.0)):
        if (measured := results.median("latency", REST, figure)) is not None:
            yield Verdict(f"latency over REST, idle, {figure.removesuffix('_ms')}", wanted, measured, "ms", False, aim)
    for pending, wanted, aimed in ((10_000, 10.0, 5.0), (1_000_000, 20.0, None)):
        if (measured := results.median("lateness", late(pending, "steady"), "p99_ms")) is not None:
            yield Verdict(f"lateness p99, {pending:,} pending, steady", wanted, measured, "ms", False, aimed)
    rate = results.median("drain", ONE, "per_sec")
    jobs = results.facts["plan"]["burst_jobs"]
    for pending in results.facts["plan"]["pending_timers"]:
        measured = results.median("lateness", late(pending, "burst"), "last_out_sec")
        if measured is not None and rate:
            text = f"burst of {jobs:,} in a second, {pending:,} pending, last one out"
            yield Verdict(text, jobs / rate + BURST_SLACK_SEC, measured, "s", False)
    if (measured := results.median("noisy-neighbour", OURS, "p99_ms")) is not None:
        yield Verdict("noisy neighbour, lateness p99 of the fast endpoint", 200.0, measured, "ms", False)


def _growth(results: Results) -> Iterator[Verdict]:
    sizes = results.facts["plan"]["waiting_rows"]
    few = results.median("growth", grown(sizes[0], "stale"), "claim_p50_ms")
    for size in sizes[1:]:
        many = results.median("growth", grown(size, "stale"), "claim_p50_ms")
        if few and many:
            text = f"claim with {size:,} waiting / with {sizes[0]:,}, statistics stale"
            yield Verdict(text, 1.3, many / few, "×", False)


def _idle(results: Results) -> Iterator[Verdict]:
    if (queries := results.median("idle", OURS, "queries_per_sec")) is not None:
        yield Verdict("idle, queries in all", 10.0, queries, "per s", False)
    if (cpu := results.median("idle", OURS, "cpu_percent")) is not None:
        yield Verdict("idle, CPU in all", 3.0, cpu, "% of a core", False)
    for service in ("api", "scheduler", "dispatcher"):
        if (memory := results.median("idle", OURS, f"memory_mb_{service}")) is not None:
            yield Verdict(f"idle, resident memory of the {service}", 120.0, memory, "MB", False)
