"""Each loop on a database that fails once in seven tries: what was accepted comes to its end, once, and is accounted for."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from datetime import datetime, timedelta
from uuid import UUID

import pytest

from taskexecutor_api.operations.cancel import cancel_execution
from taskexecutor_api.operations.job_writer import JobWriter
from taskexecutor_common.errors import ExecutionNotCancellable, TaskExecutorError, Unavailable
from taskexecutor_common.model.endpoint import CircuitBreaker, FlowControl, RateLimit
from taskexecutor_common.model.job import CatchUp
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.executions import ExecutionStore
from taskexecutor_common.store.instances import InstanceStore
from taskexecutor_common.store.jobs import JobStore
from taskexecutor_common.store.timers import TimerStore
from taskexecutor_dispatcher.endpoints.base import Outcome
from taskexecutor_scheduler.cron_ticker import CronTicker
from taskexecutor_scheduler.promoter import Promoter
from taskexecutor_scheduler.reclaimer import Reclaimer
from tests.integration.dispatcher.engine.dispatchers import REFUSED, TAKEN, Target, a_dispatcher, running
from tests.integration.faults.audit import all_have_ended, faults_of, unexplained
from tests.support.engine import NAMESPACE, REGION, Engine, MadeEndpoint
from tests.support.faulty_database import Faults
from tests.support.hints import HintedQueues
from tests.support.rounds import all_rounds
from tests.support.waiting import wait_until

SOON_SEC = 0.05
LIMITED = FlowControl(max_in_flight=1000)
DEADLINE_SEC = 60.0
ATTEMPTS = 2  # one that the target refuses, one that it takes: faults of our own database cost none


@pytest.fixture(autouse=True)
def it_was_struck(faults: Faults) -> Iterator[None]:
    """A run without faults shows nothing."""
    yield
    assert faults.total > 0


class Picky:
    """A target's answer that refuses the first attempt of every third execution, and remembers what it took."""

    def __init__(self) -> None:
        self.taken: list[tuple[UUID, int]] = []

    async def __call__(self, execution_id: UUID, attempt: int) -> Outcome:
        await asyncio.sleep(0)
        if attempt == 1 and execution_id.int % 3 == 0:
            return REFUSED
        self.taken.append((execution_id, attempt))
        return TAKEN


async def insist(act: Callable[[], Awaitable[object]]) -> None:
    """Does it again until the database was not in the way: what loops and callers do."""
    while True:
        try:
            await act()
        except TaskExecutorError:
            continue
        return


@contextlib.asynccontextmanager
async def promoting(engine: Engine, db: Database) -> AsyncIterator[None]:
    """A promoter that runs meanwhile."""
    promoter = Promoter(TimerStore(db), lanes=engine.lanes, wake_queues=HintedQueues(), interval_sec=SOON_SEC)
    await promoter.loop.start()
    try:
        yield
    finally:
        await promoter.loop.stop()


async def test_a_created_job_is_there_once_however_often_its_creation_was_tried(
    engine: Engine, faulty_db: Database
) -> None:
    endpoint = await engine.endpoint()
    store = JobStore(faulty_db, REGION)
    writer = JobWriter(store)
    later = await engine.now() + timedelta(hours=1)

    async def create(number: int) -> UUID:
        """As the api does it, and its caller, who tries again with the same key."""
        while True:
            job = engine.job(endpoint, key=f"key-{number}", run_at=later if number % 2 else None)
            try:
                if await writer.write(job):
                    return job.job_id
                return (await store.find_by_key([job.dedup_hash]))[job.dedup_hash]
            except Unavailable:
                continue

    accepted: list[UUID] = []
    for first in range(0, 300, 10):
        accepted += await asyncio.gather(*(create(number) for number in range(first, first + 10)))
    assert len(set(accepted)) == 300
    assert await engine.count("jobs") == 300
    assert sorted([*await engine.waiting(), *await engine.waiting("timers")]) == sorted(accepted)


