"""Growth: what claiming and recording a batch costs, with few and with very many executions waiting.

Statistics are fresh (ANALYZE after filling) or stale: those of the empty tables, autovacuum off, which is what the planner has
right after a burst.
"""

from __future__ import annotations

import asyncio
import time
from datetime import UTC, datetime, timedelta

from bench.arena import Arena
from bench.ceilings.raw_store import BATCH, BareWorker, Times, bare_database
from bench.contestants import grown
from bench.ours.cloning import clone_queued, forget
from bench.ours.delayed import create_models
from bench.ours.stack import our_stack
from bench.postgres import connect
from bench.samples import percentile
from bench.scenarios.rounds import Turn, in_turns

NAME = "growth"
QUEUES = 200
WARM_UP_BATCHES = 8  # PostgreSQL decides about a plan after five
DATABASE = "growth"
TABLES = "jobs, executions, ready_queue, timers, leases, attempts, execution_logs"
SETTLE_SEC = 2.0


async def run(arena: Arena) -> None:
    """Once: a median of many batches. A size after the other: two such databases would share the cache."""
    await in_turns(arena, NAME, [_turn(waiting) for waiting in arena.plan.waiting_rows], 1)


def _turn(waiting: int) -> Turn:
    async def turn(arena: Arena, _: int) -> None:
        async with arena.postgres.database(DATABASE) as url:
            await _fill(arena, url, waiting)
            await _measure(arena, url, waiting, "stale")
            async with await connect(url) as connection:
                await connection.execute(f"ANALYZE {TABLES}".encode())
            await _measure(arena, url, waiting, "fresh")

    turn.__name__ = f"{waiting:,}_waiting"
    return turn


async def _fill(arena: Arena, url: str, waiting: int) -> None:
    """Fills behind the back of the statistics."""
    async with our_stack(arena, database_url=url) as running:
        names = [running.http_endpoint(f"endpoint-{n}", arena.receiver.url) for n in range(QUEUES)]
        models = await create_models(running, names)
    async with await connect(url) as connection:
        for table in TABLES.split(", "):
            await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)".encode())
        taken = 2 * BATCH * (WARM_UP_BATCHES + arena.plan.growth_batches)
        first = datetime.fromtimestamp(time.time() - 86_400, UTC)
        await connection.execute(f"ANALYZE {TABLES}".encode())
        await clone_queued(connection, models, waiting + taken, first, timedelta(microseconds=10))
        await forget(connection, models)


async def _measure(arena: Arena, url: str, waiting: int, statistics: str) -> None:
    await arena.postgres.checkpoint()
    await asyncio.sleep(SETTLE_SEC)
    times = Times()
    async with bare_database(url, 1) as database, await connect(url) as connection:
        rows = await connection.execute("SELECT DISTINCT endpoint_id FROM endpoints ORDER BY endpoint_id")
        worker = BareWorker(database, [queue for (queue,) in await rows.fetchall()], times)
        for _ in range(WARM_UP_BATCHES):
            await worker.work()
        times.claims_ms.clear()
        times.finalises_ms.clear()
        for _ in range(arena.plan.growth_batches):
            await worker.work()
    claims, finalises = sorted(times.claims_ms), sorted(times.finalises_ms)
    arena.results.add(
        NAME,
        grown(waiting, statistics),
        1,
        claim_p50_ms=percentile(claims, 50),
        claim_p99_ms=percentile(claims, 99),
        finalise_p50_ms=percentile(finalises, 50),
        finalise_p99_ms=percentile(finalises, 99),
    )
