"""Promotion: what is due, nothing else, once."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

from taskexecutor_common.model.state import ExecutionStatus
from tests.integration.store.one_lane import LANE, in_one_lane
from tests.support.engine import NAMESPACE, Engine, retrying


async def later(engine: Engine, count: int = 1) -> list[UUID]:
    run_at = await engine.now() + timedelta(hours=1)
    return [job.job_id for job in await engine.create(await engine.endpoint(), count, run_at=run_at)]


async def test_only_what_is_due_is_promoted(engine: Engine) -> None:
    (due,), (not_due,) = await later(engine), await later(engine)
    await engine.timers_come_due([due])
    moved = await engine.promote()
    assert list(moved.values()) == [1]
    assert await engine.waiting() == [due]
    assert await engine.waiting("timers") == [not_due]
    assert await engine.statuses([due, not_due]) == [ExecutionStatus.QUEUED, ExecutionStatus.PENDING]


async def test_what_is_due_soon_is_promoted_ahead_and_keeps_its_time(engine: Engine) -> None:
    soon, not_so_soon = await later(engine, 2)
    await engine.rows(
        "UPDATE timers SET fire_at = fire_at - interval '59 minutes 50 seconds' WHERE execution_id = %s", soon
    )
    fire_at = await engine.value("SELECT fire_at FROM timers WHERE execution_id = %s", soon)
    promotions = [await engine.timers.promote(lane, ahead_ms=20_000) for lane in engine.lanes]
    assert await engine.waiting() == [soon]
    assert await engine.value("SELECT ready_at FROM ready_queue") == fire_at
    assert await engine.waiting("timers") == [not_so_soon]
    assert [next_due.due_in_ms > 20_000 for promotion in promotions if (next_due := promotion.upcoming)] == [True]


async def test_a_promotion_says_which_queues_have_work(engine: Engine) -> None:
    await later(engine, 2)
    await later(engine, 3)
    await engine.timers_come_due()
    moved = await engine.promote()
    queues = {row[0]: row[1] for row in await engine.rows("SELECT queue, count(*) FROM ready_queue GROUP BY queue")}
    assert moved == queues
    assert sorted(moved.values()) == [2, 3]


async def test_a_retry_stays_retrying_while_it_waits_to_be_claimed(engine: Engine) -> None:
    worker, claim = await engine.running()
    await worker.queue.finalise([retrying(claim)])
    await engine.promote()
    assert await engine.waiting() == [claim.execution_id]
    assert await engine.status(claim.execution_id) is ExecutionStatus.RETRYING


async def test_a_cancelled_execution_is_not_revived_by_its_promotion(engine: Engine) -> None:
    (execution_id,) = await later(engine)
    await engine.timers_come_due()
    timer = await engine.rows("SELECT lane, fire_at, execution_id, queue, priority FROM timers")
    await engine.executions.cancel(NAMESPACE, execution_id)
    await engine.rows("INSERT INTO timers VALUES (%s, %s, %s, %s, %s)", *timer[0])  # as if it had come between
    await engine.promote()
    assert await engine.status(execution_id) is ExecutionStatus.CANCELLED


async def test_two_promoters_at_once_move_each_timer_once(engine: Engine) -> None:
    created = [*await later(engine, 300), *await later(engine, 300)]
    await engine.timers_come_due()
    moved = await asyncio.gather(engine.promote(), engine.promote(), engine.promote())
    assert sum(each.total() for each in moved) == len(created)
    assert sorted(await engine.waiting()) == sorted(created)
    assert await engine.waiting("timers") == []


async def test_what_another_promoter_has_in_its_hand_is_passed_over(engine: Engine) -> None:
    held, free = await later(engine, 2)
    await engine.timers_come_due()
    await engine.rows("BEGIN")
    await engine.rows("SELECT 1 FROM timers WHERE execution_id = %s FOR UPDATE", held)
    moved = await asyncio.wait_for(engine.promote(), timeout=5)
    await engine.rows("ROLLBACK")
    assert list(moved.values()) == [1]
    assert await engine.waiting() == [free]


async def test_what_is_being_cancelled_is_not_waited_for(engine: Engine) -> None:
    """Who cancels has the execution and wants its timer: each would wait for the other."""
    cancelled, free = await later(engine, 2)
    await engine.timers_come_due()
    await engine.rows("BEGIN")
    await engine.rows("SELECT 1 FROM executions WHERE execution_id = %s FOR UPDATE", cancelled)
    await asyncio.wait_for(engine.promote(), timeout=5)
    await engine.rows("ROLLBACK")  # nothing was cancelled after all
    assert await engine.status(cancelled) is ExecutionStatus.PENDING
    assert await engine.status(free) is ExecutionStatus.QUEUED
    endpoint_id = (await engine.rows("SELECT queue FROM ready_queue LIMIT 1"))[0][0]
    claims = await (await engine.worker()).queue.claim({endpoint_id: 2})
    assert {claim.execution_id for claim in claims} == {cancelled, free}


@in_one_lane
async def test_one_promotion_is_bounded(engine: Engine) -> None:
    await later(engine, 600)
    await engine.timers_come_due()
    assert [(await engine.timers.promote(LANE)).count for _ in range(3)] == [500, 100, 0]


@in_one_lane
async def test_the_next_timer_is_told_by_the_databases_clock(engine: Engine) -> None:
    assert await engine.timers.next_timers([LANE]) == []
    await later(engine)
    (upcoming,) = await engine.timers.next_timers([LANE, LANE + 1])
    assert upcoming.lane == LANE
    assert 3_590_000 < upcoming.due_in_ms <= 3_600_000
    await engine.timers_come_due()
    (late,) = await engine.timers.next_timers([LANE])
    assert late.due_in_ms <= -1000


@in_one_lane
async def test_a_promotion_tells_the_lanes_next_timer(engine: Engine) -> None:
    due = await later(engine)
    await engine.timers_come_due(due)
    assert (await engine.timers.promote(LANE)).upcoming is None
    await later(engine)
    upcoming = (await engine.timers.promote(LANE)).upcoming
    assert upcoming is not None
    assert upcoming.due_at == (await engine.timers.next_timers([LANE]))[0].due_at
    assert 3_590_000 < upcoming.due_in_ms <= 3_600_000
