"""Taking back what the dead held and what outlived its lease."""

from __future__ import annotations

import asyncio

from taskexecutor_common.model.state import ExecutionStatus
from tests.support.engine import LOST, Engine


async def test_what_a_dead_worker_held_goes_back_to_its_queue_with_a_lost_attempt(engine: Engine) -> None:
    worker, claim = await engine.running(max_attempts=2)
    await engine.falls_silent(worker)
    assert await engine.instances.bury_silent() == [worker.worker_id]
    (taken,) = await engine.instances.reclaim(LOST)
    assert (taken.execution_id, taken.queue, taken.worker_id) == (claim.execution_id, claim.queue, worker.worker_id)
    assert await engine.status(claim.execution_id) is ExecutionStatus.RETRYING
    assert await engine.attempts(claim.execution_id) == [(1, "FAILED", "WORKER_LOST")]
    assert await engine.waiting() == [claim.execution_id]
    assert await engine.count("leases") == 0


async def test_what_has_no_attempt_left_fails(engine: Engine) -> None:
    worker, claim = await engine.running(max_attempts=1)
    await engine.beat(worker.worker_id, "DEAD")
    await engine.instances.reclaim(LOST)
    execution = await engine.execution(claim.execution_id)
    assert execution.status is ExecutionStatus.FAILED
    assert execution.error == LOST
    assert execution.completed_at is not None
    assert await engine.waiting() == []


async def test_the_log_says_that_the_worker_was_lost(engine: Engine) -> None:
    worker, claim = await engine.running()
    await engine.beat(worker.worker_id, "DEAD")
    await engine.instances.reclaim(LOST)
    (log,) = await engine.executions.list_logs(claim.execution_id, (0, 0), 10)
    assert (log.attempt_number, log.level.value, log.message) == (1, "WARN", LOST["message"])


async def test_a_lease_that_is_over_is_reclaimed_though_its_worker_beats(engine: Engine) -> None:
    worker, claim = await engine.running()
    await engine.leases_run_out()
    await engine.beat(worker.worker_id)
    assert [taken.execution_id for taken in await engine.instances.reclaim(LOST)] == [claim.execution_id]


async def test_a_lease_that_is_over_but_within_the_slack_is_left_alone(engine: Engine) -> None:
    await engine.running()
    await engine.rows("UPDATE leases SET expires_at = now() - interval '1 second'")
    assert await engine.instances.reclaim(LOST) == []


async def test_a_slow_worker_that_beats_keeps_what_it_holds(engine: Engine) -> None:
    _, claim = await engine.running()
    await engine.instances.bury_silent()
    assert await engine.instances.reclaim(LOST) == []
    assert await engine.status(claim.execution_id) is ExecutionStatus.RUNNING


async def test_a_draining_worker_keeps_what_it_holds(engine: Engine) -> None:
    worker, _ = await engine.running()
    await engine.beat(worker.worker_id, "DRAINING")
    assert await engine.instances.reclaim(LOST) == []


async def test_a_worker_that_said_goodbye_is_reclaimed_at_once(engine: Engine) -> None:
    worker, claim = await engine.running()
    await engine.beat(worker.worker_id, "DEAD")
    assert [taken.execution_id for taken in await engine.instances.reclaim(LOST)] == [claim.execution_id]


async def test_a_worker_that_nobody_knows_is_dead(engine: Engine) -> None:
    _, claim = await engine.running()
    await engine.rows("DELETE FROM region_heartbeats")
    assert [taken.execution_id for taken in await engine.instances.reclaim(LOST)] == [claim.execution_id]


async def test_a_lease_whose_execution_is_not_held_any_more_is_only_removed(engine: Engine) -> None:
    _, claim = await engine.running()
    await engine.leases_run_out()
    await engine.rows("UPDATE executions SET attempt_count = 2")
    assert await engine.instances.reclaim(LOST) == []
    assert await engine.count("leases") == 0
    assert await engine.status(claim.execution_id) is ExecutionStatus.RUNNING


async def test_two_reclaimers_at_once_take_each_execution_once(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=2)
    await engine.create(endpoint, 50)
    worker = await engine.worker()
    await worker.queue.claim({endpoint.endpoint_id: 50})
    await engine.beat(worker.worker_id, "DEAD")
    shares = await asyncio.gather(*(engine.instances.reclaim(LOST) for _ in range(2)))
    taken = [row.execution_id for share in shares for row in share]
    assert len(taken) == len(set(taken)) == 50
    assert sorted(await engine.waiting()) == sorted(taken)


async def test_one_reclaim_is_bounded(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=2)
    for _ in range(3):
        await engine.create(endpoint, 100)
    worker = await engine.worker()
    await worker.queue.claim({endpoint.endpoint_id: 300})
    await engine.beat(worker.worker_id, "DEAD")
    assert [len(await engine.instances.reclaim(LOST)) for _ in range(3)] == [200, 100, 0]


async def test_the_next_reclaim_is_due_when_a_worker_could_be_dead_or_a_lease_over(engine: Engine) -> None:
    assert await engine.instances.next_reclaim_in_ms() is None
    await engine.running()
    silence = await engine.instances.next_reclaim_in_ms()
    assert silence is not None
    assert 10_000 < silence <= 15_000
    await engine.leases_run_out()
    over = await engine.instances.next_reclaim_in_ms()
    assert over is not None
    assert over <= 0


async def test_the_dead_are_not_hinted(engine: Engine) -> None:
    living, silent, draining = [await engine.worker() for _ in range(3)]
    await engine.falls_silent(silent)
    await engine.beat(draining.worker_id, "DRAINING")
    assert [peer.instance_id for peer in await engine.instances.list_live("dispatcher")] == [living.worker_id]


async def test_a_dead_instance_is_forgotten_after_a_day_unless_it_holds_something(engine: Engine) -> None:
    holder, claim = await engine.running()
    idle = await engine.worker()
    await engine.rows("UPDATE region_heartbeats SET status = 'DEAD', last_beat_at = now() - interval '25 hours'")
    await engine.instances.bury_silent()
    known = {row[0] for row in await engine.rows("SELECT instance_id FROM region_heartbeats")}
    assert known == {holder.worker_id}
    assert idle.worker_id not in known
    assert await engine.status(claim.execution_id) is ExecutionStatus.RUNNING


async def test_one_that_was_declared_dead_may_come_back(engine: Engine) -> None:
    worker = await engine.worker()
    await engine.falls_silent(worker)
    await engine.instances.bury_silent()
    await engine.beat(worker.worker_id)
    assert await engine.instances.bury_silent() == []
    assert [peer.instance_id for peer in await engine.instances.list_live("dispatcher")] == [worker.worker_id]
