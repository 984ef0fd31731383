"""The reclaimer: buries when it may, takes back what was held, tells the dispatchers."""

from __future__ import annotations

import asyncio

import pytest

from taskexecutor_common.errors import Unavailable
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.instances import InstanceStore
from taskexecutor_scheduler.reclaimer import Reclaimer
from tests.support.engine import DEAD_AFTER_MS, REGION, Engine
from tests.support.hints import HintedQueues
from tests.support.line import Line
from tests.support.waiting import wait_until

CALM_SEC = 0.2


def a_reclaimer(store: InstanceStore, hinted: HintedQueues, *, calm_sec: float = 0.0) -> Reclaimer:
    return Reclaimer(store, wake_queues=hinted, interval_sec=60.0, calm_sec=calm_sec, outage_sec=75.0)


async def test_the_silent_are_buried_and_what_they_held_is_queued_again(engine: Engine, hinted: HintedQueues) -> None:
    worker, claim = await engine.running()
    await engine.falls_silent(worker)
    await a_reclaimer(engine.instances, hinted).run_once()
    assert await engine.status(claim.execution_id) is ExecutionStatus.RETRYING
    assert await engine.attempts(claim.execution_id) == [(1, "FAILED", "WORKER_LOST")]
    assert hinted.queues == [claim.queue]


async def test_what_failed_for_good_wakes_nobody(engine: Engine, hinted: HintedQueues) -> None:
    worker, claim = await engine.running(max_attempts=1)
    await engine.falls_silent(worker)
    await a_reclaimer(engine.instances, hinted).run_once()
    assert await engine.status(claim.execution_id) is ExecutionStatus.FAILED
    assert hinted.queues == []


async def test_more_than_a_batch_is_taken_back_in_one_round(engine: Engine, hinted: HintedQueues) -> None:
    endpoint = await engine.endpoint(max_attempts=2)
    for _ in range(3):
        await engine.create(endpoint, 100)
    worker = await engine.worker()
    await worker.queue.claim({endpoint.endpoint_id: 300})
    await engine.falls_silent(worker)
    await a_reclaimer(engine.instances, hinted).run_once()
    assert await engine.count("ready_queue") == 300


async def test_nobody_is_buried_before_the_database_was_seen_for_long_enough(
    engine: Engine, hinted: HintedQueues
) -> None:
    """After an outage all look silent: the living get the time to beat again."""
    worker, claim = await engine.running()
    await engine.falls_silent(worker)
    reclaimer = a_reclaimer(engine.instances, hinted, calm_sec=CALM_SEC)
    still = await reclaimer.run_once()
    assert still is not None
    assert 0 < still <= CALM_SEC
    assert await engine.status(claim.execution_id) is ExecutionStatus.RUNNING
    await engine.beat(worker.worker_id)

    async def is_calm() -> bool:
        return (await reclaimer.run_once() or 0) > CALM_SEC

    await wait_until(is_calm, what="calm")
    assert await engine.status(claim.execution_id) is ExecutionStatus.RUNNING


async def test_those_who_stay_silent_are_buried_after_the_calm(engine: Engine, hinted: HintedQueues) -> None:
    worker, claim = await engine.running()
    await engine.falls_silent(worker)
    reclaimer = a_reclaimer(engine.instances, hinted, calm_sec=CALM_SEC)
    await reclaimer.loop.start()

    async def is_taken_back() -> bool:
        return await engine.status(claim.execution_id) is ExecutionStatus.RETRYING

    await wait_until(is_taken_back)
    await reclaimer.loop.stop()


async def test_an_outage_begins_the_calm_anew(
    engine: Engine, far_db: Database, line: Line, hinted: HintedQueues
) -> None:
    reclaimer = a_reclaimer(InstanceStore(far_db, REGION, DEAD_AFTER_MS), hinted, calm_sec=CALM_SEC)
    await reclaimer.run_once()
    line.cut()
    with pytest.raises(Unavailable):
        await reclaimer.run_once()
    line.mend()
    still = await wait_until(lambda: first_answer(reclaimer), what="the database is back")
    assert still > CALM_SEC / 2


async def test_a_round_that_hangs_buries_nobody(
    engine: Engine, far_db: Database, line: Line, hinted: HintedQueues, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What keeps this loop waiting keeps the beats of the living waiting too."""
    monkeypatch.setattr("taskexecutor_scheduler.reclaimer._HUNG_SEC", 0.1)
    worker, claim = await engine.running()
    await engine.falls_silent(worker)
    reclaimer = a_reclaimer(InstanceStore(far_db, REGION, DEAD_AFTER_MS), hinted)
    line.slow(0.2)
    assert await reclaimer.run_once() is not None
    assert await engine.status(claim.execution_id) is ExecutionStatus.RUNNING
    line.mend()
    await reclaimer.run_once()
    assert await engine.status(claim.execution_id) is ExecutionStatus.RETRYING


async def first_answer(reclaimer: Reclaimer) -> float | None:
    try:
        return await reclaimer.run_once()
    except Unavailable:
        return None


async def test_a_round_says_when_there_can_be_more_to_do(engine: Engine, hinted: HintedQueues) -> None:
    reclaimer = a_reclaimer(engine.instances, hinted)
    assert await reclaimer.run_once() is None
    await engine.worker()
    seconds = await reclaimer.run_once()
    assert seconds is not None
    assert 10 < seconds < 16


async def test_two_reclaimers_share_the_work(engine: Engine, hinted: HintedQueues) -> None:
    endpoint = await engine.endpoint(max_attempts=2)
    await engine.create(endpoint, 60)
    worker = await engine.worker()
    claims = await worker.queue.claim({endpoint.endpoint_id: 60})
    await engine.falls_silent(worker)
    await asyncio.gather(*(a_reclaimer(engine.instances, hinted).run_once() for _ in range(2)))
    assert sorted(await engine.waiting()) == sorted(claim.execution_id for claim in claims)
    assert {row[0] for row in await engine.rows("SELECT attempt_count FROM executions")} == {1}
