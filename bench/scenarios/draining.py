"""One drain: jobs are released at once to idle workers, and the clock stops when all are recorded as done."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from bench.arena import Arena
from bench.contestant import Contestant
from bench.cpu import CpuMeter
from bench.results import Figures
from bench.waiting import until

SETTLE_SEC = 0.5  # lets what the staging stirred up pass
ARRIVAL_POLL_SEC = 0.02
DONE_POLL_SEC = 0.005
LEAST_SEC = 20.0
SLOWEST_PER_SEC = 40.0  # a contestant below that is given up
WARM_UP = 500  # opens connections, fills caches, prepares statements: a worker that has just started is nobody's case

Count = Callable[[], Awaitable[int]]


async def drain(arena: Arena, contestant: Contestant, count: int, arrived: Count | None = None) -> Figures:
    """Figures of one drain of `count` jobs. `arrived` counts deliveries cheaply, by default at the receiver.

    The record of what is done is asked for only after the last delivery has arrived, so that the questions cost the
    contestant nothing. Raises NotInTime.
    """
    arrived = arrived or arena.receiver.count
    await contestant.stage(min(WARM_UP, count))
    await _finish(contestant, arrived, min(WARM_UP, count))
    # Before the jobs are written, not between them and their delivery: that would make every page they lie in be logged whole.
    await arena.postgres.checkpoint()
    await contestant.stage(count)
    await asyncio.sleep(SETTLE_SEC)
    meter = CpuMeter({**contestant.pids, "postgres": arena.postgres.pid, "nginx": arena.receiver.pid})
    elapsed = await _finish(contestant, arrived, count)
    cpu = meter.read()
    return {
        "per_sec": count / elapsed,
        "sec": elapsed,
        "cpu_ms_per_job": sum(cpu.values()) * 1000 / count,
        **{f"cpu_ms_per_job_{name}": seconds * 1000 / count for name, seconds in cpu.items()},
    }


async def _finish(contestant: Contestant, arrived: Count, count: int) -> float:
    """Releases what is staged and answers the seconds until all of it is done."""
    before = await arrived()
    begin = time.perf_counter()
    # The commit's own time counts: workers cannot have seen the jobs much before its answer, nor much after.
    await contestant.release()
    patience = LEAST_SEC + count / SLOWEST_PER_SEC
    await until(lambda: _has_arrived(arrived, before + count), patience, "the last delivery", ARRIVAL_POLL_SEC)
    await until(lambda: _is_done(contestant), patience, "the record of the last delivery", DONE_POLL_SEC)
    return time.perf_counter() - begin


async def _has_arrived(arrived: Count, wanted: int) -> bool:
    return await arrived() >= wanted


async def _is_done(contestant: Contestant) -> bool:
    return await contestant.unfinished() == 0