async def test_every_due_timer_is_promoted_once(engine: Engine, faulty_db: Database) -> None:
    endpoint = await engine.endpoint()
    later = await engine.now() + timedelta(hours=1)
    created: list[UUID] = []
    promoter = Promoter(TimerStore(faulty_db), lanes=engine.lanes, wake_queues=HintedQueues(), interval_sec=0)
    for _ in range(30):
        wave = [job.job_id for job in await engine.create(endpoint, 15, run_at=later)]
        await engine.timers_come_due()
        await insist(promoter.run_once)
        created += wave
    assert sorted(await engine.waiting()) == sorted(created)
    assert await engine.waiting("timers") == []
    assert await engine.rows("SELECT DISTINCT status FROM executions") == [("QUEUED",)]


async def test_every_tick_fires_once(engine: Engine, faulty_db: Database) -> None:
    endpoint = await engine.endpoint()
    first = (await engine.now()).replace(second=0, microsecond=0) - timedelta(minutes=9)
    jobs = [await engine.create_cron(endpoint, first, catch_up=CatchUp.ALL) for _ in range(30)]
    ticker = CronTicker(
        TimerStore(faulty_db),
        lanes=engine.lanes,
        new_id=engine.new_id,
        wake_queues=HintedQueues(),
        interval_sec=SOON_SEC,
        batch=10,
        grace_sec=10.0,
    )
    await insist(lambda: all_rounds(ticker.run_once))
    rows = await engine.rows("SELECT job_id, tick_at, execution_id FROM executions ORDER BY job_id, tick_at")
    fired: dict[UUID, list[datetime]] = {job_id: [] for job_id in jobs}
    for job_id, tick_at, _ in rows:
        fired[job_id].append(tick_at)
    for ticks in fired.values():
        assert ticks == [first + timedelta(minutes=n) for n in range(len(ticks))]
        assert len(ticks) >= 10
    assert sorted(await engine.waiting()) == sorted(execution_id for _, _, execution_id in rows)


async def deliver_all(
    engine: Engine,
    faulty_db: Database,
    endpoints: list[MadeEndpoint],
    count: int,
    meanwhile: Callable[[list[UUID]], Awaitable[None]] | None = None,
) -> Target:
    """Creates `count` jobs for each endpoint and lets two dispatchers bring them all to their end; then the audit."""
    picky = Picky()
    target = Target(picky)
    accepted: list[UUID] = []
    one, other = [
        await a_dispatcher(engine, target, db=faulty_db, slots=16, poll_interval_sec=SOON_SEC) for _ in range(2)
    ]
    async with promoting(engine, faulty_db), running(one), running(other):
        for endpoint in endpoints:
            accepted += [job.job_id for job in await engine.create(endpoint, count)]
        if meanwhile:
            await meanwhile(accepted)
        await wait_until(lambda: all_have_ended(engine), DEADLINE_SEC, "the end of all executions")
    assert await faults_of(engine, accepted) == {}
    assert await unexplained(engine, target.delivered, picky.taken) == {}
    return target


async def test_everything_that_waits_is_delivered_and_recorded(engine: Engine, faulty_db: Database) -> None:
    endpoints = [await engine.endpoint(max_attempts=ATTEMPTS) for _ in range(3)]
    await deliver_all(engine, faulty_db, endpoints, 100)
    assert await engine.rows("SELECT DISTINCT status FROM executions") == [("SUCCESS",)]


async def test_limits_hold_and_end_up_at_nothing(engine: Engine, faulty_db: Database) -> None:
    limits = [
        FlowControl(max_in_flight=5),
        FlowControl(max_in_flight=5, rate_limit=RateLimit(per_sec=2000, burst=50)),
        FlowControl(max_in_flight=5, circuit_breaker=CircuitBreaker(failure_rate=1.0, minimum_attempts=1000)),
    ]
    endpoints = [await engine.endpoint(max_attempts=ATTEMPTS, flow_control=limit) for limit in limits]
    target = await deliver_all(engine, faulty_db, endpoints, 60)
    assert target.most_at_once <= 15


