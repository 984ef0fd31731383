"""Latency: from the beginning of a creation to its arrival at the receiver, one job at a time on an idle system."""

from __future__ import annotations

import asyncio
import os
import random
import sys

from bench.arena import Arena
from bench.children import child
from bench.contestants import GRPC, REST
from bench.load import one_by_one
from bench.ours.stack import OurStack, our_stack
from bench.peers.celery import running_celery
from bench.peers.peer import Peer
from bench.peers.pgqueuer import running_pgqueuer
from bench.peers.procrastinate import running_procrastinate
from bench.receivers.exact import ExactReceiver, exact_receiver
from bench.samples import percentile
from bench.scenarios.rounds import in_turns

NAME = "latency"
WARM_UP = 20
LAST_ARRIVAL_SEC = 1.0


async def run(arena: Arena) -> None:
    """All in turns."""
    await in_turns(arena, NAME, [_ours, _pgqueuer, _procrastinate, _celery])


async def _ours(arena: Arena, number: int) -> None:
    async with exact_receiver(arena) as receiver, our_stack(arena) as running:
        running.http_endpoint("noted", receiver.url)
        for name, protocol in ((REST, "rest"), (GRPC, "grpc")):
            await _create_some(arena, running, protocol, WARM_UP)
            begun = await _create_some(arena, running, protocol, arena.plan.latency_samples)
            # A one-shot job and its execution have the same number.
            await _note(arena, receiver, name, number, {key.replace("job_", "exec_"): at for key, at in begun.items()})


async def _create_some(arena: Arena, running: OurStack, protocol: str, count: int) -> dict[str, float]:
    arguments = [protocol, running.stack.url, running.stack.api_key, "noted", str(count)]
    command = [sys.executable, "-m", one_by_one.__name__, *arguments]
    async with child(f"ours, {protocol}", command, arena.log("load"), os.environ) as program:
        return dict((await program.answer())["begun"])


async def _pgqueuer(arena: Arena, number: int) -> None:
    async with exact_receiver(arena) as receiver, running_pgqueuer(arena, url=receiver.url) as peer:
        await _created_by(arena, receiver, peer, number)


async def _procrastinate(arena: Arena, number: int) -> None:
    async with exact_receiver(arena) as receiver, running_procrastinate(arena, url=receiver.url) as peer:
        await _created_by(arena, receiver, peer, number)


async def _celery(arena: Arena, number: int) -> None:
    async with exact_receiver(arena) as receiver, running_celery(arena, url=receiver.url) as peer:
        await _created_by(arena, receiver, peer, number)


async def _created_by(arena: Arena, receiver: ExactReceiver, peer: Peer, number: int) -> None:
    begun: dict[str, float] = {}
    for sample in range(WARM_UP + arena.plan.latency_samples):
        key = f"latency-{number}-{peer.name}-{sample}"
        at = (await peer.ask("create", key=key))["at"]
        if sample >= WARM_UP:
            begun[key] = at
        await asyncio.sleep(random.uniform(*one_by_one.PAUSE_SEC))
    await _note(arena, receiver, peer.name, number, begun)


async def _note(arena: Arena, receiver: ExactReceiver, name: str, number: int, begun: dict[str, float]) -> None:
    await asyncio.sleep(LAST_ARRIVAL_SEC)
    arrived = await receiver.arrivals()
    missing = [key for key in begun if key not in arrived]
    assert not missing, f"{len(missing)} of {len(begun)} did not arrive"
    took = sorted((arrived[key] - at) * 1000 for key, at in begun.items())
    arena.results.add(
        NAME, name, number, p50_ms=percentile(took, 50), p99_ms=percentile(took, 99), max_ms=took[-1], samples=len(took)
    )
