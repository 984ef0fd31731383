"""Creating one-shot jobs: in batches, once per key, where they belong."""

from __future__ import annotations

import asyncio
import uuid
from dataclasses import replace
from datetime import timedelta

import pytest

from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.model.job import JobStatus
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.jobs import JobStore
from tests.support.engine import NAMESPACE, REGION, Engine
from tests.support.line import Cut, Line


async def test_a_job_for_now_waits_in_its_queue(engine: Engine) -> None:
    (created,) = await engine.create(await engine.endpoint())
    assert created.status is ExecutionStatus.QUEUED
    assert await engine.waiting() == [created.job_id]
    assert await engine.waiting("timers") == []


async def test_a_job_for_later_waits_among_the_timers(engine: Engine) -> None:
    run_at = await engine.now() + timedelta(hours=1)
    (created,) = await engine.create(await engine.endpoint(), run_at=run_at)
    assert created.status is ExecutionStatus.PENDING
    assert await engine.waiting() == []
    assert await engine.rows("SELECT execution_id, fire_at FROM timers") == [(created.job_id, run_at)]


async def test_a_job_for_the_past_fires_at_once(engine: Engine) -> None:
    run_at = await engine.now() - timedelta(hours=1)
    (created,) = await engine.create(await engine.endpoint(), run_at=run_at)
    assert created.status is ExecutionStatus.QUEUED
    assert await engine.waiting() == [created.job_id]


async def test_a_batch_writes_all_its_jobs(engine: Engine) -> None:
    now_endpoint, later_endpoint = await engine.endpoint(), await engine.endpoint()
    later = await engine.now() + timedelta(hours=1)
    jobs = [engine.job(now_endpoint) for _ in range(3)] + [engine.job(later_endpoint, run_at=later) for _ in range(2)]
    created = await engine.jobs.create_many(jobs)
    assert {job.job_id for job in created} == {job.job_id for job in jobs}
    assert (await engine.count("ready_queue"), await engine.count("timers")) == (3, 2)


async def test_a_key_is_taken_once_within_a_batch(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    first, second, other = [engine.job(endpoint, key=key) for key in ("same", "same", "other")]
    created = await engine.jobs.create_many([first, second, other])
    assert {job.job_id for job in created} == {first.job_id, other.job_id}
    assert await engine.count("jobs") == await engine.count("executions") == await engine.count("ready_queue") == 2


async def test_a_key_is_taken_once_across_batches(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    first, second = engine.job(endpoint, key="same"), engine.job(endpoint, key="same")
    await engine.jobs.create_many([first])
    assert await engine.jobs.create_many([second]) == []
    assert await engine.jobs.find_by_key([second.dedup_hash]) == {second.dedup_hash: first.job_id}
    assert await engine.count("executions") == 1


async def test_endpoints_do_not_share_their_keys(engine: Engine) -> None:
    jobs = [engine.job(await engine.endpoint(), key="same") for _ in range(2)]
    assert len(await engine.jobs.create_many(jobs)) == 2


async def test_of_many_writers_of_one_key_at_once_one_wins(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    batches = [[engine.job(endpoint, key=f"key-{n}") for n in range(5)] for _ in range(8)]
    written = await asyncio.gather(*(engine.jobs.create_many(batch) for batch in batches))
    assert sum(len(batch) for batch in written) == 5
    assert await engine.count("jobs") == await engine.count("ready_queue") == 5


async def test_a_job_that_was_checked_against_an_older_endpoint_is_not_written(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    job = engine.job(endpoint)
    await engine.endpoints.update(NAMESPACE, endpoint.name, EndpointType.HTTP, engine.settings())
    assert await engine.jobs.create_many([job]) == []
    assert await engine.jobs.find_by_key([job.dedup_hash]) == {}


async def test_a_job_for_a_deleted_endpoint_is_not_written(engine: Engine) -> None:
    endpoint = await engine.endpoint()
    assert await engine.endpoints.delete(NAMESPACE, endpoint.name) == (True, [])
    assert await engine.jobs.create_many([engine.job(endpoint)]) == []


async def test_a_job_that_was_checked_against_an_older_payload_spec_is_not_written(engine: Engine) -> None:
    first = await engine.setup.create_payload_spec(NAMESPACE, "order", {})
    assert first is not None
    endpoint = await engine.endpoint(payload_spec="order")
    checked = replace(engine.job(endpoint), schema_revision_id=first.revision_id)
    newer = await engine.setup.update_payload_spec(NAMESPACE, "order", {"type": "object"})
    assert newer is not None
    assert await engine.jobs.create_many([checked]) == []
    assert len(await engine.jobs.create_many([replace(checked, schema_revision_id=newer.revision_id)])) == 1


async def test_a_job_that_was_not_checked_against_the_payload_spec_is_not_written(engine: Engine) -> None:
    await engine.setup.create_payload_spec(NAMESPACE, "order", {})
    endpoint = await engine.endpoint(payload_spec="order")
    assert await engine.jobs.create_many([engine.job(endpoint)]) == []


async def test_a_refused_job_does_not_hold_up_its_batch(engine: Engine) -> None:
    good, gone = await engine.endpoint(), await engine.endpoint()
    await engine.endpoints.delete(NAMESPACE, gone.name)
    written = await engine.jobs.create_many([engine.job(gone), job := engine.job(good)])
    assert [created.job_id for created in written] == [job.job_id]


@pytest.mark.parametrize("cut", Cut)
async def test_a_batch_without_an_answer_is_written_once(
    engine: Engine, far_db: Database, line: Line, cut: Cut
) -> None:
    """Repeated, it either writes, or finds its own jobs by their keys."""
    endpoint = await engine.endpoint()
    job = engine.job(endpoint)
    line.plan(cut)
    await JobStore(far_db, REGION).create_many([job])
    assert line.cuts == 1
    assert await engine.jobs.find_by_key([job.dedup_hash]) == {job.dedup_hash: job.job_id}
    assert await engine.count("executions") == await engine.count("ready_queue") == 1


async def test_a_job_is_active_until_its_execution_has_ended(engine: Engine) -> None:
    job_id = await engine.create_one(await engine.endpoint())
    before = await engine.jobs.get(NAMESPACE, job_id)
    await engine.executions.cancel(NAMESPACE, job_id)
    after = await engine.jobs.get(NAMESPACE, job_id)
    assert before is not None
    assert after is not None
    assert (before.status, after.status) == (JobStatus.ACTIVE, JobStatus.RETIRED)


async def test_another_namespace_sees_neither_the_job_nor_its_execution(engine: Engine) -> None:
    job_id = await engine.create_one(await engine.endpoint())
    assert await engine.jobs.get("elsewhere", job_id) is None
    assert await engine.executions.get("elsewhere", job_id) is None
    assert await engine.executions.cancel("elsewhere", job_id) is False
    assert await engine.jobs.get(NAMESPACE, uuid.uuid4()) is None
