"""What must be true of the tables when all work is done, whatever went wrong on the way. Read from the tables alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any
from uuid import UUID

from tests.support.engine import Engine

_FAULTS = {
    "a job without its execution": """
        SELECT j.job_id FROM jobs AS j
        WHERE j.trigger_type <> 'CRON' AND NOT EXISTS (SELECT 1 FROM executions AS e WHERE e.execution_id = j.job_id)""",
    "an execution without its job": """
        SELECT e.execution_id FROM executions AS e WHERE NOT EXISTS (SELECT 1 FROM jobs AS j WHERE j.job_id = e.job_id)""",
    "an execution that has not ended": "SELECT execution_id, status FROM executions WHERE completed_at IS NULL",
    "attempts with gaps, or not as many as counted": """
        SELECT e.execution_id, e.status, e.attempt_count, count(a.attempt_number), max(a.attempt_number)
        FROM executions AS e LEFT JOIN attempts AS a ON a.execution_id = e.execution_id
        GROUP BY e.execution_id
        HAVING count(a.attempt_number) <> e.attempt_count OR coalesce(max(a.attempt_number), 0) <> e.attempt_count""",
    "an end that its last attempt does not bear out": """
        SELECT e.execution_id, e.status, a.status
        FROM executions AS e
        LEFT JOIN attempts AS a ON a.execution_id = e.execution_id AND a.attempt_number = e.attempt_count
        WHERE e.status IN ('SUCCESS', 'FAILED') AND a.status IS DISTINCT FROM e.status""",
    "an attempt after a success": """
        SELECT e.execution_id, a.attempt_number
        FROM executions AS e JOIN attempts AS a ON a.execution_id = e.execution_id AND a.attempt_number < e.attempt_count
        WHERE a.status = 'SUCCESS'""",
    "a lease left over": "SELECT worker_id, execution_id FROM leases",
    "a timer left over": "SELECT execution_id, fire_at FROM timers",
    "a queue row left over": "SELECT execution_id, ready_at FROM ready_queue",
    "a delivery still counted": "SELECT endpoint_id, in_flight FROM endpoint_flow WHERE in_flight <> 0",
}


async def all_have_ended(engine: Engine) -> bool:
    """True when no execution has anything before it, and no queue row waits to be dropped."""
    return bool(
        await engine.value(
            "SELECT NOT EXISTS (SELECT 1 FROM executions WHERE completed_at IS NULL)"
            " AND NOT EXISTS (SELECT 1 FROM ready_queue)"
        )
    )


async def faults_of(engine: Engine, accepted: Iterable[UUID] = ()) -> dict[str, list[tuple[Any, ...]]]:
    """All that is wrong, by what it is; `accepted`: jobs that somebody was told to have been taken."""
    found = {what: await engine.rows(query) for what, query in _FAULTS.items()}
    found["a job that was accepted and is not there"] = await engine.rows(
        "SELECT x FROM unnest(%s::uuid[]) AS x WHERE x NOT IN (SELECT job_id FROM jobs)", list(accepted)
    )
    return {what: rows for what, rows in found.items() if rows}


async def unexplained(
    engine: Engine, delivered: Iterable[tuple[UUID, int]], taken: Collection[tuple[UUID, int]]
) -> dict[str, list[Any]]:
    """Deliveries, as (execution, attempt), that the attempts do not account for; `taken`: those that the target took."""
    delivered = Counter(delivered)
    rows = await engine.rows("SELECT execution_id, attempt_number, status, error ->> 'type' FROM attempts")
    recorded = {(execution_id, number): (status, error) for execution_id, number, status, error in rows}
    as_it_was = {("SUCCESS", None), ("FAILED", "WORKER_LOST")}
    found = {
        "delivered twice in one attempt": [pair for pair, times in delivered.items() if times > 1],
        "delivered without an attempt on record": [pair for pair in delivered if pair not in recorded],
        "taken, and recorded as something else": [p for p in taken if recorded.get(p) not in as_it_was],
        "a success that was never delivered": [
            pair for pair, (status, _) in recorded.items() if status == "SUCCESS" and pair not in delivered
        ],
    }
    return {what: pairs for what, pairs in found.items() if pairs}
