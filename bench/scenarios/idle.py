"""Idle: what the system costs while nothing happens."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import psycopg

from bench.arena import Arena
from bench.contestants import OURS
from bench.cpu import CpuMeter, resident_mb, unshared_mb
from bench.ours.stack import DATABASE, our_stack
from bench.postgres import connect, value
from bench.scenarios.rounds import in_turns

NAME = "idle"
# What backends counted while the system started they hand in within ten seconds, and it is not idling.
SETTLE_SEC = 12.0
STATISTICS_SEC = 1.5  # backends hand in what they counted once a second, at the end of a transaction


async def run(arena: Arena) -> None:
    """Once: the figures are counts, or averages over half a minute."""
    await in_turns(arena, NAME, [_ours], 1)


async def _ours(arena: Arena, number: int) -> None:
    async with (
        arena.postgres.autovacuum_off(),
        our_stack(arena) as running,
        await connect(arena.postgres.url("taskexecutor")) as looking,
    ):
        running.http_endpoint("idle", arena.receiver.url)
        await asyncio.sleep(SETTLE_SEC)
        pids = {**running.pids, "postgres": arena.postgres.pid}
        before, begin = await _transactions(looking), time.monotonic()
        meter = CpuMeter(pids)
        await asyncio.sleep(arena.plan.idle_seconds)
        cpu, elapsed = meter.read(), time.monotonic() - begin
        await asyncio.sleep(STATISTICS_SEC)
        transactions = await _transactions(looking) - before
        memory = {name: resident_mb(pid) for name, pid in running.pids.items()}
        memory["postgres"] = unshared_mb(arena.postgres.pid)
    # Services run one statement a transaction, so that these are queries, but for a few larger transactions.
    arena.results.add(
        NAME,
        OURS,
        number,
        queries_per_sec=transactions / (elapsed + STATISTICS_SEC),
        cpu_percent=sum(cpu.values()) * 100 / elapsed,
        **{f"cpu_percent_{name}": seconds * 100 / elapsed for name, seconds in cpu.items()},
        **{f"memory_mb_{name}": size for name, size in memory.items()},
    )


async def _transactions(connection: psycopg.AsyncConnection[Any]) -> int:
    """How many the system's database has seen; asked from another database, so that asking does not count."""
    return int(
        await value(connection, "SELECT xact_commit + xact_rollback FROM pg_stat_database WHERE datname = %s", DATABASE)
    )
