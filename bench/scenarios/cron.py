"""Cron: ten thousand jobs due in the same minute, from the tick to the arrival of the last."""

from __future__ import annotations

import asyncio
import time

from bench.arena import Arena
from bench.contestants import OURS
from bench.job_input import job_input
from bench.ours.delayed import batch
from bench.ours.stack import OurStack, our_stack
from bench.samples import percentile, thinned
from bench.scenarios.rounds import in_turns
from taskexecutor.v1 import job_pb2 as pb

NAME = "cron"
BATCH = 250
BATCHES_AT_ONCE = 4
TRIED = 250
CAUTION = 1.5
LEAD_SEC = 3.0
FAR_OFF_SEC = 365 * 86_400
PATIENCE_SEC = 60.0


async def run(arena: Arena) -> None:
    """One round: it takes a minute or two, and has ten thousand samples."""
    await in_turns(arena, NAME, [_ours], 1)


async def _ours(arena: Arena, number: int) -> None:
    jobs = arena.plan.cron_jobs
    async with our_stack(arena) as running:
        running.http_endpoint("noted", arena.receiver.noted_url)
        await arena.receiver.arrivals()
        # How long creation takes is tried first: the tick must not come before the last job.
        tried_in = await _create(running, TRIED, time.time() + FAR_OFF_SEC)
        tick = _next_minute(time.time() + LEAD_SEC + CAUTION * jobs * tried_in / TRIED)
        created_in = await _create(running, jobs, tick)
        assert time.time() < tick, f"creating {jobs} cron jobs took {created_in:.0f} s, past the tick"
        await asyncio.sleep(tick - time.time())
        late = sorted((at - tick) * 1000 for at in (await _first(arena, jobs)))
    assert len(late) == jobs, f"{jobs - len(late)} of {jobs} did not fire"
    arena.results.add(
        NAME,
        OURS,
        number,
        p50_ms=percentile(late, 50),
        p99_ms=percentile(late, 99),
        last_out_sec=late[-1] / 1000,
        created_per_sec=jobs / created_in,
    )
    arena.results.series[NAME] = thinned(late)


def _next_minute(after: float) -> float:
    """The first full minute after a time."""
    return (int(after) // 60 + 1) * 60.0


async def _create(running: OurStack, jobs: int, tick: float) -> float:
    """Jobs of every minute, which begin at `tick`. Answers how many seconds it took."""
    begin_at = time.monotonic()
    starts = iter(range(0, jobs, BATCH))

    async def create_some() -> None:
        for begin in starts:
            await batch(running, [_job(n, tick) for n in range(begin, min(begin + BATCH, jobs))])

    await asyncio.gather(*(create_some() for _ in range(BATCHES_AT_ONCE)))
    return time.monotonic() - begin_at


def _job(number: int, tick: float) -> pb.CreateJobRequest:
    job = pb.CreateJobRequest(endpoint="noted", trigger=pb.Job.CRON, cron="* * * * *", timezone="UTC")
    job.input.update(job_input(number))
    job.starts_at.FromSeconds(int(tick))
    return job


async def _first(arena: Arena, wanted: int) -> list[float]:
    """The times of the first `wanted` arrivals, or of those that came in time; the next tick is a minute away."""
    found: list[float] = []
    deadline = time.monotonic() + PATIENCE_SEC
    while len(found) < wanted and time.monotonic() < deadline:
        await asyncio.sleep(0.5)
        found += (await arena.receiver.arrivals()).values()
    return sorted(found)[:wanted]
