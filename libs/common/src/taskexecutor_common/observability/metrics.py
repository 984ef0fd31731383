"""The Prometheus metrics of all services, in one place so that names and labels stay one family.

Times are in seconds. Labels are bounded: names of statements, loops, outcomes and endpoint types, never ids.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter as Tally
from collections.abc import Collection

from prometheus_client import Counter, Gauge, Histogram

_FAST = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60)
_SIZES = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

RPCS = Counter("taskexecutor_rpcs_total", "Calls answered, by method and gRPC status.", ["method", "status"])
RPC_SECONDS = Histogram("taskexecutor_rpc_seconds", "Time to answer a call.", ["method"], buckets=_FAST)

STORE_RETRIES = Counter(
    "taskexecutor_store_retries_total",
    "Statements run again, by name and SQLSTATE (or `lost`).",
    ["statement", "reason"],
)
POOL_WAIT = Histogram("taskexecutor_pool_wait_seconds", "Wait for a database connection.", buckets=_FAST)

JOBS_CREATED = Counter("taskexecutor_jobs_created_total", "Jobs created, by trigger.", ["trigger"])
JOBS_DEDUPLICATED = Counter("taskexecutor_jobs_deduplicated_total", "Creations that found an existing job.")
CREATE_BATCH = Histogram("taskexecutor_create_batch_size", "Jobs written by one statement.", buckets=_SIZES)

CLAIMED = Counter("taskexecutor_executions_claimed_total", "Executions claimed.")
CLAIM_BATCH = Histogram("taskexecutor_claim_batch_size", "Executions claimed by one statement.", buckets=_SIZES)
CLAIM_SECONDS = Histogram("taskexecutor_claim_seconds", "Time of one claim statement.", buckets=_FAST)
LATENESS = Histogram(
    "taskexecutor_lateness_seconds",
    "Begun at minus due at, by the database's clock; first attempts only.",
    buckets=_FAST,
)
QUEUE_WAIT = Histogram("taskexecutor_queue_wait_seconds", "Claimed at minus ready at.", buckets=_FAST)
QUEUES_WAITING = Gauge("taskexecutor_queues_waiting", "Queues with work, at this dispatcher's last look.")
QUEUES_HELD_BACK = Gauge(
    "taskexecutor_queues_held_back",
    "Queues with work whose endpoint is paused, at a limit or closed, at the last look.",
)
IN_FLIGHT = Gauge("taskexecutor_deliveries_in_flight", "Deliveries running now.")
SLOTS = Gauge("taskexecutor_delivery_slots", "Deliveries that may run at once.")
ATTEMPTS = Counter(
    "taskexecutor_attempts_total",
    "Attempts ended, by endpoint type and outcome (SUCCESS or the error type).",
    ["endpoint_type", "outcome"],
)
ATTEMPT_SECONDS = Histogram("taskexecutor_attempt_seconds", "Time of one delivery.", ["endpoint_type"], buckets=_FAST)
EXECUTIONS_ENDED = Counter(
    "taskexecutor_executions_ended_total", "Executions that left RUNNING, by next status.", ["status"]
)
FINALISE_BATCH = Histogram("taskexecutor_finalise_batch_size", "Outcomes written by one statement.", buckets=_SIZES)
FINALISE_SECONDS = Histogram("taskexecutor_finalise_seconds", "Time of one finalise statement.", buckets=_FAST)
CLAIMS_LOST = Counter(
    "taskexecutor_claims_lost_total", "Outcomes refused because the claim had passed to another worker."
)

TIMERS_PROMOTED = Counter("taskexecutor_timers_promoted_total", "Timers moved to the ready queue.")
CRON_TICKS = Counter("taskexecutor_cron_ticks_total", "Cron ticks handled, by what became of them.", ["result"])
RECLAIMED = Counter("taskexecutor_executions_reclaimed_total", "Executions taken back, by next status.", ["status"])
INSTANCES_BURIED = Counter(
    "taskexecutor_instances_declared_dead_total", "Instances that missed their beats.", ["component"]
)

PRUNED = Counter("taskexecutor_executions_pruned_total", "Finished executions forgotten after their retention.")

CLOCK_SKEW = Gauge("taskexecutor_clock_skew_seconds", "This process's clock minus the database's.")
HEALTHY = Gauge("taskexecutor_healthy", "1 while this process calls itself healthy.")

HINTS = Counter("taskexecutor_hints_total", "Hints to other services, by target and result.", ["target", "result"])
LOOP_RUNS = Counter("taskexecutor_loop_runs_total", "Runs of background loops, by result.", ["loop", "result"])
LOOP_LAST_RUN = Gauge(
    "taskexecutor_loop_last_run_timestamp_seconds", "When a loop last ended a good run, or else started.", ["loop"]
)
LOOP_INTERVAL = Gauge(
    "taskexecutor_loop_interval_seconds", "The longest that a loop sleeps between two runs.", ["loop"]
)


def observe_all(histogram: Histogram, values: Collection[float]) -> None:
    """`histogram.observe` for each of the values, at a fifth of its cost: each bucket is counted up once.

    prometheus_client offers nothing of the kind, so this reaches into it; a test holds that both count the same.
    """
    tally = Tally(bisect_left(histogram._upper_bounds, value) for value in values)
    for bucket, count in tally.items():
        histogram._buckets[bucket].inc(count)
    histogram._sum.inc(sum(values))
