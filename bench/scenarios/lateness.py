"""Lateness: arrival minus due time of delayed jobs, with few and with very many other timers pending."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

from bench.arena import Arena
from bench.arrivals import arrivals_of
from bench.contestants import late
from bench.ours.cloning import clone_timers
from bench.ours.delayed import create_delayed, create_models
from bench.ours.stack import DATABASE, OurStack, our_stack
from bench.peers.celery import running_celery
from bench.peers.peer import Peer
from bench.peers.pgqueuer import running_pgqueuer
from bench.peers.procrastinate import PROMPT, running_procrastinate
from bench.postgres import connect
from bench.results import Figures
from bench.samples import percentile, thinned
from bench.scenarios.rounds import Turn, in_turns

NAME = "lateness"
HEAD_START_SEC = 1.0  # between the last creation and the first due time
CREATED_PER_SEC = 2_000  # a careful guess at how fast delayed jobs are made, here and by peers
CELERY_PER_SEC = 700
PATIENCE_SEC = 60.0
SETTLE_SEC = 2.0
PEER_PENDING = 10_000
FAR_OFF = timedelta(days=30)
STEP = timedelta(milliseconds=10)
MOST_ROUNDS = 2  # half a minute each, and thousands of samples in each


async def run(arena: Arena) -> None:
    """Ours with few and many timers, steady and in a burst; peers steady."""
    async with contextlib.AsyncExitStack() as stack:
        turns = [await _prepared(arena, pending, stack) for pending in arena.plan.pending_timers]
        rounds = min(MOST_ROUNDS, arena.plan.rounds)
        await in_turns(arena, NAME, [*turns, _pgqueuer, _procrastinate, _celery], rounds)


async def _prepared(arena: Arena, pending: int, stack: contextlib.AsyncExitStack) -> Turn:
    """Makes a database with so many pending timers; each round runs on a copy of it."""
    name = f"pending_{pending}"
    url = await stack.enter_async_context(arena.postgres.database(name))
    async with our_stack(arena, database_url=url) as running, await connect(url) as connection:
        running.http_endpoint("noted", arena.receiver.noted_url)
        models = await create_models(running, ["noted"])
        first = datetime.fromtimestamp(time.time(), UTC) + FAR_OFF
        await clone_timers(connection, models, pending - len(models), first, STEP)

    async def turn(arena: Arena, number: int) -> None:
        async with (
            arena.postgres.database(DATABASE, copy_of=name) as copy,
            our_stack(arena, database_url=copy) as running,
        ):
            await arena.postgres.checkpoint()
            await asyncio.sleep(SETTLE_SEC)
            await _ours(arena, running, pending, number)

    turn.__name__ = f"ours, {pending:,} pending"
    return turn


async def _ours(arena: Arena, running: OurStack, pending: int, number: int) -> None:
    count = int(arena.plan.steady_rate * arena.plan.steady_seconds)
    due = await create_delayed(running, "noted", _evenly(count, arena.plan.steady_seconds, CREATED_PER_SEC))
    await _note(arena, late(pending, "steady"), number, due)
    due = await create_delayed(running, "noted", _evenly(arena.plan.burst_jobs, 1.0, CREATED_PER_SEC))
    await _note(arena, late(pending, "burst"), number, due)


def _evenly(count: int, seconds: float, created_per_sec: float) -> list[float]:
    """Due times, evenly spread, the first when all are created."""
    begin = time.time() + HEAD_START_SEC + count / created_per_sec
    return [begin + n * seconds / count for n in range(count)]


async def _note(arena: Arena, name: str, number: int, due: Mapping[str, float]) -> None:
    arrived = await arrivals_of(arena, due, PATIENCE_SEC)
    delays = sorted((arrived[key] - at) * 1000 for key, at in due.items() if key in arrived)
    assert len(delays) == len(due), f"{len(due) - len(delays)} of {len(due)} did not arrive"
    figures: Figures = {
        "p50_ms": percentile(delays, 50),
        "p99_ms": percentile(delays, 99),
        "p99_9_ms": percentile(delays, 99.9),
        "max_ms": delays[-1],
        "samples": len(delays),
    }
    if name.endswith("burst"):
        figures["last_out_sec"] = max(arrived[key] for key in due) - min(due.values())
    arena.results.add(NAME, name, number, **figures)
    arena.results.series[f"{NAME}: {name}"] = thinned(delays)


async def _pgqueuer(arena: Arena, number: int) -> None:
    async with running_pgqueuer(arena, url=arena.receiver.noted_url) as peer:
        await _delayed_by(arena, peer, number, CREATED_PER_SEC)


async def _procrastinate(arena: Arena, number: int) -> None:
    async with running_procrastinate(arena, url=arena.receiver.noted_url, **PROMPT) as peer:
        await _delayed_by(arena, peer, number, CREATED_PER_SEC)


async def _celery(arena: Arena, number: int) -> None:
    async with running_celery(arena, url=arena.receiver.noted_url) as peer:
        await _delayed_by(arena, peer, number, CELERY_PER_SEC)


async def _delayed_by(arena: Arena, peer: Peer, number: int, created_per_sec: float) -> None:
    pending = min(PEER_PENDING, arena.plan.pending_timers[0])
    await peer.ask("delay", due=[], pending=pending)
    await asyncio.sleep(SETTLE_SEC)
    count = int(arena.plan.steady_rate * arena.plan.peer_steady_seconds)
    due = _evenly(count, arena.plan.peer_steady_seconds, created_per_sec)
    # Keys of their own: earlier rounds used the same numbers.
    prefix = f"late-{number}-{peer.name}-"
    await peer.ask("delay", due=due, pending=0, prefix=prefix)
    name = f"{peer.name}, {pending:,} pending, steady"
    await _note(arena, name, number, {f"{prefix}{n}": at for n, at in enumerate(due)})
