"""How much is measured: the full run, a quick one that only shows that everything works, or one with ten million rows."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from typing import Any, Self


@dataclasses.dataclass(frozen=True)
class Plan:
    """Sizes of all scenarios; the defaults are those of a full run."""

    rounds: int = 3
    """How often each contestant is measured, in turns."""
    drain_jobs: int = 20_000
    slow_peer_jobs: int = 3_000
    """For peers that would take half a minute over `drain_jobs`; their rate is what is compared."""
    many_endpoints: int = 200
    create_seconds: float = 5.0
    batch_jobs: int = 40_000
    latency_samples: int = 300
    steady_seconds: float = 30.0
    peer_steady_seconds: float = 15.0
    steady_rate: int = 200
    burst_jobs: int = 10_000
    pending_timers: tuple[int, ...] = (10_000, 1_000_000)
    waiting_rows: tuple[int, ...] = (10_000, 1_000_000)
    growth_batches: int = 60
    cron_jobs: int = 10_000
    slow_jobs: int = 5_000
    fast_jobs: int = 1_000
    slow_answer_sec: float = 10.0
    idle_seconds: float = 30.0
    kind: str = "whole"
    is_quick: bool = False

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] = os.environ) -> Self:
        """BENCH_QUICK=1 makes everything small, BENCH_FULL=1 adds ten million rows, BENCH_ROUNDS sets the rounds."""
        plan = cls()
        if environment.get("BENCH_QUICK"):
            plan = dataclasses.replace(plan, **QUICK)
        if environment.get("BENCH_FULL"):
            plan = dataclasses.replace(
                plan, waiting_rows=(*plan.waiting_rows, 10_000_000), kind="whole, ten million rows"
            )
        if rounds := environment.get("BENCH_ROUNDS"):
            plan = dataclasses.replace(plan, rounds=int(rounds))
        return plan


QUICK: dict[str, Any] = {
    "rounds": 1,
    "drain_jobs": 1_000,
    "slow_peer_jobs": 300,
    "many_endpoints": 20,
    "create_seconds": 1.0,
    "batch_jobs": 4_000,
    "latency_samples": 30,
    "steady_seconds": 3.0,
    "peer_steady_seconds": 3.0,
    "burst_jobs": 500,
    "pending_timers": (1_000, 10_000),
    "waiting_rows": (1_000, 10_000),
    "growth_batches": 10,
    "cron_jobs": 300,
    "slow_jobs": 300,
    "fast_jobs": 100,
    "slow_answer_sec": 3.0,
    "idle_seconds": 5.0,
    "kind": "quick: shows that the program works, measures nothing",
    "is_quick": True,
}
