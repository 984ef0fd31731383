"""Recording how attempts ended: by the holder of the claim, once."""

from __future__ import annotations

import asyncio
from datetime import timedelta

import pytest

from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.store.database import Database
from tests.support.engine import LOST, Engine, failed, retrying, succeeded
from tests.support.line import Cut, Line


async def test_a_success_is_recorded_with_its_attempt(engine: Engine) -> None:
    worker, claim = await engine.running()
    (done,) = await worker.queue.finalise([succeeded(claim)])
    assert done.status is ExecutionStatus.SUCCESS
    execution = await engine.execution(claim.execution_id)
    assert execution.status is ExecutionStatus.SUCCESS
    assert execution.completed_at is not None
    assert execution.output == {"status_code": 200}
    assert await engine.attempts(claim.execution_id) == [(1, "SUCCESS", None)]
    assert await engine.count("leases") == 0


async def test_a_failure_is_recorded_with_its_error_and_log(engine: Engine) -> None:
    worker, claim = await engine.running()
    await worker.queue.finalise([failed(claim)])
    assert await engine.status(claim.execution_id) is ExecutionStatus.FAILED
    assert await engine.attempts(claim.execution_id) == [(1, "FAILED", "HTTP_ERROR")]
    (log,) = await engine.executions.list_logs(claim.execution_id, (0, 0), 10)
    assert (log.attempt_number, log.message) == (1, "attempt failed: 500")


async def test_a_retry_waits_among_the_timers_for_its_delay(engine: Engine) -> None:
    worker, claim = await engine.running()
    before = await engine.now()
    (done,) = await worker.queue.finalise([retrying(claim, delay_ms=60_000)])
    assert done.run_at is not None
    assert timedelta(seconds=60) <= done.run_at - before <= timedelta(seconds=65)
    assert await engine.rows("SELECT execution_id, fire_at FROM timers") == [(claim.execution_id, done.run_at)]
    assert await engine.waiting() == []


async def test_a_result_is_recorded_once(engine: Engine) -> None:
    worker, claim = await engine.running()
    await worker.queue.finalise([succeeded(claim)])
    await worker.queue.finalise([failed(claim)])
    assert await engine.status(claim.execution_id) is ExecutionStatus.SUCCESS
    assert await engine.attempts(claim.execution_id) == [(1, "SUCCESS", None)]


async def test_what_was_recorded_before_counts_as_done(engine: Engine) -> None:
    """The call that recorded it failed before it could say so."""
    worker, claim = await engine.running()
    await worker.queue.finalise([succeeded(claim)])
    (done,) = await worker.queue.finalise([succeeded(claim)])
    assert (done.execution_id, done.status) == (claim.execution_id, ExecutionStatus.SUCCESS)


async def test_what_was_recorded_of_a_lost_worker_does_not_count_as_done(engine: Engine) -> None:
    worker, claim = await engine.running()
    await engine.leases_run_out()
    await engine.instances.reclaim(LOST)
    assert await engine.attempts(claim.execution_id) == [(1, "FAILED", "WORKER_LOST")]
    assert await worker.queue.finalise([retrying(claim)]) == []


async def test_a_worker_that_lost_its_claim_changes_nothing(engine: Engine) -> None:
    """Declared dead, it comes back while its successor runs the next attempt."""
    worker, claim = await engine.running()
    await engine.falls_silent(worker)
    await engine.instances.bury_silent()
    await engine.instances.reclaim(LOST)
    successor = await engine.worker()
    (again,) = await successor.queue.claim({claim.queue: 1})
    await engine.beat(worker.worker_id)
    assert await worker.queue.finalise([succeeded(claim)]) == []
    assert await engine.status(claim.execution_id) is ExecutionStatus.RUNNING
    assert await engine.attempts(claim.execution_id) == [(1, "FAILED", "WORKER_LOST")]
    assert len(await successor.queue.finalise([succeeded(again)])) == 1


