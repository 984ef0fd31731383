"""Create: jobs per second over REST, gRPC and gRPC in batches, and what the gateway alone would let through."""

from __future__ import annotations

import os
import sys
import urllib.parse

from bench.arena import Arena
from bench.ceilings.envoy_echo import running_echo
from bench.children import child
from bench.contestants import BATCH, ECHO_GRPC, ECHO_REST, GRPC, REST
from bench.load import grpc_calls, rest
from bench.ours.stack import our_stack
from bench.peers.celery import running_celery
from bench.peers.peer import Peer
from bench.peers.pgqueuer import running_pgqueuer
from bench.peers.procrastinate import running_procrastinate
from bench.scenarios.rounds import in_turns

NAME = "create"
CONNECTIONS = 64
UNARY_IN_FLIGHT = 64
BATCH_SIZE = 500
BATCHES_IN_FLIGHT = 4
UNARY_PER_SEC = 1_500  # so many calls are prepared for each second of the plan
PEER_BATCH = 500
PEER_SINGLES_PER_SEC = 400


async def run(arena: Arena) -> None:
    """The ceiling, ours and the peers' own ways of making jobs, in turns."""
    await in_turns(arena, NAME, [_echo, _ours, _peers])


async def _echo(arena: Arena, number: int) -> None:
    async with running_echo(arena) as url:
        await _over_rest(arena, ECHO_REST, number, url, "none", "echo")
        await _over_grpc(arena, ECHO_GRPC, number, url, "none", "echo", 1)


async def _ours(arena: Arena, number: int) -> None:
    async with our_stack(arena) as running:
        endpoint = running.http_endpoint("created", arena.receiver.url)
        url, key = running.stack.url, running.stack.api_key
        await _over_rest(arena, REST, number, url, key, endpoint)
        await _over_grpc(arena, GRPC, number, url, key, endpoint, 1)
        await _over_grpc(arena, BATCH, number, url, key, endpoint, BATCH_SIZE)


async def _over_rest(arena: Arena, name: str, number: int, url: str, key: str, endpoint: str) -> None:
    seconds = arena.plan.create_seconds
    command = [sys.executable, "-m", rest.__name__, url, key, endpoint, str(CONNECTIONS), str(seconds)]
    async with child(name, command, arena.log("load"), os.environ) as program:
        told = await program.answer()
    assert told["failed"] == 0, f"{told['failed']} of {told['count']} creations failed"
    assert told["count"] > 0, "nothing was created"
    _note(arena, name, number, told)


async def _over_grpc(arena: Arena, name: str, number: int, url: str, key: str, endpoint: str, batch: int) -> None:
    jobs = arena.plan.batch_jobs if batch > 1 else int(UNARY_PER_SEC * arena.plan.create_seconds)
    in_flight = BATCHES_IN_FLIGHT if batch > 1 else UNARY_IN_FLIGHT
    target = urllib.parse.urlsplit(url).netloc
    numbers = [str(batch), str(in_flight), str(jobs)]
    command = [sys.executable, "-m", grpc_calls.__name__, target, key, endpoint, *numbers]
    async with child(name, command, arena.log("load"), os.environ) as program:
        told = await program.answer()
    _note(arena, name, number, told)


def _note(arena: Arena, name: str, number: int, told: dict[str, float]) -> None:
    arena.results.add(
        NAME,
        name,
        number,
        per_sec=told["count"] / told["sec"],
        client_cores=told["cpu_sec"] / told["sec"],
    )


async def _peers(arena: Arena, number: int) -> None:
    """One by one and, where there is such a thing, in batches. No gateway, no authentication, no other process between."""
    async with running_pgqueuer(arena) as peer:
        await _made_by(arena, "PgQueuer", peer, number, batches=True)
    async with running_procrastinate(arena) as peer:
        await _made_by(arena, "Procrastinate", peer, number, batches=True)
    async with running_celery(arena) as peer:
        await _made_by(arena, "Celery", peer, number, batches=False)


async def _made_by(arena: Arena, name: str, peer: Peer, number: int, *, batches: bool) -> None:
    singles = int(PEER_SINGLES_PER_SEC * arena.plan.create_seconds)
    told = await peer.ask("create_many", count=singles, batch=1)
    arena.results.add(NAME, f"{name}, one by one", number, per_sec=singles / told["sec"])
    if batches:
        told = await peer.ask("create_many", count=arena.plan.batch_jobs, batch=PEER_BATCH)
        rate = arena.plan.batch_jobs / told["sec"]
        arena.results.add(NAME, f"{name}, batches of {PEER_BATCH}", number, per_sec=rate)
