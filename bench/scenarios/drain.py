"""Drain: how many queued deliveries a second, from the release of all to the last SUCCESS committed."""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path

import redis
from confluent_kafka import Consumer, TopicPartition

from bench.arena import Arena
from bench.ceilings import raw_aiohttp, raw_store
from bench.children import child
from bench.contestants import KAFKA, MANY, ONE, RAW, REDIS, STORE, TWO
from bench.ours.stack import OurStack, our_stack
from bench.ours.staging import our_jobs
from bench.peers.celery import running_celery
from bench.peers.pgqueuer import running_pgqueuer
from bench.peers.procrastinate import running_procrastinate
from bench.redis_server import running_redis
from bench.scenarios.draining import Count, drain
from bench.scenarios.rounds import in_turns
from tests.servers.kafka import Broker

NAME = "drain"
TOPIC = STREAM = "bench"
KAFKA_SEC = 10.0


async def run(arena: Arena) -> None:
    """All contestants in turns, those that are compared next to each other."""
    turns = [_raw, _ours, _pgqueuer, _ours_twice, _pgqueuer_twice, _store, _procrastinate, _celery, _other_targets]
    await in_turns(arena, NAME, turns)


# --- ceilings ---


async def _raw(arena: Arena, number: int) -> None:
    count = arena.plan.drain_jobs
    command = [sys.executable, "-m", raw_aiohttp.__name__, arena.receiver.url, str(count)]
    async with child(RAW, command, arena.log("raw"), os.environ) as program:
        told = await program.answer()
    cpu = told["cpu_sec"] * 1000 / count
    arena.results.add(NAME, RAW, number, per_sec=count / told["sec"], sec=told["sec"], cpu_ms_per_job=cpu)


async def _store(arena: Arena, number: int) -> None:
    """The jobs are left to the bare statements: no dispatcher takes any, and no scheduler takes them back from a worker
    that never beats."""
    async with our_stack(arena) as running:
        names = [running.http_endpoint("one", arena.receiver.url)]
        for service in (*running.dispatchers, "scheduler"):
            await running.stack.processes[service].stop()
        for workers, name in STORE.items():
            await arena.postgres.checkpoint()
            async with our_jobs(name, running, names) as jobs:
                await jobs.stage(arena.plan.drain_jobs)
                await jobs.commit()
            command = [sys.executable, "-m", raw_store.__name__, running.database_url, str(workers)]
            async with child(name, command, arena.log("raw"), os.environ) as program:
                told = await program.answer()
            assert told["executions"] == arena.plan.drain_jobs, f"only {told['executions']} were claimed"
            arena.results.add(NAME, name, number, per_sec=told["executions"] / told["sec"], sec=told["sec"])


# --- ours ---


async def _ours(arena: Arena, number: int) -> None:
    async with our_stack(arena) as running:
        await _drain_http(arena, running, ONE, number, 1)
        await _drain_http(arena, running, MANY, number, arena.plan.many_endpoints)


async def _ours_twice(arena: Arena, number: int) -> None:
    async with our_stack(arena, dispatchers=2) as running:
        await _drain_http(arena, running, TWO, number, 1)


async def _drain_http(arena: Arena, running: OurStack, name: str, number: int, endpoints: int) -> None:
    names = [running.http_endpoint(f"http-{endpoints}-{n}", arena.receiver.url) for n in range(endpoints)]
    async with our_jobs(name, running, names) as jobs:
        arena.results.add(NAME, name, number, **await drain(arena, jobs, arena.plan.drain_jobs))


async def _other_targets(arena: Arena, number: int) -> None:
    async with our_stack(arena) as running:
        await _to_redis(arena, running, number)
        await _to_kafka(arena, running, number)


async def _to_redis(arena: Arena, running: OurStack, number: int) -> None:
    async with running_redis(arena) as server:
        spec = {"redis_url": server.url, "stream": STREAM, "fields_template": {"order": "{{input.order}}"}}
        running.endpoint("redis", "REDIS_STREAM", spec)
        with redis.Redis.from_url(server.url) as client:

            async def arrived() -> int:
                return int(client.xlen(STREAM))

            await _drain_to(arena, running, REDIS, "redis", number, arrived)


async def _to_kafka(arena: Arena, running: OurStack, number: int) -> None:
    with tempfile.TemporaryDirectory(dir=arena.folder) as folder:
        broker = Broker(Path(folder))
        broker.start()
        consumer = Consumer({"bootstrap.servers": broker.bootstrap, "group.id": "bench"})
        try:
            broker.create_topic(TOPIC)
            spec = {
                "bootstrap_servers": broker.bootstrap,
                "topic": TOPIC,
                "value_template": {"order": "{{input.order}}"},
            }
            running.endpoint("kafka", "KAFKA", spec)

            async def arrived() -> int:
                _, end = consumer.get_watermark_offsets(TopicPartition(TOPIC, 0), timeout=KAFKA_SEC)
                return int(end)

            await _drain_to(arena, running, KAFKA, "kafka", number, arrived)
        finally:
            consumer.close()
            broker.stop()


async def _drain_to(arena: Arena, running: OurStack, name: str, endpoint: str, number: int, arrived: Count) -> None:
    async with our_jobs(name, running, [endpoint]) as jobs:
        arena.results.add(NAME, name, number, **await drain(arena, jobs, arena.plan.drain_jobs, arrived))


# --- peers ---


async def _pgqueuer(arena: Arena, number: int) -> None:
    await _drain_pgqueuer(arena, number, workers=1)


async def _pgqueuer_twice(arena: Arena, number: int) -> None:
    await _drain_pgqueuer(arena, number, workers=2)


async def _drain_pgqueuer(arena: Arena, number: int, *, workers: int) -> None:
    async with running_pgqueuer(arena, workers=workers) as peer:
        arena.results.add(NAME, peer.name, number, **await drain(arena, peer, arena.plan.drain_jobs))


async def _procrastinate(arena: Arena, number: int) -> None:
    async with running_procrastinate(arena) as peer:
        arena.results.add(NAME, peer.name, number, **await drain(arena, peer, arena.plan.slow_peer_jobs))


async def _celery(arena: Arena, number: int) -> None:
    async with running_celery(arena) as peer:
        arena.results.add(NAME, peer.name, number, **await drain(arena, peer, arena.plan.slow_peer_jobs))