async def test_a_worker_that_never_held_the_claim_changes_nothing(engine: Engine) -> None:
    holder, claim = await engine.running()
    stranger = await engine.worker()
    assert await stranger.queue.finalise([succeeded(claim)]) == []
    assert await engine.attempts(claim.execution_id) == []
    assert len(await holder.queue.finalise([succeeded(claim)])) == 1


async def test_an_older_attempt_of_the_same_worker_changes_nothing(engine: Engine) -> None:
    worker, claim = await engine.running()
    await worker.queue.finalise([retrying(claim)])
    await engine.promote()
    (again,) = await worker.queue.claim({claim.queue: 1})
    assert again.attempt_count == 2
    await worker.queue.finalise([succeeded(claim)])
    assert await engine.status(claim.execution_id) is ExecutionStatus.RUNNING
    assert await engine.count("leases") == 1


async def test_a_lost_claim_in_a_batch_does_not_hold_up_the_others(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.create(endpoint, 3)
    worker = await engine.worker()
    claims = await worker.queue.claim({endpoint.endpoint_id: 3})
    await engine.rows(
        "UPDATE leases SET expires_at = now() - interval '1 hour' WHERE execution_id = %s", claims[0].execution_id
    )
    await engine.instances.reclaim(LOST)
    done = await worker.queue.finalise([succeeded(claim) for claim in claims])
    assert {d.execution_id for d in done} == {claim.execution_id for claim in claims[1:]}


@pytest.mark.parametrize("cut", Cut)
async def test_a_result_without_an_answer_is_recorded_once(
    engine: Engine, far_db: Database, line: Line, cut: Cut
) -> None:
    endpoint = await engine.endpoint(max_attempts=3)
    await engine.create(endpoint, 2)
    worker = await engine.worker(far_db)
    good, bad = await worker.queue.claim({endpoint.endpoint_id: 2})
    line.plan(cut)
    done = await worker.queue.finalise([succeeded(good), retrying(bad, delay_ms=60_000)])
    assert line.cuts == 1
    assert {d.execution_id: d.status for d in done} == {
        good.execution_id: ExecutionStatus.SUCCESS,
        bad.execution_id: ExecutionStatus.RETRYING,
    }
    assert await engine.attempts(good.execution_id) == [(1, "SUCCESS", None)]
    assert await engine.attempts(bad.execution_id) == [(1, "FAILED", "HTTP_ERROR")]
    assert await engine.waiting("timers") == [bad.execution_id]


async def test_a_result_without_an_answer_whose_claim_was_lost_counts_as_lost(
    engine: Engine, far_db: Database, line: Line
) -> None:
    """The reclaimer's record of the attempt must not be taken for one's own."""
    worker = await engine.worker(far_db)
    endpoint = await engine.endpoint(max_attempts=1)
    await engine.create(endpoint)
    claim = await engine.claim_one(endpoint, worker)
    await engine.leases_run_out()
    await engine.instances.reclaim(LOST)
    line.plan(Cut.AFTER_COMMIT)
    assert await worker.queue.finalise([succeeded(claim)]) == []
    assert await engine.status(claim.execution_id) is ExecutionStatus.FAILED


async def test_of_a_result_and_a_reclaim_at_once_one_wins(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=2)
    await engine.create(endpoint, 40)
    worker = await engine.worker()
    claims = await worker.queue.claim({endpoint.endpoint_id: 40})
    await engine.leases_run_out()
    *finalised, reclaimed = await asyncio.gather(
        *(worker.queue.finalise([succeeded(claim)]) for claim in claims), engine.instances.reclaim(LOST)
    )
    by_result = {done.execution_id for batch in finalised for done in batch}
    by_reclaim = {taken.execution_id for taken in reclaimed}
    for claim in claims:
        won = claim.execution_id in by_result
        expected = ExecutionStatus.SUCCESS if won else ExecutionStatus.RETRYING
        assert await engine.status(claim.execution_id) is expected
        assert len(await engine.attempts(claim.execution_id)) == 1
        assert won is not (claim.execution_id in by_reclaim)
    assert await engine.count("leases") == 0
