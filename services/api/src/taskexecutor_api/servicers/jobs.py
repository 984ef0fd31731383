"""JobService on the wire."""

from __future__ import annotations

import asyncio
from uuid import UUID

from taskexecutor.v1 import job_pb2 as pb
from taskexecutor.v1 import job_pb2_grpc
from taskexecutor_api import convert, pages
from taskexecutor_api.auth import namespace
from taskexecutor_api.operations import job_status
from taskexecutor_api.operations.cancel import cancel_job
from taskexecutor_api.operations.create_job import JobCreator, JobResult, WantedJob
from taskexecutor_api.operations.cron_jobs import CronJobs, preview
from taskexecutor_api.replies import created
from taskexecutor_api.validate import optional_enum, optional_time, page_size, require_text, within
from taskexecutor_api.wanted_job import read_cron_change, read_wanted_job
from taskexecutor_common.clock import Clock
from taskexecutor_common.errors import InvalidRequest, JobNotFound, TaskExecutorError
from taskexecutor_common.ids import parse_id
from taskexecutor_common.model.job import CatchUp, Job, JobStatus, Trigger
from taskexecutor_common.rpc.calls import REQUEST_ID, Context
from taskexecutor_common.rpc.status import shown_message
from taskexecutor_common.store.cron_jobs import CronJobStore
from taskexecutor_common.store.endpoints import EndpointStore
from taskexecutor_common.store.executions import ExecutionStore
from taskexecutor_common.store.jobs import JobStore

_DEFAULT_PREVIEW = 10
_MAX_BATCH = 1000
_READ_AT_ONCE_BYTES = 64 * 1024
_MAX_PREVIEW = 1000


def job_uuid(text: str) -> UUID:
    """The UUID of a job id; what cannot be one does not exist."""
    job_id = parse_id(text, "job")
    if job_id is None:
        raise JobNotFound.named(text)
    return job_id