async def test_what_was_cancelled_stays_cancelled_and_all_else_is_delivered(
    engine: Engine, faulty_db: Database
) -> None:
    cancelled: list[UUID] = []

    async def cancel(execution_id: UUID) -> None:
        with contextlib.suppress(ExecutionNotCancellable):
            execution = await cancel_execution(ExecutionStore(faulty_db), NAMESPACE, execution_id)
            assert execution.status is ExecutionStatus.CANCELLED
            cancelled.append(execution_id)

    async def cancel_some(accepted: list[UUID]) -> None:
        for execution_id in reversed(accepted[::3]):
            await insist(lambda execution_id=execution_id: cancel(execution_id))

    endpoints = [await engine.endpoint(max_attempts=ATTEMPTS) for _ in range(2)]
    await deliver_all(engine, faulty_db, endpoints, 150, cancel_some)
    ended = dict(await engine.rows("SELECT execution_id, status FROM executions"))
    assert {execution_id for execution_id, status in ended.items() if status == "CANCELLED"} == set(cancelled)
    assert cancelled


def a_reclaimer(db: Database) -> Reclaimer:
    """Takes from those who said themselves that they are dead: on a busy machine the living may be silent for long."""
    store = InstanceStore(db, REGION, dead_after_ms=3_600_000)
    return Reclaimer(store, wake_queues=HintedQueues(), interval_sec=SOON_SEC, calm_sec=0.0, outage_sec=DEADLINE_SEC)


async def test_what_dead_workers_held_is_taken_back_once(engine: Engine, faulty_db: Database) -> None:
    endpoints = [await engine.endpoint(max_attempts=2, flow_control=flow) for flow in (FlowControl(), LIMITED)]
    created = [job.job_id for endpoint in endpoints for job in await engine.create(endpoint, 150)]
    reclaimer = a_reclaimer(faulty_db)
    while await engine.waiting():
        worker = await engine.worker()
        assert await worker.queue.claim({endpoint.endpoint_id: 10 for endpoint in endpoints})
        await engine.beat(worker.worker_id, "DEAD")
        await insist(reclaimer.run_once)
    assert await faults_of(engine, created) == {}
    attempts = await engine.rows("SELECT status, error ->> 'type', count(*)::int FROM attempts GROUP BY 1, 2")
    assert attempts == [("FAILED", "WORKER_LOST", 2 * len(created))]


async def test_dispatchers_that_die_lose_nothing(engine: Engine, faulty_db: Database) -> None:
    """All loops at once; a receiver takes twice only what a dead one had sent."""
    picky = Picky()
    target = Target(picky)
    endpoints = [await engine.endpoint(max_attempts=ATTEMPTS + 1, flow_control=LIMITED) for _ in range(2)]
    accepted = [job.job_id for endpoint in endpoints for job in await engine.create(endpoint, 120)]
    reclaimer = a_reclaimer(faulty_db)
    for _ in range(4):
        victim = await a_dispatcher(engine, target, db=faulty_db, slots=8, poll_interval_sec=SOON_SEC)
        await victim.claimer.start()  # and no completer: what it delivers is never recorded
        await wait_until(lambda victim=victim: victim.completer.backlog >= 8, DEADLINE_SEC, "deliveries")
        await victim.claimer.stop()
        await victim.claimer.drain(0)
        await engine.beat(victim.worker.worker_id, "DEAD")
    survivor = await a_dispatcher(engine, target, db=faulty_db, slots=16, poll_interval_sec=SOON_SEC)
    await reclaimer.loop.start()
    async with promoting(engine, faulty_db), running(survivor):
        await wait_until(lambda: all_have_ended(engine), DEADLINE_SEC, "the end of all executions")
    await reclaimer.loop.stop()
    assert await faults_of(engine, accepted) == {}
    assert await unexplained(engine, target.delivered, picky.taken) == {}
    times = Counter(execution_id for execution_id, _ in picky.taken)
    lost = await engine.rows("SELECT DISTINCT execution_id FROM attempts WHERE error ->> 'type' = 'WORKER_LOST'")
    assert {execution_id for execution_id, n in times.items() if n > 1} <= {row[0] for row in lost}
