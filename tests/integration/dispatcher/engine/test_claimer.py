"""The claimer: as much as there are free slots, never twice, through hints, outages and lost answers."""

from __future__ import annotations

import asyncio
import time
from datetime import timedelta
from uuid import UUID

import pytest

from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.store.database import Database
from taskexecutor_dispatcher.endpoints.base import Outcome
from tests.integration.dispatcher.engine.dispatchers import TAKEN, Gate, Target, a_dispatcher, running
from tests.support.engine import LOST, Engine
from tests.support.faulty_database import Fault, Faults, FaultyDatabase
from tests.support.line import Cut, Line
from tests.support.waiting import wait_until

SOON_SEC = 0.05


async def all_succeeded(engine: Engine) -> bool:
    return await engine.rows("SELECT DISTINCT status FROM executions") == [("SUCCESS",)]


async def test_a_hint_brings_what_waits_to_its_target(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    async with running(await a_dispatcher(engine, Target())) as dispatcher:
        execution_id = await engine.create_one(endpoint)
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await wait_until(lambda: all_succeeded(engine))
    assert dispatcher.target.delivered == [(execution_id, 1)]


async def leased(engine: Engine, count: int) -> bool:
    return await engine.count("leases") == count


async def test_what_is_claimed_ahead_is_sent_when_it_is_due(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    sent_at: list[float] = []

    async def answer(_: UUID, __: int) -> Outcome:
        sent_at.append(time.time())
        return TAKEN

    async with running(await a_dispatcher(engine, Target(answer))) as dispatcher:
        created = await engine.create(endpoint, 10, run_at=await engine.now() + timedelta(seconds=1))
        await engine.promote(ahead_ms=5000)
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await wait_until(lambda: leased(engine, 10), what="claims ahead")
        await wait_until(lambda: all_succeeded(engine))
    run_at = (await engine.execution(created[0].job_id)).run_at.timestamp()
    assert len(sent_at) == 10
    assert run_at < min(sent_at)


async def test_a_lost_hint_costs_the_poll_interval_and_nothing_else(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    async with running(await a_dispatcher(engine, Target(), poll_interval_sec=SOON_SEC)) as dispatcher:
        execution_id = await engine.create_one(endpoint)
        await wait_until(lambda: all_succeeded(engine))
    assert dispatcher.target.delivered == [(execution_id, 1)]


async def test_there_are_never_more_deliveries_than_slots(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    await engine.create(endpoint, 30)
    gate = Gate()
    async with running(await a_dispatcher(engine, Target(gate), slots=4)) as dispatcher:
        await wait_until(lambda: dispatcher.target.at_once == 4)
        assert await engine.count("leases") == 4
        gate.open()
        await wait_until(lambda: all_succeeded(engine))
    assert dispatcher.target.most_at_once == 4
    assert len(dispatcher.target.delivered) == 30


async def test_an_attempt_that_outlived_its_lease_keeps_its_slot_beside_its_successor(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=2)
    await engine.create(endpoint)
    gate = Gate()
    target = Target(gate)
    dispatcher = await a_dispatcher(engine, target, slots=2, poll_interval_sec=SOON_SEC)
    async with running(dispatcher):
        await wait_until(lambda: target.at_once == 1)
        await engine.leases_run_out()
        await engine.instances.reclaim(LOST)
        await wait_until(lambda: target.at_once == 2)
        await engine.create(endpoint, 3)
        before = dispatcher.rounds
        await wait_until(lambda: dispatcher.rounds > before + 2, what="rounds of the claimer")
        gate.open()
        await wait_until(lambda: all_succeeded(engine))
    assert target.most_at_once == 2


async def test_a_deep_queue_does_not_hold_up_a_shallow_one(engine: Engine) -> None:
    deep, shallow = await engine.endpoint(), await engine.endpoint()
    await engine.create(deep, 200)
    execution_id = await engine.create_one(shallow)
    async with running(await a_dispatcher(engine, Target(), slots=4)) as dispatcher:
        await wait_until(lambda: all_succeeded(engine))
    position = dispatcher.target.delivered.index((execution_id, 1))
    assert position < 2 * 4


async def test_a_slow_target_does_not_hold_up_a_quick_one(engine: Engine) -> None:
    slow, quick = await engine.endpoint(), await engine.endpoint()
    held = await engine.create_one(slow)
    gate = Gate()

    async def answer(execution_id: UUID, attempt: int) -> Outcome:
        return await gate(execution_id, attempt) if execution_id == held else TAKEN

    async with running(await a_dispatcher(engine, Target(answer), slots=2)) as dispatcher:
        await wait_until(lambda: dispatcher.target.at_once == 1)
        created = [job.job_id for job in await engine.create(quick, 20)]
        dispatcher.claimer.wake([quick.endpoint_id])
        await wait_until(lambda: len(dispatcher.target.delivered) == 21)
        gate.open()
        await wait_until(lambda: all_succeeded(engine))
    assert set(dispatcher.target.executions) == {held, *created}


async def test_a_fenced_instance_claims_nothing(engine: Engine) -> None:
    """And claims again as soon as it is not."""
    endpoint = await engine.endpoint()
    fenced = True
    dispatcher = await a_dispatcher(engine, Target(), poll_interval_sec=SOON_SEC, is_fenced=lambda: fenced)
    async with running(dispatcher):
        execution_id = await engine.create_one(endpoint)
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await wait_until(lambda: dispatcher.rounds > 2, what="rounds of the claimer")
        assert await engine.status(execution_id) is ExecutionStatus.QUEUED
        fenced = False
        await wait_until(lambda: all_succeeded(engine))


@pytest.mark.parametrize("cut", Cut)
async def test_a_claim_without_an_answer_is_adopted_and_delivered_once(
    engine: Engine, far_db: Database, line: Line, cut: Cut
) -> None:
    endpoint = await engine.endpoint()
    dispatcher = await a_dispatcher(engine, Target(), db=far_db)
    async with running(dispatcher):
        # One round first, so that the next statement is the claim.
        first = await engine.create_one(endpoint)
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await wait_until(lambda: all_succeeded(engine))
        created = [job.job_id for job in await engine.create(endpoint, 5)]
        line.plan(cut)
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await wait_until(lambda: all_succeeded(engine))
    assert line.cuts == 1
    assert dispatcher.target.executions == dict.fromkeys([first, *created], 1)
    assert {row[0] for row in await engine.rows("SELECT attempt_count FROM executions")} == {1}


async def is_waiting_for_a_lock(engine: Engine) -> bool:
    query = "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'"
    return bool(await engine.value(query))


async def test_a_claim_that_is_committed_long_after_its_line_was_lost_is_adopted(
    engine: Engine, far_db: Database, line: Line
) -> None:
    endpoint = await engine.endpoint()
    dispatcher = await a_dispatcher(engine, Target(), db=far_db, slots=64, poll_interval_sec=SOON_SEC)
    async with running(dispatcher):
        # Many at first, so that the next claim expects many and may take its time.
        before = [job.job_id for job in await engine.create(endpoint, 40)]
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await wait_until(lambda: all_succeeded(engine))
        held_up = await engine.create_one(endpoint)
        await engine.rows("BEGIN")
        await engine.rows("SELECT 1 FROM executions WHERE execution_id = %s FOR UPDATE", held_up)
        dispatcher.claimer.wake([endpoint.endpoint_id])
        await wait_until(lambda: is_waiting_for_a_lock(engine), what="a claim that waits")
        line.reset()
        rounds = dispatcher.rounds
        await wait_until(lambda: dispatcher.rounds > rounds + 2, what="looks that find nothing")
        await engine.rows("ROLLBACK")
        await wait_until(lambda: all_succeeded(engine))
    assert dispatcher.target.executions == dict.fromkeys([*before, held_up], 1)
    assert {row[0] for row in await engine.rows("SELECT attempt_count FROM executions")} == {1}


async def test_what_was_delivered_and_is_not_yet_recorded_is_not_adopted(
    engine: Engine, far_db: Database, line: Line
) -> None:
    """It is RUNNING in this worker's name, too: delivering it again would be a request without an attempt."""
    endpoint = await engine.endpoint()
    dispatcher = await a_dispatcher(engine, Target(), db=far_db)
    delivered = await engine.create_one(endpoint)
    await dispatcher.claimer.start()  # and not the completer: its results have to wait
    await wait_until(lambda: dispatcher.completer.backlog == 1)
    claimed = await engine.create_one(endpoint)
    line.plan(Cut.AFTER_COMMIT)
    dispatcher.claimer.wake([endpoint.endpoint_id])
    await wait_until(lambda: dispatcher.target.executions[claimed] == 1)
    await dispatcher.completer.start()
    await wait_until(lambda: all_succeeded(engine))
    await dispatcher.claimer.stop()
    await dispatcher.completer.stop()
    assert dispatcher.target.executions == {delivered: 1, claimed: 1}


async def test_nothing_is_claimed_while_results_cannot_be_written(
    engine: Engine, database_url: str, isolation: str
) -> None:
    endpoint = await engine.endpoint()
    first = await engine.create_one(endpoint)
    unwritable = Faults(1, 1.0, {Fault.DEADLOCK}, only=["finalise_executions"])
    db = FaultyDatabase(database_url, unwritable, pool_size=4, application_name="faulty", isolation=isolation)
    await db.open()
    async with running(await a_dispatcher(engine, Target(), db=db, poll_interval_sec=SOON_SEC)) as dispatcher:
        await wait_until(dispatcher.completer.problem, what="results that cannot be written")
        await engine.create_one(endpoint)
        rounds = dispatcher.rounds
        await wait_until(lambda: dispatcher.rounds > rounds + 3)
        assert dispatcher.target.executions == {first: 1}
        db.faults = Faults(1, 0.0)
        await wait_until(lambda: all_succeeded(engine))
    await db.close()
    assert set(dispatcher.target.executions.values()) == {1}


async def test_after_an_outage_the_work_goes_on_and_none_is_delivered_twice(
    engine: Engine, far_db: Database, line: Line
) -> None:
    endpoint = await engine.endpoint()
    gate = Gate()
    dispatcher = await a_dispatcher(engine, Target(gate), db=far_db, slots=5, poll_interval_sec=SOON_SEC)
    async with running(dispatcher):
        created = [job.job_id for job in await engine.create(endpoint, 20)]
        await wait_until(lambda: dispatcher.target.at_once == 5)
        line.cut()
        gate.open()
        await wait_until(lambda: dispatcher.completer.problem() is not None, what="the outage is noticed")
        line.mend()
        await wait_until(lambda: all_succeeded(engine))
    assert dispatcher.target.executions == dict.fromkeys(created, 1)


async def test_two_dispatchers_share_the_work(engine: Engine) -> None:
    endpoints = [await engine.endpoint() for _ in range(3)]
    created = [job.job_id for endpoint in endpoints for job in await engine.create(endpoint, 100)]
    target = Target()
    one, other = [await a_dispatcher(engine, target, slots=8, poll_interval_sec=SOON_SEC) for _ in range(2)]
    async with running(one), running(other):
        await wait_until(lambda: all_succeeded(engine))
    assert target.executions == dict.fromkeys(created, 1)


async def test_a_shutdown_waits_for_what_runs(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    execution_id = await engine.create_one(endpoint)
    gate = Gate()
    dispatcher = await a_dispatcher(engine, Target(gate))
    async with running(dispatcher):
        await wait_until(lambda: dispatcher.target.at_once == 1)
        await dispatcher.claimer.stop()
        draining = asyncio.create_task(dispatcher.claimer.drain(10))
        gate.open()
        await draining
    assert await engine.status(execution_id) is ExecutionStatus.SUCCESS


async def test_a_shutdown_that_waited_long_enough_releases_the_rest_for_another_attempt(engine: Engine) -> None:
    endpoint = await engine.endpoint(max_attempts=2)
    execution_id = await engine.create_one(endpoint)
    dispatcher = await a_dispatcher(engine, Target(Gate()))
    async with running(dispatcher):
        await wait_until(lambda: dispatcher.target.at_once == 1)
        await dispatcher.claimer.stop()
        await dispatcher.claimer.drain(0)
    assert await engine.status(execution_id) is ExecutionStatus.RETRYING
    assert await engine.attempts(execution_id) == [(1, "FAILED", "WORKER_LOST")]


async def test_after_a_stop_nothing_is_claimed(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    dispatcher = await a_dispatcher(engine, Target())
    async with running(dispatcher):
        await dispatcher.claimer.stop()
        execution_id = await engine.create_one(endpoint)
        dispatcher.claimer.wake([endpoint.endpoint_id])
    assert await engine.status(execution_id) is ExecutionStatus.QUEUED


async def test_an_endpoint_that_does_not_answer_leaves_slots_to_its_neighbour(engine: Engine) -> None:
    slow, fast = await engine.endpoint(), await engine.endpoint()
    stuck = {created.job_id for created in await engine.create(slow, 60)}
    gate = Gate()

    async def answer(execution_id: UUID, attempt: int) -> Outcome:
        return await gate(execution_id, attempt) if execution_id in stuck else TAKEN

    async with running(await a_dispatcher(engine, Target(answer), slots=36, poll_interval_sec=SOON_SEC)) as dispatcher:
        await wait_until(lambda: dispatcher.target.at_once == 32)
        waiting = await engine.create(fast, 60)
        dispatcher.claimer.wake([fast.endpoint_id])
        await wait_until(lambda: len(dispatcher.target.delivered) == 32 + len(waiting))
        assert dispatcher.target.at_once == 32
        gate.open()
        await wait_until(lambda: all_succeeded(engine))
