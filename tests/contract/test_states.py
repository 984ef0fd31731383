"""The statements move executions as model/state.py says, and in no other way."""

from __future__ import annotations

import re
from dataclasses import replace
from uuid import UUID

import pytest

from taskexecutor_common.model.state import MOVES, WAITING, AttemptStatus, ExecutionStatus
from taskexecutor_common.store.statements import STATEMENTS
from tests.support.engine import LOST, NAMESPACE, Engine, Worker, success_of
from tests.support.sql_text import ctes

S = ExecutionStatus
Move = tuple[ExecutionStatus, ExecutionStatus]

EVERY_MOVE = {(origin, target) for origin, targets in MOVES.items() for target in targets}
MOVERS = [
    cte
    for text in STATEMENTS.values()
    for cte in ctes(text)
    if re.search(r"UPDATE executions AS e\s+SET [^;]*?\bstatus = ", cte.body)
]


def written_moves(body: str) -> set[Move]:
    """The moves that an UPDATE of executions names: from the statuses of its guard to those that it sets."""
    setting, _, guard = body.partition("WHERE")
    value = re.search(r"\bstatus = (CASE .*? END|'\w+'|r\.next_status)", setting, re.DOTALL)
    assert value
    at_the_claims_end = {S.SUCCESS, S.FAILED, S.RETRYING}
    targets = {S(word) for word in re.findall(r"'(\w+)'", value[1])} or at_the_claims_end
    left = re.search(r"e\.status (?:= ('\w+')|IN \(([^)]*)\))", guard)
    assert left, "every move names the status it leaves"
    origins = {S(word) for word in re.findall(r"\w+", left[1] or left[2])}
    return {(origin, target) for origin in origins for target in targets}


@pytest.mark.parametrize("cte", MOVERS, ids=lambda cte: cte.name)
def test_a_statement_leaves_only_statuses_that_its_move_may_leave(cte) -> None:
    assert written_moves(cte.body) <= EVERY_MOVE


def test_the_statements_together_make_every_move() -> None:
    assert set().union(*(written_moves(cte.body) for cte in MOVERS)) == EVERY_MOVE


def test_every_status_is_written_by_a_guarded_move_or_at_birth() -> None:
    writers = sum(len(re.findall(r"UPDATE executions\b", text)) for text in STATEMENTS.values())
    assert writers == len(MOVERS)


def test_an_execution_is_born_waiting() -> None:
    inserts = [cte.body for text in STATEMENTS.values() for cte in ctes(text) if "INSERT INTO executions" in cte.body]
    born = {word for body in inserts for word in re.findall(r"'([A-Z]+)'", body)}
    assert born == {"PENDING", "QUEUED"}


# --- the same, tried: every statement on an execution in every status ---


async def an_execution(engine: Engine, status: ExecutionStatus, worker: Worker) -> UUID:
    """One in this status that every statement finds: queued, timed and leased alike."""
    endpoint = await engine.endpoint(max_attempts=3)
    execution_id = await engine.create_one(endpoint)
    await engine.rows(
        "UPDATE executions SET status = %s, attempt_count = 1, started_at = now(), worker_id = %s, completed_at = %s"
        " WHERE execution_id = %s",
        status.value,
        worker.worker_id if status is S.RUNNING else None,
        await engine.now() if status.is_final else None,
        execution_id,
    )
    await engine.rows(
        "INSERT INTO leases VALUES (%s, %s, 1, now() - interval '1 hour')", worker.worker_id, execution_id
    )
    return execution_id


async def cancel(engine: Engine, execution_id: UUID, _: Worker) -> None:
    await engine.executions.cancel(NAMESPACE, execution_id)


async def claim(engine: Engine, execution_id: UUID, _: Worker) -> None:
    await engine.rows("DELETE FROM leases")
    queue = await engine.value("SELECT queue FROM executions WHERE execution_id = %s", execution_id)
    await (await engine.worker()).queue.claim({queue: 1})


async def promote(engine: Engine, execution_id: UUID, _: Worker) -> None:
    await engine.rows("DELETE FROM ready_queue")
    await engine.rows(
        "INSERT INTO timers SELECT lane, now(), execution_id, queue, priority FROM executions WHERE execution_id = %s",
        execution_id,
    )
    await engine.promote()


async def finalise(engine: Engine, execution_id: UUID, worker: Worker, next_status: ExecutionStatus) -> None:
    result = replace(
        success_of(execution_id, 1),
        next_status=next_status,
        attempt_status=AttemptStatus.SUCCESS if next_status is S.SUCCESS else AttemptStatus.FAILED,
    )
    await worker.queue.finalise([result])


async def succeed(engine: Engine, execution_id: UUID, worker: Worker) -> None:
    await finalise(engine, execution_id, worker, S.SUCCESS)


async def fail(engine: Engine, execution_id: UUID, worker: Worker) -> None:
    await finalise(engine, execution_id, worker, S.FAILED)


async def retry(engine: Engine, execution_id: UUID, worker: Worker) -> None:
    await finalise(engine, execution_id, worker, S.RETRYING)


async def reclaim(engine: Engine, _: UUID, __: Worker) -> None:
    await engine.instances.reclaim(LOST)


async def reclaim_the_last(engine: Engine, execution_id: UUID, _: Worker) -> None:
    await engine.rows("UPDATE executions SET max_attempts = 1 WHERE execution_id = %s", execution_id)
    await engine.instances.reclaim(LOST)


TRIED = {
    cancel: {(origin, S.CANCELLED) for origin in WAITING},
    claim: {(origin, S.RUNNING) for origin in WAITING},
    promote: {(S.PENDING, S.QUEUED)},
    succeed: {(S.RUNNING, S.SUCCESS)},
    fail: {(S.RUNNING, S.FAILED)},
    retry: {(S.RUNNING, S.RETRYING)},
    reclaim: {(S.RUNNING, S.RETRYING)},
    reclaim_the_last: {(S.RUNNING, S.FAILED)},
}


@pytest.mark.parametrize("act", TRIED, ids=lambda act: act.__name__)
async def test_it_moves_what_it_may_and_leaves_alone_the_rest(engine: Engine, act) -> None:
    moved = set()
    for origin in ExecutionStatus:
        worker = await engine.worker()
        execution_id = await an_execution(engine, origin, worker)
        await act(engine, execution_id, worker)
        target = await engine.status(execution_id)
        if target is not origin:
            moved.add((origin, target))
    assert moved == TRIED[act]


def test_what_was_tried_is_every_move() -> None:
    assert set().union(*TRIED.values()) == EVERY_MOVE
