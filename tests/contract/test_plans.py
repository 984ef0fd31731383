"""The hot statements walk indexes, whatever the statistics say: what they touch does not grow with what waits.

Counted are rows and pages, never time. 20,000 executions of 200 queues wait, and as many timers and schedules. The
connection is one of the pool and has run each statement until PostgreSQL would keep its plan: on new tables, on tables whose
queues were empty and vacuumed (a night without work), and on full ones. Then the statements run on the full tables.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Iterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
import pytest

from taskexecutor_common.store.database import Database
from taskexecutor_common.store.statements import POSTGRES_STATEMENTS
from tests.support.databases import Databases
from tests.support.sql_text import numbered

ROWS = 20_000
QUEUES = 200
BATCH = 50
RUNS_UNTIL_KEPT = 6  # PostgreSQL makes five plans for the parameters at hand before it keeps one
PAGES_A_ROW = 50  # with all tables and indexes that a row has a place in
DRAINED = ("ready_queue", "timers", "leases")
KNOWN_WELL = {"cron_jobs"}  # schedules do not come by the thousand in a minute, so autovacuum knows them
BIG = {"endpoints", "endpoint_revisions", "jobs", "executions", "ready_queue", "timers", "cron_jobs"}
WORKER = "00000000-0000-0000-0000-00000000000a"

QUEUE = "lpad(to_hex(n % {queues} + 1), 32, '0')::uuid"
EXECUTION = "('e' || lpad(to_hex(n), 31, '0'))::uuid"
READY_AT = "timestamptz '2026-01-01' - n * interval '1 ms'"
LEASED = "('f' || lpad(to_hex(n), 31, '0'))::uuid"
FILL = (
    "INSERT INTO endpoints (endpoint_id, namespace, name, endpoint_type, revision)"
    " SELECT DISTINCT {queue}, 'default', ({queue})::text, 'HTTP', 1 FROM {n}",
    "INSERT INTO endpoint_revisions (endpoint_id, revision, spec, retry_policy, timeout_ms, max_attempts)"
    " SELECT endpoint_id, 1, '{{}}', '{{}}', 1000, 3 FROM endpoints",
    "INSERT INTO endpoint_flow (endpoint_id, is_limited, max_in_flight, rate_per_sec, burst, tokens)"
    " SELECT endpoint_id, limited, CASE WHEN limited THEN 1000 END, CASE WHEN limited THEN 1000 END,"
    " CASE WHEN limited THEN 1000 END, 1000 FROM (SELECT endpoint_id, right(name, 1) < '8' AS limited FROM endpoints) AS p",
    "INSERT INTO jobs (job_id, namespace, lane, endpoint_id, endpoint, endpoint_type, endpoint_revision, trigger_type,"
    " root_job_id, dedup_hash, input, cron_expression, cron_timezone, catch_up)"
    " SELECT {execution}, 'default', 0, {queue}, 'e', 'HTTP', 1, 'IMMEDIATE', {execution},"
    " decode(md5(n::text), 'hex'), '{{\"n\": 1}}', '* * * * *', 'UTC', 'ALL' FROM {n}",
    "INSERT INTO executions (execution_id, job_id, namespace, lane, queue, endpoint_revision, timeout_ms, status,"
    " run_at, created_at)"
    " SELECT {execution}, {execution}, 'default', 0, {queue}, 1, 1000, 'QUEUED', {ready_at}, {ready_at} FROM {n}",
    "INSERT INTO executions (execution_id, job_id, namespace, lane, queue, endpoint_revision, timeout_ms, status,"
    " attempt_count, max_attempts, worker_id, started_at)"
    " SELECT {leased}, {execution}, 'default', 0, {queue}, 1, 1000, 'RUNNING', 1, 3, '{worker}', now()"
    " FROM {n} WHERE n <= 2 * {batch}",
    "INSERT INTO leases SELECT '{worker}', {leased}, 1, now() - interval '1 hour', {queue} FROM {n} WHERE n <= 2 * {batch}",
    "INSERT INTO ready_queue SELECT {queue}, 0, 1, {ready_at}, {execution} FROM {n}",
    "INSERT INTO timers SELECT 0, now() + (n - 2000) * interval '1 s', {execution}, {queue}, 1 FROM {n}",
    "INSERT INTO cron_jobs (job_id, lane, endpoint_id, next_run_at)"
    " SELECT {execution}, 0, {queue}, now() + (n - 2000) * interval '1 s' FROM {n}",
)


def filled(statement: str) -> str:
    """A statement of FILL with its pieces in place."""
    return statement.format(
        queue=QUEUE.format(queues=QUEUES),
        execution=EXECUTION,
        ready_at=READY_AT,
        leased=LEASED,
        worker=WORKER,
        batch=BATCH,
        n=f"generate_series(1, {ROWS}) AS n",
    )


@dataclass(frozen=True, slots=True)
class Hot:
    """A hot statement: its parameters as SQL, and how many rows it handles with them."""

    parameters: dict[str, str]
    rows: int
    kept_plan_of: str | None = None
    """The statement, where its connection keeps plans."""


FIRST_QUEUES = f"ARRAY(SELECT {QUEUE.format(queues=QUEUES)} FROM generate_series(1, 10) AS n)"
UNREADABLE = "'{e0000000-0000-0000-0000-000000000001}'"
FAILURES = f"""(SELECT jsonb_agg(jsonb_build_object('execution_id', {LEASED}, 'attempt_number', 1, 'attempt_status', 'FAILED',
    'next_status', 'RETRYING', 'retry_delay_ms', 1000, 'duration_ms', 5, 'error', jsonb_build_object(), 'log_level', 'WARN',
    'log_message', 'no')) FROM generate_series(1, {BATCH}) AS n)"""
NEW_JOBS = (
    "(SELECT jsonb_agg(jsonb_build_object('job_id', ('c' || lpad(to_hex(n), 31, '0'))::uuid, 'lane', 0, 'endpoint_id',"
    f" {QUEUE.format(queues=QUEUES)}, 'endpoint_revision', 1, 'trigger_type', 'IMMEDIATE', 'idempotency_key', 'k' || n,"
    f" 'dedup_hash', md5('k' || n), 'input_json', '{{}}', 'request_id', 'r')) FROM generate_series(1, {BATCH}) AS n)"
)


def each(value: str, count: int = BATCH) -> str:
    return f"array_fill({value}, ARRAY[{count}])"


HOT = {
    "claim_executions": Hot(
        {
            "queues": FIRST_QUEUES,
            "quotas": each("5::bigint", 10),
            "first_lanes": each("0::smallint", 10),
            "worker_id": f"'{WORKER}'",
            "grace_ms": "10000",
        },
        rows=BATCH,
    ),
    "finalise_executions": Hot(
        {
            "worker_id": f"'{WORKER}'",
            "results": FAILURES,
        },
        rows=BATCH,
    ),
    "promote_timers": Hot({"lane": "0", "ahead_ms": "100"}, rows=500),
    "next_timers": Hot({"lanes": "'{0,1}'"}, rows=2),
    "next_cron_ticks": Hot({"lanes": "'{0,1}'", "unreadable": UNREADABLE}, rows=2),
    "find_due_cron_jobs": Hot({"lane": "0", "half": "50", "unreadable": UNREADABLE}, rows=100),
    "tick_cron_jobs": Hot(
        {
            "job_ids": f"ARRAY(SELECT {EXECUTION} FROM generate_series(1, {BATCH}) AS n)",
            "tick_ats": f"ARRAY(SELECT next_run_at FROM cron_jobs ORDER BY next_run_at LIMIT {BATCH})",
            "fired_ats": f"ARRAY(SELECT next_run_at FROM cron_jobs ORDER BY next_run_at LIMIT {BATCH})",
            "next_ats": each("now() + interval '1 hour'"),
            "execution_ids": f"ARRAY(SELECT ('d' || lpad(to_hex(n), 31, '0'))::uuid FROM generate_series(1, {BATCH}) AS n)",
        },
        rows=BATCH,
    ),
    "reclaim_leases": Hot({"slack_ms": "5000", "error": "'{}'", "log_message": "'lost'"}, rows=2 * BATCH),
    "find_waiting_queues": Hot({}, rows=QUEUES),
    "look_at_queues": Hot({"queues": FIRST_QUEUES}, rows=10),
    "cancel_execution": Hot(
        {"execution_id": f"(SELECT {EXECUTION} FROM (SELECT {ROWS // 2} AS n) AS x)", "namespace": "'default'"}, rows=1
    ),
    "create_jobs": Hot({"region": "'default'", "jobs": NEW_JOBS}, rows=BATCH),
    "create_jobs_kept": Hot({"region": "'default'", "jobs": NEW_JOBS}, rows=BATCH, kept_plan_of="create_jobs"),
    "promote_timers_kept": Hot({"lane": "0", "ahead_ms": "100"}, rows=500, kept_plan_of="promote_timers"),
    "next_timers_kept": Hot({"lanes": "'{0,1}'"}, rows=2, kept_plan_of="next_timers"),
    "next_cron_ticks_kept": Hot({"lanes": "'{0,1}'", "unreadable": UNREADABLE}, rows=2, kept_plan_of="next_cron_ticks"),
    "find_due_cron_jobs_kept": Hot(
        {"lane": "0", "half": "50", "unreadable": UNREADABLE}, rows=100, kept_plan_of="find_due_cron_jobs"
    ),
    "find_waiting_queues_kept": Hot({}, rows=QUEUES, kept_plan_of="find_waiting_queues"),
    "look_at_queues_kept": Hot({"queues": FIRST_QUEUES}, rows=10, kept_plan_of="look_at_queues"),
}


def text(name: str) -> str:
    return POSTGRES_STATEMENTS[HOT[name].kept_plan_of or name]


async def prepare(connection: psycopg.AsyncConnection[Any]) -> None:
    """Prepares all hot statements and runs each as often as it takes to get a plan that is kept."""
    for name in HOT:
        await connection.execute(f"PREPARE {name} AS {numbered(text(name))[0]}")
        for _ in range(RUNS_UNTIL_KEPT):
            await run(connection, name)


async def run(connection: psycopg.AsyncConnection[Any], name: str) -> dict[str, Any]:
    """The plan of a statement as it was run, undone afterwards."""
    hot = HOT[name]
    arguments = []
    for parameter in numbered(text(name))[1]:
        arguments.append(await evaluated(connection, hot.parameters[parameter]))
    call = f"{name}({', '.join(arguments)})" if arguments else name
    async with connection.transaction(force_rollback=True):
        if hot.kept_plan_of:
            await connection.execute("SET LOCAL plan_cache_mode = force_generic_plan")
        cursor = await connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE {call}")
        ((explained,),) = await cursor.fetchall()
    return (json.loads(explained) if isinstance(explained, str) else explained)[0]["Plan"]


async def evaluated(connection: psycopg.AsyncConnection[Any], expression: str) -> str:
    """A parameter as a literal: EXECUTE takes no sub-selects."""
    cursor = await connection.execute(f"SELECT quote_nullable(({expression})::text)")
    ((literal,),) = await cursor.fetchall()
    return literal


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", ()):
        yield from nodes(inner)


@asynccontextmanager
async def pooled(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A connection as the services have it."""
    database = Database(url, pool_size=1, application_name="plans")
    await database.open()
    async with database._pool.connection() as connection:
        yield connection
    await database.close()