class JobServicer(job_pb2_grpc.JobServiceServicer):
    """See job.proto."""

    def __init__(
        self,
        jobs: JobStore,
        cron_jobs: CronJobStore,
        executions: ExecutionStore,
        endpoints: EndpointStore,
        creator: JobCreator,
        changes: CronJobs,
        clock: Clock,
    ) -> None:
        self._jobs = jobs
        self._cron_jobs = cron_jobs
        self._executions = executions
        self._endpoints = endpoints
        self._creator = creator
        self._changes = changes
        self._clock = clock

    async def CreateJob(self, request: pb.CreateJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        result = await self._creator.create(namespace(), read_wanted_job(request), REQUEST_ID.get())
        if not result.deduplicated:
            await created(context)
        job = pb.Job()
        _write_result(job, result, request)
        return job

    async def ListJobs(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        """See job.proto."""
        limit = page_size(request)
        trigger = optional_enum(request.trigger, pb.Job.Trigger, "trigger")
        status = optional_enum(request.status, pb.Job.Status, "status")
        endpoint = request.endpoint if request.HasField("endpoint") else None
        filters = [namespace(), endpoint, trigger, status]
        before = pages.read_cursor(request, "jobs", filters, pages.instant, pages.identifier) or pages.NEWEST_BY_ID
        rows = await self._jobs.list_page(
            namespace(),
            endpoint_ids=None if endpoint is None else await self._endpoints.find_ids(namespace(), endpoint),
            trigger=Trigger(trigger) if trigger else None,
            status=JobStatus(status) if status else None,
            before=before,
            page=limit + 1,
        )
        page, cursor = pages.cut(rows, limit, lambda row: (row.created_at, row.job_id), "jobs", filters)
        return pb.ListJobsResponse(items=map(convert.job, page), cursor=cursor)

    async def GetJob(self, request: pb.GetJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        return convert.job(await self._find(request.job_id))

    async def CancelJob(self, request: pb.CancelJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        job_id = job_uuid(request.job_id)
        return convert.job(await cancel_job(self._jobs, self._cron_jobs, self._executions, namespace(), job_id))

    async def BatchCreateJobs(self, request: pb.BatchCreateJobsRequest, context: Context) -> pb.BatchCreateJobsResponse:
        """See job.proto."""
        if not 1 <= len(request.jobs) <= _MAX_BATCH:
            raise InvalidRequest(f"jobs: has {len(request.jobs)} items, 1 to {_MAX_BATCH} may be sent", field="jobs")
        results: dict[int, JobResult | TaskExecutorError] = {}
        wanted: dict[int, WantedJob] = {}
        read_bytes = 0
        for index, job in enumerate(request.jobs):
            try:
                wanted[index] = read_wanted_job(job)
            except TaskExecutorError as error:
                results[index] = error
            read_bytes += job.ByteSize()
            if read_bytes > _READ_AT_ONCE_BYTES:
                read_bytes = 0
                await asyncio.sleep(0)  # other calls get their turn
        created_jobs = await self._creator.create_many(namespace(), list(wanted.values()), REQUEST_ID.get())
        results |= zip(wanted, created_jobs, strict=True)
        response = pb.BatchCreateJobsResponse()
        for index, job in enumerate(request.jobs):
            result, item = results[index], response.items.add()
            if isinstance(result, TaskExecutorError):
                item.error.code, item.error.message = result.reason, shown_message(result)
            else:
                _write_result(item.job, result, job)
        return response

    async def UpdateJob(self, request: pb.UpdateJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        job = await self._changes.update(
            namespace(), job_uuid(request.job_id), read_cron_change(request), REQUEST_ID.get()
        )
        return convert.job(job)

    async def GetJobStatus(self, request: pb.GetJobStatusRequest, context: Context) -> pb.JobStatus:
        """See job.proto."""
        job = await self._find(request.job_id)
        report = await job_status.report(self._cron_jobs, self._executions, self._clock, namespace(), job)
        return convert.job_status(job, report.health, report.last, report.figures)

    async def ListJobVersions(self, request: pb.ListJobVersionsRequest, context: Context) -> pb.ListJobVersionsResponse:
        """See job.proto."""
        limit = page_size(request)
        job = await self._find(request.job_id)
        filters = [namespace(), job.root_job_id]
        (before,) = pages.read_cursor(request, "job-versions", filters, pages.number) or (pages.LARGEST_NUMBER,)
        if job.trigger_type is not Trigger.CRON:
            return pb.ListJobVersionsResponse(items=[convert.job(job)])
        rows = await self._cron_jobs.list_versions(namespace(), job.root_job_id, before, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.version,), "job-versions", filters)
        return pb.ListJobVersionsResponse(items=map(convert.job, page), cursor=cursor)

    async def PauseJob(self, request: pb.PauseJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        return convert.job(await self._changes.pause(namespace(), job_uuid(request.job_id)))

    async def ResumeJob(self, request: pb.ResumeJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        catch_up = optional_enum(request.catch_up, pb.Job.CatchUp, "catch_up")
        chosen = CatchUp(catch_up) if catch_up else CatchUp.NONE
        return convert.job(await self._changes.resume(namespace(), job_uuid(request.job_id), chosen))

    async def PreviewCron(self, request: pb.PreviewCronRequest, context: Context) -> pb.PreviewCronResponse:
        """See job.proto."""
        count = request.count if request.HasField("count") else _DEFAULT_PREVIEW
        firings = await preview(
            require_text(request.cron, "cron", most=256),
            require_text(request.timezone, "timezone", most=64),
            starts_at=optional_time(request, "starts_at"),
            ends_at=optional_time(request, "ends_at"),
            now=self._clock.now(),
            count=within(count, "count", least=1, most=_MAX_PREVIEW),
        )
        items = [pb.PreviewCronResponse.Firing(run_at=convert.to_timestamp(firing)) for firing in firings]
        return pb.PreviewCronResponse(items=items)

    async def _find(self, text: str) -> Job:
        job = await self._jobs.get(namespace(), job_uuid(text))
        if job is None:
            raise JobNotFound.named(text)
        return job


def _write_result(message: pb.Job, result: JobResult, request: pb.CreateJobRequest) -> None:
    """Writes a job that was created, whose input is the one that was sent, or one that was there before."""
    sent_input = None if result.deduplicated else request.input
    convert.write_job(message, result.job, deduplicated=result.deduplicated, sent_input=sent_input)
