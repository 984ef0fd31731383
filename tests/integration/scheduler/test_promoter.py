"""The promoter: on time, told by the database's clock, woken by hints."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID

from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_scheduler.promoter import Promoter
from tests.integration.scheduler.conftest import AHEAD_SEC
from tests.support.engine import Engine, MadeEndpoint
from tests.support.hints import HintedQueues
from tests.support.rounds import all_rounds
from tests.support.waiting import wait_until


async def make_later(
    engine: Engine, seconds: float, endpoint: MadeEndpoint | None = None, count: int = 1
) -> list[UUID]:
    run_at = await engine.now() + timedelta(seconds=seconds)
    created = await engine.create(endpoint or await engine.endpoint(), count, run_at=run_at)
    return [job.job_id for job in created]


async def test_all_that_is_due_is_promoted_without_a_pause(engine: Engine, promoter: Promoter) -> None:
    due = await make_later(engine, 3600, count=1100)
    await engine.timers_come_due()
    await make_later(engine, 3600)
    await all_rounds(promoter.run_once)
    assert sorted(await engine.waiting()) == sorted(due)


async def test_a_round_promotes_no_more_than_a_batch_of_a_lane(engine: Engine, promoter: Promoter) -> None:
    """What stops a promoter, or asks how it is, comes between two rounds."""
    await make_later(engine, 3600, count=600 * len(engine.lanes))
    await engine.timers_come_due()
    assert await promoter.run_once() == 0
    assert await engine.waiting("timers")


async def test_the_dispatchers_are_told_which_queues_have_work(
    engine: Engine, promoter: Promoter, hinted: HintedQueues
) -> None:
    endpoint = await engine.endpoint()
    await make_later(engine, 3600, endpoint)
    await engine.timers_come_due()
    await promoter.run_once()
    assert hinted.queues == [endpoint.endpoint_id]


async def test_a_round_says_when_the_next_timer_is_due(engine: Engine, promoter: Promoter) -> None:
    assert await promoter.run_once() is None
    await make_later(engine, 3600)
    await make_later(engine, 20)
    seconds = await promoter.run_once()
    assert seconds is not None
    assert 10 < seconds <= 20


async def test_a_timer_fires_when_it_is_due_though_the_interval_is_long(engine: Engine, promoter: Promoter) -> None:
    (execution_id,) = await make_later(engine, 0.2)
    await promoter.loop.start()
    await wait_until(engine.waiting, what="promotion")
    await promoter.loop.stop()
    promoted_at = await engine.value("SELECT ready_at FROM ready_queue WHERE execution_id = %s", execution_id)
    run_at = (await engine.execution(execution_id)).run_at
    assert run_at <= promoted_at < run_at + timedelta(seconds=2)


async def test_a_timer_is_handed_over_before_its_time(
    engine: Engine, promoter_ahead: Promoter, hinted: HintedQueues
) -> None:
    (execution_id,) = await make_later(engine, AHEAD_SEC / 2)
    await promoter_ahead.run_once()
    assert await engine.waiting() == [execution_id]
    assert hinted.queues


async def test_a_round_ends_half_the_lead_before_the_next_timer(engine: Engine, promoter_ahead: Promoter) -> None:
    await make_later(engine, AHEAD_SEC + 10)
    seconds = await promoter_ahead.run_once()
    assert seconds is not None
    assert AHEAD_SEC / 2 < seconds <= AHEAD_SEC / 2 + 10
    assert await engine.waiting() == []


async def test_timers_one_after_the_other_fire_each_in_its_time(engine: Engine, promoter: Promoter) -> None:
    created = [(await make_later(engine, seconds))[0] for seconds in (0.2, 0.4, 0.6)]
    await promoter.loop.start()
    await wait_until(lambda: _all_waiting(engine, created), what="promotion")
    await promoter.loop.stop()
    for execution_id in created:
        promoted_at = await engine.value("SELECT ready_at FROM ready_queue WHERE execution_id = %s", execution_id)
        run_at = (await engine.execution(execution_id)).run_at
        assert run_at <= promoted_at < run_at + timedelta(seconds=2)


async def _all_waiting(engine: Engine, created: list[UUID]) -> bool:
    return sorted(await engine.waiting()) == sorted(created)


async def test_a_hint_wakes_it_for_something_earlier(engine: Engine, promoter: Promoter) -> None:
    await make_later(engine, 3600)
    await promoter.loop.start()
    await wait_until(lambda: promoter.loop.last_run, what="a first round")
    (earlier,) = await make_later(engine, 0.1)
    promoter.hint((await engine.execution(earlier)).run_at)
    assert await wait_until(engine.waiting, what="promotion") == [earlier]
    await promoter.loop.stop()


async def test_a_hint_of_something_later_does_not_wake_it(engine: Engine, promoter: Promoter) -> None:
    await make_later(engine, 1800)
    await promoter.loop.start()
    first = await wait_until(lambda: promoter.loop.last_run, what="a first round")
    promoter.hint(await engine.now() + timedelta(hours=1))
    promoter.hint(await engine.now() + timedelta(hours=2))
    await engine.now()  # whatever a woken loop would do, it has begun by now
    await promoter.loop.stop()
    assert promoter.loop.last_run == first


async def test_a_lost_hint_costs_the_interval_and_nothing_else(engine: Engine, hinted: HintedQueues) -> None:
    promoter = Promoter(engine.timers, lanes=engine.lanes, wake_queues=hinted, interval_sec=0.1)
    await promoter.loop.start()
    await wait_until(lambda: promoter.loop.last_run, what="a first round")
    (execution_id,) = await make_later(engine, 0.05)
    assert await wait_until(engine.waiting, what="promotion") == [execution_id]
    await promoter.loop.stop()


async def test_two_promoters_share_the_work(engine: Engine, make_promoter: Callable[[], Promoter]) -> None:
    created = await make_later(engine, 3600, count=1200)
    await engine.timers_come_due()
    await asyncio.gather(all_rounds(make_promoter().run_once), all_rounds(make_promoter().run_once))
    assert sorted(await engine.waiting()) == sorted(created)
    assert set(await engine.statuses(created[:20])) == {ExecutionStatus.QUEUED}
