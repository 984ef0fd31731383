"""Finished work goes when its namespace's retention is over, and nothing else does."""

from __future__ import annotations

import uuid

import pytest

from taskexecutor_common.clock import Clock
from taskexecutor_common.errors import Unavailable
from taskexecutor_common.store.retention import PruneStep, RetentionStore
from taskexecutor_scheduler.pruner import Pruner
from tests.support.engine import Engine, retrying, success_of
from tests.support.waiting import wait_until

DEFAULT_SEC = 600


@pytest.fixture
def retention(engine: Engine) -> RetentionStore:
    return RetentionStore(engine.db, DEFAULT_SEC)


@pytest.fixture
def pruner(engine: Engine, retention: RetentionStore) -> Pruner:
    return Pruner(retention, lanes=engine.lanes, epoch_ms=Clock().epoch_ms, interval_sec=60)


async def walk(pruner: Pruner) -> None:
    """A walk over all lanes, without the pauses."""
    while await pruner.run_once() is not None:
        pass


async def finished(engine: Engine, ago_sec: int) -> uuid.UUID:
    """A one-shot job whose execution failed once, then succeeded, and ended so many seconds ago."""
    worker, claim = await engine.running(max_attempts=2)
    await worker.queue.finalise([retrying(claim)])
    await engine.promote()
    (again,) = await worker.queue.claim({claim.queue: 1})
    await worker.queue.finalise([success_of(again.execution_id, again.attempt_count)])
    await engine.rows(
        "UPDATE executions SET completed_at = now() - %s * interval '1 second' WHERE execution_id = %s",
        ago_sec,
        claim.execution_id,
    )
    return claim.execution_id


async def left(engine: Engine, execution_id: uuid.UUID) -> list[int]:
    """How many rows of each table still speak of an execution."""
    tables = ("executions", "attempts", "execution_logs")
    counts = [
        await engine.value(f"SELECT count(*) FROM {table} WHERE execution_id = %s", execution_id) for table in tables
    ]
    return [*counts, await engine.value("SELECT count(*) FROM jobs WHERE job_id = %s", execution_id)]


async def test_what_ended_long_enough_ago_goes_with_its_attempts_logs_and_job(engine: Engine, pruner: Pruner) -> None:
    old, young = await finished(engine, DEFAULT_SEC + 60), await finished(engine, DEFAULT_SEC - 60)
    await walk(pruner)
    assert await left(engine, old) == [0, 0, 0, 0]
    assert await left(engine, young) == [1, 2, 1, 1]


async def test_what_has_not_ended_stays_however_old_it_is(engine: Engine, pruner: Pruner) -> None:
    _, claim = await engine.running()
    await engine.rows(
        "UPDATE executions SET created_at = now() - interval '1 year', started_at = now() - interval '1 year'"
    )
    await walk(pruner)
    assert await left(engine, claim.execution_id) == [1, 0, 0, 1]


async def test_a_namespace_has_a_retention_of_its_own(
    engine: Engine, pruner: Pruner, retention: RetentionStore
) -> None:
    execution = await finished(engine, 60)
    await walk(pruner)
    assert await left(engine, execution) == [1, 2, 1, 1]
    await retention.set_retention("default", 30)
    await walk(pruner)
    assert await left(engine, execution) == [0, 0, 0, 0]


async def test_a_retired_cron_job_goes_after_its_last_execution(engine: Engine, pruner: Pruner) -> None:
    now = await engine.value("SELECT now()")
    job_id = await engine.create_cron(await engine.endpoint(), now)
    await engine.cron_jobs.retire(job_id)
    await walk(pruner)
    assert await engine.value("SELECT count(*) FROM jobs WHERE job_id = %s", job_id) == 1
    await engine.rows("UPDATE cron_jobs SET retired_at = now() - interval '1 hour'")
    await walk(pruner)
    assert await engine.value("SELECT count(*) FROM jobs WHERE job_id = %s", job_id) == 0
    assert await engine.value("SELECT count(*) FROM cron_jobs WHERE job_id = %s", job_id) == 0


async def many(engine: Engine) -> None:
    """5,000 executions, of which those with the 2,500 youngest ids ended long enough ago."""
    endpoint = await engine.endpoint()
    for _ in range(5):
        await engine.create(endpoint, 1000)
    await engine.rows(
        "UPDATE executions SET status = 'CANCELLED', completed_at = now() - interval '1 hour' "
        "WHERE execution_id IN (SELECT execution_id FROM executions ORDER BY execution_id OFFSET 2500)"
    )


async def test_a_walk_of_many_steps_reaches_all(engine: Engine, pruner: Pruner) -> None:
    await many(engine)
    await walk(pruner)
    assert await engine.value("SELECT count(*) FROM executions") == 2500


class Steps:
    """The steps of a walk: counted, and refused when a test says so."""

    def __init__(self, retention: RetentionStore, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        self.fails = False
        self._prune = retention.prune_executions
        monkeypatch.setattr(retention, "prune_executions", self._step)

    async def _step(self, after_id: uuid.UUID, before_id: uuid.UUID) -> PruneStep:
        if self.fails:
            raise Unavailable("the database does not answer")
        self.count += 1
        return await self._prune(after_id, before_id)


async def test_a_walk_stops_after_the_step_that_is_under_way(
    retention: RetentionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(retention, monkeypatch)
    lanes = range(256)
    pruner = Pruner(retention, lanes=lanes, epoch_ms=Clock().epoch_ms, interval_sec=60)
    await pruner.loop.start()
    await wait_until(lambda: steps.count, what="a first step")
    await pruner.loop.stop()
    assert steps.count < len(lanes)


async def test_each_step_of_a_walk_shows_that_it_lives(
    engine: Engine, pruner: Pruner, retention: RetentionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(retention, monkeypatch)
    await many(engine)
    await pruner.loop.start()
    first = await wait_until(lambda: pruner.loop.last_run, what="a first step")
    assert steps.count < 3 + len(engine.lanes)
    await wait_until(lambda: pruner.loop.last_run != first, what="another step")
    await pruner.loop.stop()


async def test_a_step_that_failed_is_made_again(
    engine: Engine, pruner: Pruner, retention: RetentionStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = Steps(retention, monkeypatch)
    await many(engine)
    assert await pruner.run_once() is not None
    steps.fails = True
    with pytest.raises(Unavailable):
        await pruner.run_once()
    steps.fails = False
    await walk(pruner)
    assert await engine.value("SELECT count(*) FROM executions") == 2500
