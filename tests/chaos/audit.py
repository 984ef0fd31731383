"""The audit that ends every scenario: what was accepted against what the database says and what receivers saw."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg

from taskexecutor_common.ids import execution_id_text

FINAL = {"SUCCESS", "FAILED", "CANCELLED"}
_EXAMPLES = 5

Sent = tuple[str, int]
"""Execution id and attempt number, as a receiver saw them."""


@dataclass(frozen=True, slots=True)
class _Attempt:
    number: int
    status: str
    error: str | None


@dataclass(frozen=True, slots=True)
class _Execution:
    execution_id: str
    status: str
    attempt_count: int
    attempts: list[_Attempt] = field(default_factory=list)


@dataclass(slots=True)
class Audit:
    """What became of the accepted jobs. `faults` is empty when every promise was kept."""

    accepted: int
    delivered: int = 0
    failed: int = 0
    cancelled: int = 0
    duplicated: int = 0
    """Executions whose receiver saw one more request than it failed: an attempt was lost after it had been sent."""
    lost: int = 0
    stuck: int = 0
    lost_attempts: int = 0
    faults: Counter[str] = field(default_factory=Counter)
    examples: dict[str, list[str]] = field(default_factory=lambda: defaultdict(list))

    def blame(self, what: str, whom: object) -> None:
        """Notes a broken promise."""
        self.faults[what] += 1
        if len(self.examples[what]) < _EXAMPLES:
            self.examples[what].append(str(whom))


async def audit(
    connection: psycopg.AsyncConnection[Any],
    accepted: Collection[str],
    sent: Iterable[Sent],
    dropped: Collection[Sent],
) -> Audit:
    """Compares the clients' log, the database and the receivers' log; `dropped`: what receivers hung up on in silence."""
    result = Audit(len(accepted))
    executions = await _read(connection)
    requests = Counter(sent)
    for execution_id in accepted:
        if execution_id not in executions:
            result.lost += 1
            result.blame("accepted, and not in the database", execution_id)
    for execution in executions.values():
        _judge(result, execution, requests)
    _judge_requests(result, executions, requests, dropped)
    await _judge_tables(result, connection)
    return result


async def _read(connection: psycopg.AsyncConnection[Any]) -> dict[str, _Execution]:
    rows = await connection.execute("SELECT execution_id, status, attempt_count FROM executions")
    found = {
        execution_id: _Execution(execution_id_text(execution_id), status, count)
        for execution_id, status, count in await rows.fetchall()
    }
    rows = await connection.execute(
        "SELECT execution_id, attempt_number, status, error->>'type' FROM attempts ORDER BY execution_id, attempt_number"
    )
    for execution_id, *attempt in await rows.fetchall():
        found[UUID(str(execution_id))].attempts.append(_Attempt(*attempt))
    return {execution.execution_id: execution for execution in found.values()}


def _judge(result: Audit, execution: _Execution, requests: Counter[Sent]) -> None:
    name, attempts = execution.execution_id, execution.attempts
    result.delivered += execution.status == "SUCCESS"
    result.failed += execution.status == "FAILED"
    result.cancelled += execution.status == "CANCELLED"
    if execution.status not in FINAL:
        result.stuck += 1
        result.blame(f"still {execution.status}", name)
        return
    if [attempt.number for attempt in attempts] != list(range(1, execution.attempt_count + 1)):
        result.blame("attempts have gaps", (name, attempts))
    if any(attempt.status == "SUCCESS" for attempt in attempts[:-1]):
        result.blame("tried again after it had succeeded", (name, attempts))
    if (execution.status == "SUCCESS") != (bool(attempts) and attempts[-1].status == "SUCCESS"):
        result.blame("its end is not its last attempt's", (name, attempts))
    if execution.status == "SUCCESS" and not requests[name, execution.attempt_count]:
        result.lost += 1
        result.blame("SUCCESS that no receiver saw", name)
    lost = [attempt for attempt in attempts if attempt.error == "WORKER_LOST"]
    result.lost_attempts += len(lost)
    result.duplicated += any(requests[name, attempt.number] for attempt in lost)


def _judge_requests(
    result: Audit, executions: dict[str, _Execution], requests: Counter[Sent], dropped: Collection[Sent]
) -> None:
    """Each request is an attempt of an execution. One is sent twice only where its connection ended without a byte."""
    for (name, number), count in requests.items():
        execution = executions.get(name)
        if execution is None:
            result.blame("sent, and not in the database", name)
        elif number > execution.attempt_count:
            result.blame("sent, and no attempt of it recorded", (name, number))
        elif count > 1 + ((name, number) in dropped):
            result.blame("one attempt sent again without a reason", (name, number, count))


async def _judge_tables(result: Audit, connection: psycopg.AsyncConnection[Any]) -> None:
    """What drives executions holds nothing that has ended, and counts nothing that is over."""
    for what, query in _LEFT_OVERS.items():
        rows = await connection.execute(query)
        for (whom,) in await rows.fetchall():
            result.blame(what, whom)


_LEFT_OVERS = {
    "a lease of what does not run": """
        SELECT l.execution_id FROM leases AS l JOIN executions AS e USING (execution_id) WHERE e.status <> 'RUNNING'""",
    "it runs without a lease": """
        SELECT e.execution_id FROM executions AS e LEFT JOIN leases AS l USING (execution_id)
        WHERE e.status = 'RUNNING' AND l.execution_id IS NULL""",
    "a timer of what has ended": """
        SELECT t.execution_id FROM timers AS t JOIN executions AS e USING (execution_id)
        WHERE e.status NOT IN ('PENDING', 'RETRYING')""",
    "queued, though it has ended": """
        SELECT r.execution_id FROM ready_queue AS r JOIN executions AS e USING (execution_id)
        WHERE e.status IN ('SUCCESS', 'FAILED')""",
    "a limit counts deliveries that are over": """
        SELECT f.endpoint_id FROM endpoint_flow AS f
        WHERE f.in_flight <> (SELECT count(*) FROM leases AS l WHERE l.counted_for = f.endpoint_id)""",
    "two jobs for one idempotency key": """
        SELECT min(j.idempotency_key) FROM jobs AS j WHERE j.idempotency_key IS NOT NULL
        GROUP BY j.namespace, j.endpoint_id, j.idempotency_key HAVING count(*) > 1""",
}


async def judge_ticks(result: Audit, connection: psycopg.AsyncConnection[Any], every: timedelta) -> int:
    """Schedules that fire regularly have fired at each tick of their life, once. Answers how many ticks there were."""
    rows = await connection.execute(
        "SELECT e.job_id, array_agg(e.tick_at ORDER BY e.tick_at) FROM executions AS e WHERE e.tick_at IS NOT NULL GROUP BY 1"
    )
    ticks = 0
    for job_id, times in await rows.fetchall():
        ticks += len(times)
        for before, after in itertools.pairwise(times):
            if after - before != every:
                result.blame("a tick is missing or doubled", (job_id, before, after))
    return ticks
