"""Procrastinate's side of the benchmark, run by the Python of its own environment: `operate DSN` or `work DSN SETTINGS`.

After its documentation (procrastinate.readthedocs.io: "Improve performance with concurrency", "Delete finished jobs", "Run
workers"): one asynchronous worker with many concurrent jobs, finished jobs deleted at once, LISTEN beside polling.
"""

import json
import sys
import time
from datetime import UTC, datetime, timedelta
from typing import Any

import aiohttp
import procrastinate
import psycopg
import uvloop
from conversation import converse, job_input, say
from psycopg.types.json import Jsonb

TASK = "deliver"
QUEUE = "bench"


async def insert(connection: psycopg.AsyncConnection[Any], jobs: list[tuple[str, Any, datetime | None]]) -> None:
    """Writes jobs (key, body, when) as its own function does, in the connection's transaction: its pool gives none."""
    rows = [(QUEUE, TASK, Jsonb({"key": key, "body": body}), at) for key, body, at in jobs]
    async with connection.cursor() as cursor:
        await cursor.executemany(
            "INSERT INTO procrastinate_jobs (queue_name, task_name, args, scheduled_at) VALUES (%s, %s, %s, %s)", rows
        )


async def operate(dsn: str) -> None:
    """Makes the schema, and the jobs."""
    app = procrastinate.App(connector=procrastinate.PsycopgConnector(conninfo=dsn))
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        connection = await psycopg.AsyncConnection.connect(dsn)
        looking = await psycopg.AsyncConnection.connect(dsn, autocommit=True)
        task = app.configure_task(TASK, queue=QUEUE, allow_unknown=True)

        async def clear() -> None:
            await looking.execute("TRUNCATE procrastinate_jobs, procrastinate_events CASCADE")

        async def stage(count: int) -> None:
            await clear()
            await insert(connection, [(f"job-{n}", job_input(n), None) for n in range(count)])
            # Autovacuum cannot have seen rows that nobody else sees; without statistics it takes three times the database.
            await connection.execute("ANALYZE procrastinate_jobs")

        async def release() -> None:
            await connection.commit()

        async def unfinished() -> dict[str, Any]:
            """With finished jobs deleted, what failed stays in the table and keeps this from being 0."""
            rows = await looking.execute("SELECT count(*) FROM procrastinate_jobs")
            row = await rows.fetchone()
            return {"count": row[0] if row else 0}

        async def create(key: str) -> dict[str, Any]:
            at = time.time()
            await task.defer_async(key=key, body=job_input(0))
            return {"at": at}

        async def create_many(count: int, batch: int) -> dict[str, Any]:
            nobody = app.configure_task(TASK, queue="nobody", allow_unknown=True)
            arguments = [{"key": f"job-{n}", "body": job_input(n)} for n in range(count)]
            begin = time.perf_counter()
            for start in range(0, count, batch):
                await nobody.batch_defer_async(*arguments[start : start + batch])
            elapsed = time.perf_counter() - begin
            await clear()
            return {"sec": elapsed}

        async def delay(due: list[float], pending: int, prefix: str = "") -> None:
            """Jobs that fall due at the given times, and `pending` ones of tomorrow."""
            tomorrow = datetime.now(UTC) + timedelta(days=1)
            rows = [(f"{prefix}{n}", job_input(0), datetime.fromtimestamp(at, UTC)) for n, at in enumerate(due)]
            await insert(connection, rows + [("pending", {}, tomorrow)] * pending)
            await connection.execute("ANALYZE procrastinate_jobs")
            await connection.commit()

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
    app = procrastinate.App(
        connector=procrastinate.PsycopgConnector(conninfo=dsn, min_size=4, max_size=settings["connections"])
    )
    url = settings["url"]
    connector = aiohttp.TCPConnector(limit=settings["in_flight"])
    async with aiohttp.ClientSession(connector=connector) as session, app.open_async():

        @app.task(name=TASK)
        async def deliver(key: str, body: dict[str, Any]) -> None:
            async with session.post(url, json=body, headers={"Idempotency-Key": key}) as answer:
                await answer.read()
                answer.raise_for_status()

        say(ready=True)
        await app.run_worker_async(
            queues=[QUEUE],
            concurrency=settings["concurrency"],
            fetch_job_polling_interval=settings["poll_sec"],
            delete_jobs="successful",
            shutdown_graceful_timeout=5,
        )


if __name__ == "__main__":
    role, dsn, *rest = sys.argv[1:]
    uvloop.run(operate(dsn) if role == "operate" else work(dsn, json.loads(rest[0])))
