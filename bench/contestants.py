"""Who is compared with whom, and by which figures."""

from __future__ import annotations

from bench.results import Results

RAW = "raw aiohttp"
STORE = {1: "claim and record alone, 1 connection", 2: "claim and record alone, 2 connections"}
ONE, TWO = "ours, 1 dispatcher", "ours, 2 dispatchers"
MANY, KAFKA, REDIS = "ours, many endpoints", "ours, to Kafka", "ours, to Redis"
ECHO_REST, REST = "echo through the same Envoy, REST", "ours, REST"
ECHO_GRPC, GRPC = "echo through the same Envoy, gRPC", "ours, gRPC"
BATCH = "ours, gRPC in batches"
OURS = "ours"
"""Where we come in one shape only."""

HEADLINES = {
    "drain": ("per_sec", "cpu_ms_per_job"),
    "create": ("per_sec",),
    "latency": ("p50_ms", "p99_ms"),
    "lateness": ("p50_ms", "p99_ms", "p99_9_ms", "last_out_sec"),
    "growth": ("claim_p50_ms", "finalise_p50_ms"),
    "cron": ("p50_ms", "p99_ms", "last_out_sec", "created_per_sec"),
    "noisy-neighbour": ("p50_ms", "p99_ms", "missing"),
    "idle": ("queries_per_sec", "cpu_percent"),
    "tuning": ("per_sec", "cpu_ms_per_job"),
}
"""The figures that are shown; the results file has all."""

PEERS = ("PgQueuer", "Procrastinate", "Celery")
CEILINGS: dict[str, dict[str | None, str]] = {
    "drain": {None: RAW},
    "create": {REST: ECHO_REST, GRPC: ECHO_GRPC},
}
# Peers that do the same thing: as many workers, or jobs made in the same way.
ALIKE: dict[tuple[str, str | None], tuple[str, ...]] = {
    ("drain", TWO): ("2 workers",),
    ("drain", None): ("1 worker", "Procrastinate", "Celery"),
    ("create", BATCH): ("batches",),
    ("create", None): ("one by one",),
    ("latency", None): ("",),
    ("lateness", None): (),
}


def late(pending: int, load: str) -> str:
    """Ours with so many timers pending, under a `steady` load or a `burst`."""
    return f"ours, {pending:,} pending, {load}"


def grown(waiting: int, statistics: str) -> str:
    """Ours with so many executions waiting, the planner's statistics `stale` or `fresh`."""
    return f"{waiting:,} waiting, statistics {statistics}"


def pgqueuer(workers: int) -> str:
    """PgQueuer with one worker or more."""
    return f"PgQueuer, {workers} worker{'s' if workers > 1 else ''}"


def is_peer(contestant: str) -> bool:
    """Whether it is another system, neither ours nor a ceiling."""
    return contestant.startswith(PEERS)


def is_ours(contestant: str) -> bool:
    """Whether it is this system."""
    return contestant.startswith("ours")


def is_higher_better(figure: str) -> bool:
    """Rates are; times, costs and sizes are not."""
    return figure.endswith("per_sec") and not figure.startswith("queries")


def ceiling_of(scenario: str, contestant: str) -> str | None:
    """The ceiling that a contestant works under."""
    known = CEILINGS.get(scenario, {})
    ceiling = known.get(contestant, known.get(None))
    return None if ceiling == contestant else ceiling


def best_peer(results: Results, scenario: str, contestant: str, figure: str) -> tuple[str, float] | None:
    """The best of the peers that did the same as one of our contestants, with its median; None where none did."""
    words = ALIKE.get((scenario, contestant), ALIKE.get((scenario, None)))
    if words is None or not is_ours(contestant):
        return None
    if scenario == "lateness":  # with as many timers pending, under the same load
        words = (contestant.removeprefix("ours, "),)
    medians = {
        name: median
        for name in results.contestants(scenario)
        if is_peer(name) and any(word in name for word in words)
        if (median := results.median(scenario, name, figure)) is not None
    }
    if not medians:
        return None
    pick = max if is_higher_better(figure) else min
    name = pick(medians, key=lambda each: medians[each])
    return name, medians[name]
