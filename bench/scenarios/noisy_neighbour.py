"""Noisy neighbour: five thousand jobs to an endpoint that answers after ten seconds, beside a thousand to a fast one."""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from bench.arena import Arena
from bench.arrivals import arrivals_of
from bench.children import child
from bench.contestants import OURS
from bench.ours.delayed import create_delayed
from bench.ours.stack import our_stack
from bench.ours.staging import our_jobs
from bench.receivers import slow
from bench.samples import percentile, thinned
from bench.scenarios.rounds import in_turns
from taskexecutor_local.ports import LOOPBACK

NAME = "noisy-neighbour"
MAX_IN_FLIGHT = 50
LIMITED = f"ours, slow endpoint limited to {MAX_IN_FLIGHT} in flight"
SPREAD_SEC = 10.0  # over which the fast jobs fall due
HEAD_START_SEC = 3.0  # in which the slow ones take what they can get
PATIENCE_SEC = 15.0
QUICK_STOP = "1"  # seconds: what is in flight to the slow receiver is not waited for


async def run(arena: Arena) -> None:
    """Once: a thousand samples each."""
    await in_turns(arena, NAME, [_unlimited, _limited], 1)


async def _unlimited(arena: Arena, number: int) -> None:
    """Nothing is set on the slow endpoint: fairness is all that protects its neighbour."""
    await _measure(arena, OURS, number)


async def _limited(arena: Arena, number: int) -> None:
    """What an operator would set who knows the receiver."""
    await _measure(arena, LIMITED, number, flow_control={"max_in_flight": MAX_IN_FLIGHT})


async def _measure(arena: Arena, name: str, number: int, **limits: Any) -> None:
    command = [sys.executable, "-m", slow.__name__, str(arena.plan.slow_answer_sec)]
    async with (
        our_stack(arena, TE_SHUTDOWN_TIMEOUT_SEC=QUICK_STOP) as running,
        child("slow receiver", command, arena.log("slow"), os.environ) as receiver,
    ):
        port = (await receiver.answer())["port"]
        running.http_endpoint("slow", f"http://{LOOPBACK}:{port}/", **limits)
        running.http_endpoint("fast", arena.receiver.noted_url)
        async with our_jobs("slow ones", running, ["slow"]) as jobs:
            await jobs.stage(arena.plan.slow_jobs)
            await jobs.release()
            count = arena.plan.fast_jobs
            begin = time.time() + HEAD_START_SEC
            due = await create_delayed(running, "fast", [begin + n * SPREAD_SEC / count for n in range(count)])
            arrived = await arrivals_of(arena, due, PATIENCE_SEC)
            gave_up_at = time.time()
    # What never came counts with the time at which it was given up: it is later than that.
    late = sorted((arrived.get(key, gave_up_at) - at) * 1000 for key, at in due.items())
    arena.results.add(
        NAME,
        name,
        number,
        p50_ms=percentile(late, 50),
        p99_ms=percentile(late, 99),
        max_ms=late[-1],
        missing=len(due.keys() - arrived.keys()),
    )
    arena.results.series[f"{NAME}: {name}"] = thinned(late)
