"""Cancelling: what waits, and nothing else, whoever else reaches for it at the same moment."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from uuid import UUID

import psycopg
import pytest

from taskexecutor_api.operations.cancel import cancel_execution
from taskexecutor_common.errors import ExecutionNotCancellable
from taskexecutor_common.model.endpoint import FlowControl
from taskexecutor_common.model.job import CronTick
from taskexecutor_common.model.state import ExecutionStatus
from tests.support.engine import LOST, NAMESPACE, Engine, retrying, succeeded


async def test_cancelling_a_timer_removes_it(engine: Engine) -> None:
    run_at = await engine.now() + timedelta(hours=1)
    execution_id = await engine.create_one(await engine.endpoint(), run_at=run_at)
    assert await engine.executions.cancel(NAMESPACE, execution_id)
    assert await engine.waiting("timers") == []


async def test_what_waits_for_its_retry_can_be_cancelled(engine: Engine) -> None:
    worker, claim = await engine.running()
    await worker.queue.finalise([retrying(claim, delay_ms=60_000)])
    assert await engine.executions.cancel(NAMESPACE, claim.execution_id)
    assert await engine.status(claim.execution_id) is ExecutionStatus.CANCELLED
    assert await engine.waiting("timers") == []


async def created(engine: Engine) -> UUID:
    return await engine.create_one(await engine.endpoint())


async def created_for_the_past(engine: Engine) -> UUID:
    return await engine.create_one(await engine.endpoint(), run_at=await engine.now() - timedelta(hours=1))


async def promoted(engine: Engine) -> UUID:
    execution_id = await engine.create_one(await engine.endpoint(), run_at=await engine.now() + timedelta(hours=1))
    await engine.promote(ahead_ms=7_200_000)
    return execution_id


async def promoted_for_its_retry(engine: Engine) -> UUID:
    worker, claim = await engine.running()
    await worker.queue.finalise([retrying(claim, delay_ms=60_000)])
    await engine.promote(ahead_ms=120_000)
    return claim.execution_id


async def lost_by_its_worker(engine: Engine) -> UUID:
    _, claim = await engine.running()
    await engine.leases_run_out()
    await engine.instances.reclaim(LOST)
    return claim.execution_id


async def ticked(engine: Engine) -> UUID:
    tick_at = await engine.now() - timedelta(minutes=1)
    job_id = await engine.create_cron(await engine.endpoint(), tick_at)
    execution_id = engine.new_id()
    tick = CronTick(job_id, tick_at, tick_at, tick_at + timedelta(hours=1), execution_id)
    await engine.timers.tick([tick])
    return execution_id


@pytest.mark.parametrize(
    "make",
    [created, created_for_the_past, promoted, promoted_for_its_retry, lost_by_its_worker, ticked],
    ids=lambda make: make.__name__,
)
async def test_cancelling_what_is_queued_removes_it(engine: Engine, make: Callable[[Engine], Awaitable[UUID]]) -> None:
    execution_id = await make(engine)
    assert await engine.waiting() == [execution_id]
    assert await engine.executions.cancel(NAMESPACE, execution_id)
    assert await engine.waiting() == []


async def test_what_was_cancelled_does_not_take_the_place_of_what_waits_behind_it(engine: Engine) -> None:
    endpoint = await engine.endpoint(flow_control=FlowControl(max_in_flight=1))
    for job in await engine.create(endpoint, 5):
        await engine.executions.cancel(NAMESPACE, job.job_id)
    alive = await engine.create_one(endpoint)
    (claim,) = await (await engine.worker()).queue.claim({endpoint.endpoint_id: 1})
    assert claim.execution_id == alive


async def test_what_was_promoted_late_and_cancelled_is_dropped_by_the_claim(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    execution_id = await engine.create_one(endpoint, run_at=await engine.now() + timedelta(hours=1))
    await engine.timers_come_due()
    await engine.promote()
    assert await engine.executions.cancel(NAMESPACE, execution_id)
    assert await (await engine.worker()).queue.claim({endpoint.endpoint_id: 1}) == []
    assert await engine.waiting() == []


async def test_a_cancellation_waits_for_nobody_who_holds_the_queue_row(engine: Engine, database_url: str) -> None:
    """A claim that held it would wait for the execution: each for the other."""
    endpoint = await engine.endpoint()
    execution_id = await engine.create_one(endpoint)
    async with await psycopg.AsyncConnection.connect(database_url) as holder:
        await holder.execute("SELECT execution_id FROM ready_queue FOR UPDATE")
        async with asyncio.timeout(10):
            assert await engine.executions.cancel(NAMESPACE, execution_id)
    assert await engine.waiting() == [execution_id]
    assert await (await engine.worker()).queue.claim({endpoint.endpoint_id: 1}) == []
    assert await engine.waiting() == []


async def test_what_runs_cannot_be_cancelled(engine: Engine) -> None:
    worker, claim = await engine.running()
    assert not await engine.executions.cancel(NAMESPACE, claim.execution_id)
    assert len(await worker.queue.finalise([succeeded(claim)])) == 1


async def test_what_begins_to_wait_for_its_retry_while_it_is_cancelled_is_cancelled(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    worker, claim = await engine.running()
    cancel = engine.executions.cancel

    async def beside_the_end_of_an_attempt(namespace: str, execution_id: UUID) -> bool:
        cancelled = await cancel(namespace, execution_id)
        await worker.queue.finalise([retrying(claim, delay_ms=60_000)])
        return cancelled

    monkeypatch.setattr(engine.executions, "cancel", beside_the_end_of_an_attempt)
    cancelled = await cancel_execution(engine.executions, NAMESPACE, claim.execution_id)
    assert cancelled.status is ExecutionStatus.CANCELLED
    assert await engine.waiting("timers") == []


async def test_a_cancellation_that_always_comes_too_late_gives_up(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    execution_id = await engine.create_one(await engine.endpoint())

    async def too_late(namespace: str, execution_id: UUID) -> bool:
        return False

    monkeypatch.setattr(engine.executions, "cancel", too_late)
    with pytest.raises(ExecutionNotCancellable):
        await cancel_execution(engine.executions, NAMESPACE, execution_id)


async def test_of_a_cancellation_and_a_claim_at_once_one_wins(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    created = [job.job_id for job in await engine.create(endpoint, 60)]
    worker = await engine.worker()
    *cancelled, claims, more = await asyncio.gather(
        *(engine.executions.cancel(NAMESPACE, execution_id) for execution_id in created),
        worker.queue.claim({endpoint.endpoint_id: 30}),
        worker.queue.claim({endpoint.endpoint_id: 30}),
    )
    claimed = {claim.execution_id for claim in [*claims, *more]}
    for execution_id, was_cancelled in zip(created, cancelled, strict=True):
        assert was_cancelled is not (execution_id in claimed)
        expected = ExecutionStatus.CANCELLED if was_cancelled else ExecutionStatus.RUNNING
        assert await engine.status(execution_id) is expected


async def test_what_was_cancelled_while_it_was_promoted_is_not_delivered(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    run_at = await engine.now() + timedelta(hours=1)
    created = [job.job_id for job in await engine.create(endpoint, 40, run_at=run_at)]
    await engine.timers_come_due()
    await asyncio.gather(
        engine.promote(), *(engine.executions.cancel(NAMESPACE, execution_id) for execution_id in created)
    )
    assert set(await engine.statuses(created)) == {ExecutionStatus.CANCELLED}
    assert await engine.waiting("timers") == []
    assert await (await engine.worker()).queue.claim({endpoint.endpoint_id: 100}) == []
