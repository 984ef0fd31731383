"""PgQueuer's side of the benchmark, run by the Python of its own environment: `operate DSN` or `work DSN SETTINGS`.

After its documentation (pgqueuer.readthedocs.io: "Performance tuning", "Drivers", "Shared resources"): asyncpg, uvloop, a
shared aiohttp session, batches of 100, results buffered, and the settings that its own tuning command writes to autovacuum.
"""

import asyncio
import json
import signal
import sys
import time
from datetime import timedelta
from typing import Any

import aiohttp
import asyncpg
import uvloop
from conversation import converse, job_input, say
from pgqueuer import PgQueuer
from pgqueuer.db import AsyncpgDriver
from pgqueuer.models import Job
from pgqueuer.queries import Queries

ENTRYPOINT = "deliver"


async def operate(dsn: str) -> None:
    """Makes the schema, and the jobs."""
    connection = await asyncpg.connect(dsn)
    queries = Queries(AsyncpgDriver(connection))
    await queries.install()
    await queries.optimize_autovacuum()
    looking = await asyncpg.connect(dsn)
    state: dict[str, Any] = {"transaction": None, "wanted": 0}

    def payloads(count: int) -> list[bytes | None]:
        return [json.dumps({"key": f"job-{n}", **job_input(n)}).encode() for n in range(count)]

    async def stage(count: int) -> None:
        await looking.execute("TRUNCATE pgqueuer, pgqueuer_log, pgqueuer_statistics")
        state["transaction"] = connection.transaction()
        await state["transaction"].start()
        await queries.enqueue([ENTRYPOINT] * count, payloads(count), [0] * count)
        await connection.execute("ANALYZE pgqueuer")  # autovacuum cannot have seen rows that nobody else sees
        state["wanted"] = count

    async def release() -> None:
        await state["transaction"].commit()

    async def unfinished() -> dict[str, Any]:
        left = await looking.fetchval("SELECT count(*) FROM pgqueuer")
        if left:
            return {"count": left}
        done = await looking.fetchval("SELECT count(*) FROM pgqueuer_log WHERE status = 'successful'")
        return {"count": state["wanted"] - done}

    async def create(key: str) -> dict[str, Any]:
        at = time.time()
        await queries.enqueue(ENTRYPOINT, json.dumps({"key": key, **job_input(0)}).encode())
        return {"at": at}

    async def create_many(count: int, batch: int) -> dict[str, Any]:
        waiting = payloads(count)
        begin = time.perf_counter()
        for start in range(0, count, batch):
            chunk = waiting[start : start + batch]
            await queries.enqueue(["nobody"] * len(chunk), chunk, [0] * len(chunk))
        elapsed = time.perf_counter() - begin
        await looking.execute("TRUNCATE pgqueuer, pgqueuer_log")
        return {"sec": elapsed}

    async def delay(due: list[float], pending: int, prefix: str = "") -> None:
        """Jobs that fall due at the given times, and `pending` ones of tomorrow."""
        keys = [f"{prefix}{n}" for n in range(len(due))] + ["pending"] * pending
        waits = [timedelta(seconds=at - time.time()) for at in due] + [timedelta(days=1)] * pending
        bodies: list[bytes | None] = [json.dumps({"key": key, **job_input(0)}).encode() for key in keys]
        await queries.enqueue([ENTRYPOINT] * len(keys), bodies, [0] * len(keys), waits)
        await connection.execute("ANALYZE pgqueuer")

    await converse(
        {
            "stage": stage,
            "release": release,
            "unfinished": unfinished,
            "create": create,
            "create_many": create_many,
            "delay": delay,
        }
    )


async def work(dsn: str, settings: dict[str, Any]) -> None:
    """One worker."""
    if settings["driver"] == "pool":
        pool = await asyncpg.create_pool(dsn, min_size=2, max_size=4)
        pgq = PgQueuer.from_asyncpg_pool(pool)
    else:
        pgq = PgQueuer.from_asyncpg_connection(await asyncpg.connect(dsn))
    url = settings["url"]
    connector = aiohttp.TCPConnector(limit=settings["in_flight"])
    async with aiohttp.ClientSession(connector=connector) as session:

        @pgq.entrypoint(ENTRYPOINT)
        async def deliver(job: Job) -> None:
            assert job.payload is not None
            body = json.loads(job.payload)
            headers = {"Idempotency-Key": body.pop("key")}
            async with session.post(url, json=body, headers=headers) as answer:
                await answer.read()
                answer.raise_for_status()

        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, pgq.shutdown.set)
        say(ready=True)
        await pgq.run(
            batch_size=settings["batch"],
            max_concurrent_tasks=settings["tasks"],
            dequeue_timeout=timedelta(seconds=settings["timeout_sec"]),
        )


if __name__ == "__main__":
    role, dsn, *rest = sys.argv[1:]
    uvloop.run(operate(dsn) if role == "operate" else work(dsn, json.loads(rest[0])))
