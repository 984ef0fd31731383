"""Finds each peer's fastest settings: not part of a run, but what its settings come from. `make bench B=tuning`."""

from __future__ import annotations

from typing import Any

from bench.arena import Arena
from bench.peers.celery import running_celery
from bench.peers.pgqueuer import running_pgqueuer
from bench.peers.procrastinate import running_procrastinate
from bench.scenarios.draining import drain
from bench.scenarios.rounds import in_turns

NAME = "tuning"

PGQUEUER: list[dict[str, Any]] = [
    {"driver": driver, "batch": batch, "tasks": tasks, "in_flight": 100}
    for driver in ("connection", "pool")
    for batch, tasks in ((50, None), (100, None), (100, 400), (200, None))
]
PROCRASTINATE: list[dict[str, Any]] = [
    {"concurrency": concurrency, "connections": connections}
    for concurrency, connections in ((10, 5), (30, 10), (100, 10), (100, 20))
]
CELERY: list[dict[str, Any]] = [
    {"pool": pool, "concurrency": concurrency, "prefetch": prefetch}
    for pool, concurrency, prefetch in (
        ("prefork", 2, 4),
        ("prefork", 2, 64),
        ("prefork", 4, 64),
        ("gevent", 100, 4),
        ("gevent", 20, 16),
        ("threads", 10, 16),
    )
]


async def run(arena: Arena) -> None:
    """Every candidate in turns."""

    async def pgqueuer(arena: Arena, number: int) -> None:
        for changes in PGQUEUER:
            async with running_pgqueuer(arena, **changes) as peer:
                await _note(arena, f"PgQueuer {changes}", number, peer, arena.plan.drain_jobs // 2)

    async def procrastinate(arena: Arena, number: int) -> None:
        for changes in PROCRASTINATE:
            async with running_procrastinate(arena, **changes) as peer:
                await _note(arena, f"Procrastinate {changes}", number, peer, arena.plan.slow_peer_jobs)

    async def celery(arena: Arena, number: int) -> None:
        for changes in CELERY:
            async with running_celery(arena, **changes) as peer:
                await _note(arena, f"Celery {changes}", number, peer, arena.plan.slow_peer_jobs)

    await in_turns(arena, NAME, [pgqueuer, procrastinate, celery])


async def _note(arena: Arena, name: str, number: int, peer: Any, count: int) -> None:
    figures = await drain(arena, peer, count)
    arena.results.add(NAME, name, number, per_sec=figures["per_sec"], cpu_ms_per_job=figures["cpu_ms_per_job"])
    arena.say(f"    {name}: {figures['per_sec']:,.0f}/s")
