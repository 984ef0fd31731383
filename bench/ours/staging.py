"""This system as a contestant: jobs wait in a transaction that is committed when the clock starts."""

from __future__ import annotations

import contextlib
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import grpc.aio
import psycopg

from bench.ours.cloning import clone_queued, forget
from bench.ours.delayed import create_models
from bench.ours.stack import OurStack
from bench.postgres import connect, value
from taskexecutor.internal.v1 import dispatcher_pb2, dispatcher_pb2_grpc

HINT_SEC = 1.0
EMPTY_TABLES = b"TRUNCATE jobs, cron_jobs, executions, ready_queue, timers, leases, attempts, execution_logs"


class OurJobs:
    """Jobs for some endpoints, in turns."""

    def __init__(self, name: str, running: OurStack, endpoints: Sequence[str], connections: Sequence[Any]) -> None:
        self.name = name
        self._running = running
        self._endpoints = endpoints
        self._looking: psycopg.AsyncConnection[Any]
        self._staging: psycopg.AsyncConnection[Any]
        self._looking, self._staging = connections
        self._queues: list[UUID] = []

    @property
    def pids(self) -> Mapping[str, int]:
        """The services and Envoy."""
        return self._running.pids

    async def stage(self, count: int) -> None:
        """See Contestant. The tables are emptied first: each round begins with the same."""
        await self._looking.execute(EMPTY_TABLES)
        models = await create_models(self._running, self._endpoints)
        rows = await self._looking.execute("SELECT DISTINCT queue FROM executions")
        self._queues = [queue for (queue,) in await rows.fetchall()]
        await self._staging.execute("BEGIN")
        now = datetime.fromtimestamp(time.time(), UTC)
        await clone_queued(self._staging, models, count, now, timedelta(microseconds=1))
        await forget(self._staging, models)

    async def release(self) -> None:
        """See Contestant. Dispatchers are told, as the api tells them after a creation."""
        await self.commit()
        request = dispatcher_pb2.DispatcherServiceWakeRequest(queues=[queue.bytes for queue in self._queues])
        for name in self._running.dispatchers:
            target = self._running.stack.addresses.targets[name]
            async with grpc.aio.insecure_channel(target, options=[("grpc.enable_http_proxy", 0)]) as channel:
                await dispatcher_pb2_grpc.DispatcherServiceStub(channel).Wake(iter([request]), timeout=HINT_SEC)

    async def commit(self) -> None:
        """Shows the staged jobs and tells nobody."""
        await self._staging.execute("COMMIT")

    async def unfinished(self) -> int:
        """See Contestant."""
        return int(await value(self._looking, "SELECT count(*) FROM executions WHERE status <> 'SUCCESS'"))


@contextlib.asynccontextmanager
async def our_jobs(name: str, running: OurStack, endpoints: Sequence[str]) -> AsyncIterator[OurJobs]:
    """The contestant inside the block."""
    async with await connect(running.database_url) as looking, await connect(running.database_url) as staging:
        yield OurJobs(name, running, endpoints, (looking, staging))