@asynccontextmanager
async def planned_when_new(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with pooled(url) as connection:
        await prepare(connection)
        await execute(url, *map(filled, FILL), *(f"ANALYZE {table}" for table in KNOWN_WELL))
        yield connection


@asynccontextmanager
async def planned_after_a_quiet_night(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    await execute(url, *map(filled, FILL))
    kept = [f"CREATE TABLE kept_{table} AS SELECT * FROM {table}" for table in DRAINED]
    await execute(url, *kept, *(f"DELETE FROM {table}" for table in DRAINED), "VACUUM ANALYZE")
    async with pooled(url) as connection:
        await prepare(connection)
        await execute(url, *(f"INSERT INTO {table} SELECT * FROM kept_{table}" for table in DRAINED))
        yield connection


@asynccontextmanager
async def planned_when_nothing_was_held(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """Everything is known to be full but the leases, which were looked at between two bursts."""
    await execute(url, *map(filled, FILL), "CREATE TABLE kept_leases AS SELECT * FROM leases", "DELETE FROM leases")
    await execute(url, "VACUUM ANALYZE", "INSERT INTO leases SELECT * FROM kept_leases")
    async with pooled(url) as connection:
        await prepare(connection)
        yield connection


@asynccontextmanager
async def planned_after_a_vacuum_of_what_was_empty(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A vacuum that found no rows and could not give back the pages, because somebody was using them."""
    async with believed_empty(url, DRAINED) as connection:
        yield connection


@asynccontextmanager
async def planned_before_all_was_committed(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A vacuum that came while a large transaction was filling the tables, and saw none of its rows."""
    async with believed_empty(url, {*DRAINED, *BIG, "attempts", "endpoint_flow"} - KNOWN_WELL) as connection:
        yield connection


@asynccontextmanager
async def believed_empty(url: str, names: Collection[str]) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    await execute(url, *map(filled, FILL), "ANALYZE")
    tables = ", ".join(f"'{table}'::regclass" for table in names)
    await execute(
        url,
        f"UPDATE pg_class SET reltuples = 0, relpages = 5 WHERE oid IN ({tables})",
        "UPDATE pg_class SET reltuples = 0, relpages = 1"
        f" WHERE oid IN (SELECT indexrelid FROM pg_index WHERE indrelid IN ({tables}))",
        f"DELETE FROM pg_statistic WHERE starelid IN ({tables})",
    )
    async with pooled(url) as connection:
        await prepare(connection)
        yield connection


@asynccontextmanager
async def planned_when_full(url: str) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    await execute(url, *map(filled, FILL), "ANALYZE")
    async with pooled(url) as connection:
        await prepare(connection)
        yield connection


@pytest.fixture(
    scope="module",
    params=[
        planned_when_new,
        planned_after_a_quiet_night,
        planned_when_nothing_was_held,
        planned_after_a_vacuum_of_what_was_empty,
        planned_before_all_was_committed,
        planned_when_full,
    ],
    ids=lambda f: f.__name__,
)
async def connection(
    request: pytest.FixtureRequest, databases: Databases, migrated_url: str
) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    async with databases.copy(migrated_url) as url, request.param(url) as opened:
        yield opened


@pytest.mark.parametrize("name", HOT)
async def test_a_hot_statement_reads_by_index(connection: psycopg.AsyncConnection[Any], name: str) -> None:
    plan = await run(connection, name)
    reads = [node for node in nodes(plan) if node.get("Relation Name") in BIG and "Scan" in node["Node Type"]]
    assert [node["Relation Name"] for node in reads if node["Node Type"] == "Seq Scan"] == []


@pytest.mark.parametrize("name", HOT)
async def test_a_hot_statement_touches_what_it_handles_and_no_more(
    connection: psycopg.AsyncConnection[Any], name: str
) -> None:
    hot = HOT[name]
    plan = await run(connection, name)
    assert plan["Shared Hit Blocks"] + plan["Shared Read Blocks"] <= hot.rows * PAGES_A_ROW
    for node in nodes(plan):
        if node.get("Relation Name") in BIG and "Scan" in node["Node Type"]:
            seen = node["Actual Rows"] + node.get("Rows Removed by Filter", 0)
            assert seen * node["Actual Loops"] <= 2 * hot.rows, node["Relation Name"]


@pytest.mark.parametrize("name", HOT)
async def test_a_hot_statement_compares_no_row_of_its_batch_with_all_others(
    connection: psycopg.AsyncConnection[Any], name: str
) -> None:
    plan = await run(connection, name)
    seen = {
        node["CTE Name"]: node["Actual Rows"] * node["Actual Loops"]
        for node in nodes(plan)
        if node["Node Type"] == "CTE Scan"
    }
    assert {cte: rows for cte, rows in seen.items() if rows > 2 * HOT[name].rows} == {}


OLD_REVISIONS = (
    f"UPDATE endpoints SET revision = 51 WHERE endpoint_id = ANY ({FIRST_QUEUES})",
    "INSERT INTO endpoint_references (namespace, kind, name, endpoint_id, revision, path)"
    f" SELECT 'default', 'CONFIG', 'shop', q, revision, path FROM unnest({FIRST_QUEUES}) AS q,"
    " generate_series(1, 51) AS revision, unnest(ARRAY['', 'a', 'b']) AS path",
)
CAN_MATTER = ROWS * 10 // QUEUES  # of the ten endpoints that refer to it, in each table


@pytest.mark.parametrize("plan_cache_mode", ["force_custom_plan", "force_generic_plan"])
async def test_who_needs_a_config_is_found_in_one_look_at_what_waits_however_many_revisions_named_it(
    connection: psycopg.AsyncConnection[Any], plan_cache_mode: str
) -> None:
    statement, names = numbered(POSTGRES_STATEMENTS["find_referrers"])
    values = {"namespace": "'default'", "kind": "'CONFIG'", "name": "'shop'"}
    async with connection.transaction(force_rollback=True):
        for statement_before in OLD_REVISIONS:
            await connection.execute(statement_before)
        await connection.execute(f"SET LOCAL plan_cache_mode = {plan_cache_mode}")
        await connection.execute(f"PREPARE referrers AS {statement}")
        try:
            call = f"EXECUTE referrers({', '.join(values[name] for name in names)})"
            cursor = await connection.execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {call}")
            ((explained,),) = await cursor.fetchall()
        finally:
            await connection.execute("DEALLOCATE referrers")
    plan = explained[0]["Plan"]
    seen: dict[str, float] = {}
    for node in nodes(plan):
        if node.get("Relation Name") in BIG | {"leases"} and "Scan" in node["Node Type"]:
            rows = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            seen[node["Relation Name"]] = seen.get(node["Relation Name"], 0) + rows
    assert plan["Actual Rows"] == 10 * 3
    assert seen["timers"] <= ROWS
    assert seen["ready_queue"] <= CAN_MATTER
    assert seen["leases"] <= 2 * BATCH
    assert seen["executions"] <= 2 * CAN_MATTER + 2 * BATCH


async def execute(url: str, *statements: str) -> None:
    async with await psycopg.AsyncConnection.connect(url, autocommit=True) as connection:
        for statement in statements:
            await connection.execute(statement)
