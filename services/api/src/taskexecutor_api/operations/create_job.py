"""Creating jobs: check, write once, and answer the existing job when the key is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

import orjson

from taskexecutor_api.endpoint_catalog import EndpointCatalog, Entry
from taskexecutor_api.input_checks import InputChecks
from taskexecutor_api.operations.checked_entry import checked_entry
from taskexecutor_api.operations.job_writer import JobWriter
from taskexecutor_api.operations.turn import Turn
from taskexecutor_common.clock import Clock
from taskexecutor_common.cron import CronSchedule
from taskexecutor_common.errors import InputValidationFailed, InvalidCron, TaskExecutorError, Unavailable
from taskexecutor_common.ids import LaneIds, dedup_hash
from taskexecutor_common.model.job import CatchUp, CreatedJob, Job, JobStatus, NewCronJob, NewJob, Trigger
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.observability import metrics
from taskexecutor_common.rpc.hints import DispatcherHints, SchedulerHints
from taskexecutor_common.store.cron_jobs import CronJobStore
from taskexecutor_common.store.jobs import JobStore

_CREATED = {trigger: metrics.JOBS_CREATED.labels(trigger=trigger.value) for trigger in Trigger}
_TRIES = 5  # the endpoint may change while a job is created, but not for ever


class WantedJob(NamedTuple):
    """What a caller asks for; fields are checked against the trigger, contents not yet."""

    endpoint: str
    trigger: Trigger
    idempotency_key: str | None
    input: dict[str, Any] | None
    run_at: datetime | None = None
    cron: str | None = None
    timezone: str | None = None
    starts_at: datetime | None = None
    ends_at: datetime | None = None
    catch_up: CatchUp = CatchUp.ALL


class JobResult(NamedTuple):
    """The job, and whether it was there before."""

    job: Job
    deduplicated: bool


class JobCreator:
    """Creates jobs of all triggers in a namespace."""

    def __init__(
        self,
        store: JobStore,
        cron_jobs: CronJobStore,
        writer: JobWriter,
        catalog: EndpointCatalog,
        checks: InputChecks,
        lane_ids: LaneIds,
        clock: Clock,
        dispatchers: DispatcherHints,
        schedulers: SchedulerHints,
    ) -> None:
        self._store = store
        self._cron_jobs = cron_jobs
        self._writer = writer
        self._catalog = catalog
        self._checks = checks
        self._ids = lane_ids
        self._clock = clock
        self._dispatchers = dispatchers
        self._schedulers = schedulers

    async def create(self, namespace: str, wanted: WantedJob, request_id: str) -> JobResult:
        """Creates a job. Raises EndpointNotFound, InputValidationFailed, InvalidCron."""
        for _ in range(_TRIES):
            try:
                entry = await checked_entry(self._catalog, self._checks, namespace, wanted.endpoint, wanted.input)
            except InputValidationFailed:
                if (repeat := (await self._find_repeats(namespace, {0: wanted}, request_id)).get(0)) is not None:
                    return repeat
                raise
            if wanted.trigger is Trigger.CRON:
                result = await self._create_cron(namespace, wanted, entry, request_id)
            else:
                result = await self._create_once(namespace, wanted, entry, request_id)
            if result is not None:
                return result
            self._catalog.forget(namespace, wanted.endpoint)
        raise Unavailable("the endpoint is being changed all the time", retry_after=1)

    async def create_many(
        self, namespace: str, wanted: Sequence[WantedJob], request_id: str
    ) -> list[JobResult | TaskExecutorError]:
        """Creates jobs, each for itself; what went wrong with one is its result. One-shot jobs share statements."""
        results: dict[int, JobResult | TaskExecutorError] = {}
        ready: dict[int, tuple[NewJob, Entry]] = {}
        refused: dict[int, WantedJob] = {}
        turn = Turn()  # a thousand checks in a row would hold up all other calls
        for index, job in enumerate(wanted):
            if job.trigger is Trigger.CRON:
                continue
            try:
                entry = await checked_entry(self._catalog, self._checks, namespace, job.endpoint, job.input)
            except TaskExecutorError as error:
                results[index] = error
                if isinstance(error, InputValidationFailed):
                    refused[index] = job
            else:
                ready[index] = (self._new_job(job, entry, request_id), entry)
            await turn.pass_on_when_over()
        results |= await self._find_repeats(namespace, refused, request_id)
        results |= await self._write_batch(namespace, wanted, ready)
        for index, job in enumerate(wanted):
            if index not in results:  # a CRON job, or one whose endpoint changed meanwhile
                self._catalog.forget(namespace, job.endpoint)
                results[index] = await self._create_or_error(namespace, job, request_id)
        return [results[index] for index in range(len(wanted))]

    async def _write_batch(
        self, namespace: str, wanted: Sequence[WantedJob], ready: Mapping[int, tuple[NewJob, Entry]]
    ) -> dict[int, JobResult | TaskExecutorError]:
        if not ready:
            return {}
        created = {job.job_id: job for job in await self._store.create_many([new for new, _ in ready.values()])}
        unwritten = [new for new, _ in ready.values() if new.job_id not in created]
        existing = await self._find_existing(namespace, unwritten) if unwritten else {}
        results: dict[int, JobResult | TaskExecutorError] = {}
        for index, (new, entry) in ready.items():
            if written := created.get(new.job_id):
                results[index] = JobResult(_as_job(new, wanted[index], entry, written), deduplicated=False)
            elif found := existing.get(new.job_id):
                results[index] = found
        self._announce([new for new, _ in ready.values() if new.job_id in created], created)
        return results

    async def _create_or_error(
        self, namespace: str, wanted: WantedJob, request_id: str
    ) -> JobResult | TaskExecutorError:
        try:
            return await self.create(namespace, wanted, request_id)
        except TaskExecutorError as error:
            return error

    async def _create_once(self, namespace: str, wanted: WantedJob, entry: Entry, request_id: str) -> JobResult | None:
        """None: the endpoint has changed since it was looked up."""
        new = self._new_job(wanted, entry, request_id)
        created = await self._writer.write(new)
        if created is not None:
            self._announce([new], {new.job_id: created})
            return JobResult(_as_job(new, wanted, entry, created), deduplicated=False)
        return (await self._find_existing(namespace, [new])).get(new.job_id)

    async def _find_existing(self, namespace: str, unwritten: Sequence[NewJob]) -> dict[UUID, JobResult]:
        """The jobs that hold the keys of jobs that were not written, by the id of the latter."""
        holders = await self._store.find_by_key([new.dedup_hash for new in unwritten])
        jobs = await self._store.get_many(namespace, list(holders.values()))
        found = {}
        for new in unwritten:
            job = jobs.get(holders.get(new.dedup_hash, new.job_id))
            if job is None:
                continue
            ours = job.job_id == new.job_id  # written by a try whose answer was lost
            if ours:
                _CREATED[new.trigger_type].inc()
            else:
                metrics.JOBS_DEDUPLICATED.inc()
            found[new.job_id] = JobResult(job, deduplicated=not ours)
        return found

    async def _find_repeats(
        self, namespace: str, refused: Mapping[int, WantedJob], request_id: str
    ) -> dict[int, JobResult]:
        """Of jobs whose input is refused, those whose key is known: a client that repeats a call has not got the answer to
        the first, and shall get it though the schema has changed since."""
        repeats: dict[int, NewJob] = {}
        for index, job in refused.items():
            if job.idempotency_key and job.trigger is not Trigger.CRON:
                entry = await self._catalog.find(namespace, job.endpoint)
                repeats[index] = self._new_job(job, entry, request_id)
        found = await self._find_existing(namespace, list(repeats.values())) if repeats else {}
        return {index: found[job.job_id] for index, job in repeats.items() if job.job_id in found}

    def _new_job(self, wanted: WantedJob, entry: Entry, request_id: str) -> NewJob:
        job_id, lane = self._ids.new()
        key = wanted.idempotency_key or ""
        return NewJob(
            job_id=job_id,
            lane=lane,
            endpoint_id=entry.endpoint.endpoint_id,
            endpoint_revision=entry.endpoint.revision,
            schema_revision_id=entry.schema_revision_id,
            trigger_type=wanted.trigger,
            idempotency_key=key,
            dedup_hash=dedup_hash(entry.endpoint.endpoint_id, key),
            input_json=None if wanted.input is None else orjson.dumps(wanted.input).decode(),
            run_at=wanted.run_at,
            request_id=request_id,
        )

    def _announce(self, new: Sequence[NewJob], created: Mapping[UUID, CreatedJob]) -> None:
        """Counts jobs that were just created, and hints those whom they concern."""
        for job in new:
            _CREATED[job.trigger_type].inc()
        queues = {job.endpoint_id for job in new if created[job.job_id].status is ExecutionStatus.QUEUED}
        if queues:
            self._dispatchers.wake(queues)
        waiting = [job.run_at for job in new if job.run_at and created[job.job_id].status is ExecutionStatus.PENDING]
        if waiting:
            self._schedulers.wake(min(waiting))

    async def _create_cron(self, namespace: str, wanted: WantedJob, entry: Entry, request_id: str) -> JobResult | None:
        """None: the endpoint has changed since it was looked up."""
        first_run = self._first_run(wanted)
        job_id, lane = self._ids.new()
        new = NewCronJob(
            job_id=job_id,
            lane=lane,
            endpoint_id=entry.endpoint.endpoint_id,
            endpoint_revision=entry.endpoint.revision,
            version=1,
            root_job_id=job_id,
            previous_version_id=None,
            input_json=None if wanted.input is None else orjson.dumps(wanted.input).decode(),
            cron_expression=wanted.cron or "",
            cron_timezone=wanted.timezone or "",
            cron_starts_at=wanted.starts_at,
            cron_ends_at=wanted.ends_at,
            next_run_at=first_run,
            paused_at=None,
            catch_up=wanted.catch_up,
            request_id=request_id,
            schema_revision_id=entry.schema_revision_id,
        )
        written = await self._cron_jobs.create(new)
        job = await self._store.get(namespace, job_id)
        if job is None:
            return None
        if written:
            _CREATED[Trigger.CRON].inc()
        self._schedulers.wake(first_run)
        return JobResult(job, deduplicated=False)

    def _first_run(self, wanted: WantedJob) -> datetime:
        """The first tick. This process's clock may be off: a tick it believes ahead and the database behind fires at
        once, one the other way round is left out; both within the clocks' difference of the creation."""
        schedule = CronSchedule.parse(
            wanted.cron or "", wanted.timezone or "", starts_at=wanted.starts_at, ends_at=wanted.ends_at
        )
        first = schedule.first(self._clock.now())
        if first is None:
            raise InvalidCron("cron: there is no firing between starts_at and ends_at", field="cron")
        return first


def _as_job(new: NewJob, wanted: WantedJob, entry: Entry, created: CreatedJob) -> Job:
    """The job that was just written, without reading it back."""
    return Job(
        job_id=new.job_id,
        endpoint_id=new.endpoint_id,
        endpoint=entry.endpoint.name,
        endpoint_type=entry.endpoint.endpoint_type,
        endpoint_revision=new.endpoint_revision,
        trigger_type=new.trigger_type,
        status=JobStatus.ACTIVE,
        version=1,
        root_job_id=new.job_id,
        previous_version_id=None,
        replaced_by_id=None,
        idempotency_key=new.idempotency_key,
        input=wanted.input,
        run_at=new.run_at,
        cron_expression=None,
        cron_timezone=None,
        cron_starts_at=None,
        cron_ends_at=None,
        next_run_at=None,
        last_tick_at=None,
        catch_up=None,
        paused_at=None,
        execution_id=new.job_id,
        execution_status=created.status,
        execution_created_at=created.created_at,
        request_id=new.request_id,
        created_at=created.created_at,
        retired_at=None,
    )
