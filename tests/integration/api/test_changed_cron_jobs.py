"""Changes of cron jobs in bad moments: while their tick is late, and beside each other."""

from __future__ import annotations

import uuid
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import pytest

from taskexecutor_api.endpoint_catalog import EndpointCatalog
from taskexecutor_api.input_checks import InputChecks
from taskexecutor_api.operations.cron_jobs import CronChange, CronJobs
from taskexecutor_common.clock import Clock
from taskexecutor_common.errors import JobNotUpdatable
from taskexecutor_common.ids import LaneIds
from taskexecutor_common.model.job import CatchUp, Job, JobStatus
from tests.support.engine import NAMESPACE, Engine

HOURLY = "0 * * * *"
NO_CHANGE = CronChange(None, None, {"v": 2}, None, None, None)


class Unheard:
    """Stands in for SchedulerHints: nobody is there to hear."""

    def wake(self, due_at: datetime) -> None:
        """Goes nowhere."""


@pytest.fixture
def operations(engine: Engine) -> CronJobs:
    clock = Clock()
    return CronJobs(
        engine.jobs,
        engine.cron_jobs,
        EndpointCatalog(engine.endpoints, engine.setup),
        InputChecks(),
        LaneIds(len(engine.lanes), clock.epoch_ms),
        clock,
        Unheard(),  # type: ignore[arg-type]
    )


async def late_by_hours(engine: Engine, hours: int) -> tuple[uuid.UUID, datetime]:
    """An hourly job for which no scheduler ran, and the first tick that it missed."""
    due = (await engine.now()).replace(minute=0, second=0, microsecond=0) - timedelta(hours=hours)
    return await engine.create_cron(await engine.endpoint(), due, expression=HOURLY), due


# --- an update of a job whose tick is late ---


@pytest.mark.parametrize(
    "change",
    [replace(NO_CHANGE, cron="* * * * *"), replace(NO_CHANGE, timezone="Asia/Kolkata")],
    ids=["expression", "zone"],
)
async def test_other_times_hold_from_the_update_on(engine: Engine, operations: CronJobs, change: CronChange) -> None:
    job_id, _ = await late_by_hours(engine, 3)
    before = await engine.now()
    updated = await operations.update(NAMESPACE, job_id, change, "req_test")
    assert updated.next_run_at is not None
    assert updated.next_run_at > before


@pytest.mark.parametrize(
    "change", [NO_CHANGE, replace(NO_CHANGE, cron=HOURLY, timezone="UTC")], ids=["not named", "named"]
)
async def test_an_update_that_leaves_the_times_swallows_no_firing(
    engine: Engine, operations: CronJobs, change: CronChange
) -> None:
    job_id, due = await late_by_hours(engine, 3)
    assert (await operations.update(NAMESPACE, job_id, change, "req_test")).next_run_at == due


# --- a pause, or a resume, beside something that retires the job ---


def retired_just_before(
    engine: Engine, operations: CronJobs, monkeypatch: pytest.MonkeyPatch, verb: str, by: str, job_id: uuid.UUID
) -> None:
    """Something else retires the job after `verb` looked at it, and before it acts."""
    act = getattr(engine.cron_jobs, verb)

    async def too_late(*arguments: Any) -> Any:
        if by == "an update":
            await operations.update(NAMESPACE, job_id, NO_CHANGE, "req_test")
        else:
            await engine.cron_jobs.retire(job_id)
        return await act(*arguments)

    monkeypatch.setattr(engine.cron_jobs, verb, too_late)


async def do(operations: CronJobs, verb: str, job_id: uuid.UUID) -> Job:
    if verb == "pause":
        return await operations.pause(NAMESPACE, job_id)
    return await operations.resume(NAMESPACE, job_id, CatchUp.NONE)


@pytest.mark.parametrize("by", ["an update", "a cancellation"])
@pytest.mark.parametrize("verb", ["pause", "resume"])
async def test_what_was_retired_in_between_is_not_said_to_be_paused_or_resumed(
    engine: Engine, operations: CronJobs, monkeypatch: pytest.MonkeyPatch, verb: str, by: str
) -> None:
    job_id = await engine.create_cron(await engine.endpoint(), await engine.now() + timedelta(hours=1))
    if verb == "resume":
        await operations.pause(NAMESPACE, job_id)
    retired_just_before(engine, operations, monkeypatch, verb, by, job_id)
    with pytest.raises(JobNotUpdatable):
        await do(operations, verb, job_id)


@pytest.mark.parametrize("verb", ["pause", "resume"])
async def test_a_second_pause_or_resume_answers_the_job_as_it_is(
    engine: Engine, operations: CronJobs, verb: str
) -> None:
    job_id = await engine.create_cron(await engine.endpoint(), await engine.now() + timedelta(hours=1))
    await operations.pause(NAMESPACE, job_id)
    assert await do(operations, verb, job_id) == await do(operations, verb, job_id)


async def test_a_resume_after_the_last_tick_answers_the_job_that_it_retired(
    engine: Engine, operations: CronJobs
) -> None:
    now = await engine.now()
    job_id = await engine.create_cron(await engine.endpoint(), now, ends_at=now)
    await operations.pause(NAMESPACE, job_id)
    assert (await operations.resume(NAMESPACE, job_id, CatchUp.NONE)).status is JobStatus.RETIRED
