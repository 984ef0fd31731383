"""Fills tables with a million rows in seconds: copies of jobs that the api itself made, with ids and times of their own.

The copies name no column but those that differ, so that a new column needs no change here.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, LiteralString
from uuid import UUID

import psycopg

CHUNK = 100_000  # rows a statement, which bounds what it holds in memory

# For each n: the model in its turn, and a new id, which grows with n as ids grow with time. The models are read once, before
# anything else, so that no statement looks into the tables that it fills.
_CLONES: LiteralString = """
WITH model AS MATERIALIZED (
    SELECT x.place - 1 AS place, j AS job, e AS execution
    FROM unnest(%(models)s::uuid[]) WITH ORDINALITY AS x (id, place)
    JOIN jobs AS j ON j.job_id = x.id
    JOIN executions AS e ON e.execution_id = x.id
), clone AS (
    SELECT n, m.job, m.execution, %(first)s::timestamptz + n * %(step)s::interval AS at,
        ('00' || lpad(to_hex(%(epoch_ms)s::bigint + n), 12, '0') || '8' || substr(md5('a' || n), 1, 3)
            || '8' || substr(md5('b' || n), 1, 13))::uuid AS id
    FROM generate_series(%(begin)s::bigint, %(end)s::bigint) AS n
    JOIN model AS m ON m.place = n %% %(count)s::bigint
)
"""
_JOBS: LiteralString = """
INSERT INTO jobs
SELECT r.*
FROM clone AS c
CROSS JOIN LATERAL jsonb_populate_record(c.job, jsonb_build_object('job_id', c.id, 'root_job_id', c.id,
    'idempotency_key', c.id, 'dedup_hash', '\\x' || md5(c.id::text),
    'input', (c.job).input || jsonb_build_object('order', c.n), 'trigger_type', %(trigger)s::text,
    'run_at', CASE %(trigger)s::text WHEN 'DELAYED' THEN c.at END)) AS r
"""
_EXECUTIONS: LiteralString = """
INSERT INTO executions
SELECT r.*
FROM clone AS c
CROSS JOIN LATERAL jsonb_populate_record(c.execution, jsonb_build_object('execution_id', c.id, 'job_id', c.id,
    'run_at', c.at, 'status', %(status)s::text)) AS r
"""
_TIMERS: LiteralString = """
INSERT INTO timers (lane, fire_at, execution_id, queue, priority)
SELECT (c.execution).lane, c.at, c.id, (c.execution).queue, (c.execution).priority FROM clone AS c
"""
_QUEUE: LiteralString = """
INSERT INTO ready_queue (queue, lane, priority, ready_at, execution_id)
SELECT (c.execution).queue, (c.execution).lane, (c.execution).priority, c.at, c.id FROM clone AS c
"""
_TIMED: dict[str, Any] = {"trigger": "DELAYED", "status": "PENDING"}
_QUEUED: dict[str, Any] = {"trigger": "IMMEDIATE", "status": "QUEUED"}


async def clone_timers(
    connection: psycopg.AsyncConnection[Any], models: Sequence[UUID], count: int, first: datetime, step: timedelta
) -> None:
    """Adds `count` delayed jobs, copies of `models` in turns, due at `first` and then every `step`."""
    await _clone(connection, models, count, first, step, _TIMERS, _TIMED)


async def clone_queued(
    connection: psycopg.AsyncConnection[Any], models: Sequence[UUID], count: int, first: datetime, step: timedelta
) -> None:
    """Adds `count` jobs that wait to be claimed, copies of `models` in turns, ready since `first` and then every `step`."""
    await _clone(connection, models, count, first, step, _QUEUE, _QUEUED)


async def forget(connection: psycopg.AsyncConnection[Any], models: Sequence[UUID]) -> None:
    """Deletes the models themselves."""
    for statement in (
        b"DELETE FROM timers WHERE execution_id = ANY (%s)",
        b"DELETE FROM executions WHERE execution_id = ANY (%s)",
        b"DELETE FROM jobs WHERE job_id = ANY (%s)",
    ):
        await connection.execute(statement, (list(models),))


async def _clone(
    connection: psycopg.AsyncConnection[Any],
    models: Sequence[UUID],
    count: int,
    first: datetime,
    step: timedelta,
    waiting: LiteralString,
    kind: dict[str, Any],
) -> None:
    for begin in range(0, count, CHUNK):
        parameters = kind | {
            "models": list(models),
            "count": len(models),
            "first": first,
            "step": step,
            "epoch_ms": int(first.timestamp() * 1000),
            "begin": begin,
            "end": min(begin + CHUNK, count) - 1,
        }
        for table in (_JOBS, _EXECUTIONS, waiting):
            await connection.execute(_CLONES + table, parameters)
