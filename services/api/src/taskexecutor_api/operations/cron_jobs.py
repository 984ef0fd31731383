"""What happens to cron jobs after their creation: new versions, pauses, figures; and previews of expressions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import orjson

from taskexecutor_api.endpoint_catalog import EndpointCatalog, Entry
from taskexecutor_api.input_checks import InputChecks
from taskexecutor_api.operations.checked_entry import checked_entry
from taskexecutor_api.operations.turn import Turn
from taskexecutor_common.clock import Clock
from taskexecutor_common.cron import CronSchedule
from taskexecutor_common.errors import InvalidCron, JobNotFound, JobNotUpdatable, Unavailable
from taskexecutor_common.ids import LaneIds, job_id_text
from taskexecutor_common.model.job import CatchUp, Job, JobStatus, LockedCronJob, NewCronJob, Trigger
from taskexecutor_common.rpc.hints import SchedulerHints
from taskexecutor_common.store.cron_jobs import CronJobStore, EndpointChanged
from taskexecutor_common.store.jobs import JobStore

_TRIES = 5
_INSTANT_BEFORE = timedelta(microseconds=1)
_BEGINNING = datetime.min.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class CronChange:
    """What a new version changes; None leaves it as it is."""

    cron: str | None
    timezone: str | None
    input: dict[str, Any] | None
    starts_at: datetime | None
    ends_at: datetime | None
    catch_up: CatchUp | None


class CronJobs:
    """Changes cron jobs of a namespace."""

    def __init__(
        self,
        jobs: JobStore,
        cron_jobs: CronJobStore,
        catalog: EndpointCatalog,
        checks: InputChecks,
        lane_ids: LaneIds,
        clock: Clock,
        schedulers: SchedulerHints,
    ) -> None:
        self._jobs = jobs
        self._cron_jobs = cron_jobs
        self._catalog = catalog
        self._checks = checks
        self._ids = lane_ids
        self._clock = clock
        self._schedulers = schedulers

    async def update(self, namespace: str, job_id: UUID, change: CronChange, request_id: str) -> Job:
        """Writes the next version. Raises JobNotFound, JobNotUpdatable, InvalidCron, InputValidationFailed."""
        old = await self._updatable(namespace, job_id)
        wanted = _merged(old, change)
        schedule = schedule_of(wanted)
        for _ in range(_TRIES):
            entry = await checked_entry(self._catalog, self._checks, namespace, old.endpoint, wanted.input)
            try:
                new = await self._replace(old, wanted, schedule, entry, request_id)
            except EndpointChanged:
                self._catalog.forget(namespace, old.endpoint)
                continue
            if new is None:
                raise JobNotUpdatable(f"job '{job_id_text(job_id)}' is retired")
            if new.next_run_at is not None:
                self._schedulers.wake(new.next_run_at)
            return await self._read(namespace, new.job_id)
        raise Unavailable("the endpoint is being changed all the time", retry_after=1)

    async def _replace(
        self, old: Job, wanted: Job, schedule: CronSchedule, entry: Entry, request_id: str
    ) -> NewCronJob | None:
        job_id, lane = self._ids.new()

        def successor(locked: LockedCronJob) -> NewCronJob:
            return NewCronJob(
                job_id=job_id,
                lane=lane,
                endpoint_id=entry.endpoint.endpoint_id,
                endpoint_revision=entry.endpoint.revision,
                version=old.version + 1,
                root_job_id=old.root_job_id,
                previous_version_id=old.job_id,
                input_json=None if wanted.input is None else orjson.dumps(wanted.input).decode(),
                cron_expression=wanted.cron_expression or "",
                cron_timezone=wanted.cron_timezone or "",
                cron_starts_at=wanted.cron_starts_at,
                cron_ends_at=wanted.cron_ends_at,
                next_run_at=None if locked.paused_at else _first_run(old, wanted, schedule, locked),
                paused_at=locked.paused_at,
                catch_up=wanted.catch_up or CatchUp.ALL,
                request_id=request_id,
                schema_revision_id=entry.schema_revision_id,
            )

        return await self._cron_jobs.replace(old.job_id, successor)

    async def pause(self, namespace: str, job_id: UUID) -> Job:
        """Stops the ticks; a paused job is answered as it is. Raises JobNotFound, JobNotUpdatable."""
        await self._updatable(namespace, job_id)
        if await self._cron_jobs.pause(job_id):
            return await self._read(namespace, job_id)
        return await self._updatable(namespace, job_id)  # paused already; or retired meanwhile, as by an update

    async def resume(self, namespace: str, job_id: UUID, catch_up: CatchUp) -> Job:
        """Lets it tick again; a job that is not paused is answered as it is. Raises JobNotFound, JobNotUpdatable."""
        schedule = schedule_of(await self._updatable(namespace, job_id))

        def next_run(paused_at: datetime, now: datetime) -> datetime | None:
            return schedule.next_after(now if catch_up is CatchUp.NONE else paused_at - _INSTANT_BEFORE)

        if not await self._cron_jobs.resume(job_id, catch_up, next_run):
            return await self._updatable(namespace, job_id)  # not paused; or retired meanwhile, as by an update
        job = await self._read(namespace, job_id)
        if job.next_run_at is not None:
            self._schedulers.wake(job.next_run_at)
        return job

    async def _updatable(self, namespace: str, job_id: UUID) -> Job:
        job = await self._read(namespace, job_id)
        if job.trigger_type is not Trigger.CRON:
            raise JobNotUpdatable(f"job '{job_id_text(job_id)}' fires once; only CRON jobs can be changed")
        if job.status is JobStatus.RETIRED:
            raise JobNotUpdatable(f"job '{job_id_text(job_id)}' is retired")
        return job

    async def _read(self, namespace: str, job_id: UUID) -> Job:
        job = await self._jobs.get(namespace, job_id)
        if job is None:
            raise JobNotFound.named(job_id_text(job_id))
        return job


def schedule_of(job: Job) -> CronSchedule:
    """The schedule of a cron job. Raises InvalidCron."""
    return CronSchedule.parse(
        job.cron_expression or "", job.cron_timezone or "", starts_at=job.cron_starts_at, ends_at=job.cron_ends_at
    )


async def preview(
    expression: str,
    timezone: str,
    *,
    starts_at: datetime | None,
    ends_at: datetime | None,
    now: datetime,
    count: int,
) -> list[datetime]:
    """The first `count` firings from `starts_at`, else from `now` on; fewer when the window ends before.

    Unlike a job, a preview may look at the past: what happened on some night is worth asking, too. Raises InvalidCron.
    Others are answered meanwhile: of an expression that seldom fires, a thousand firings take seconds to find.
    """
    turn = Turn()
    schedule = CronSchedule.parse(expression, timezone, starts_at=starts_at, ends_at=ends_at)
    firings: list[datetime] = []
    firing = schedule.first(now if starts_at is None else _BEGINNING)
    while firing is not None and len(firings) < count:
        firings.append(firing)
        await turn.pass_on_when_over()
        firing = schedule.next_after(firing)
    return firings


def _merged(old: Job, change: CronChange) -> Job:
    return old._replace(
        cron_expression=change.cron or old.cron_expression,
        cron_timezone=change.timezone or old.cron_timezone,
        input=old.input if change.input is None else change.input,
        cron_starts_at=change.starts_at or old.cron_starts_at,
        cron_ends_at=change.ends_at or old.cron_ends_at,
        catch_up=change.catch_up or old.catch_up,
    )


def _first_run(old: Job, wanted: Job, schedule: CronSchedule, locked: LockedCronJob) -> datetime:
    """The new version's first tick: from now on. Where the expression and the zone stay, the old version's tick that is due
    and has not fired yet is the new one's, so that an update in that moment swallows no firing. Other ones speak of the
    future only: they never were the schedule when that tick, or those missed after it, came."""
    due = locked.next_run_at
    stays = (wanted.cron_expression, wanted.cron_timezone) == (old.cron_expression, old.cron_timezone)
    if stays and due is not None and due <= locked.db_now:
        first = schedule.next_after(due - _INSTANT_BEFORE)
    else:
        first = schedule.first(locked.db_now)
    if first is None:
        raise InvalidCron("cron: there is no firing between starts_at and ends_at", field="cron")
    return first
