"""JobService on the wire."""

from __future__ import annotations

from uuid import UUID

from taskexecutor.v1 import job_pb2 as pb
from taskexecutor.v1 import job_pb2_grpc
from taskexecutor_api import convert, pages
from taskexecutor_api.auth import namespace
from taskexecutor_api.operations.cancel import cancel_job
from taskexecutor_api.operations.create_job import JobCreator
from taskexecutor_api.replies import created
from taskexecutor_api.validate import optional_enum, page_size
from taskexecutor_api.wanted_job import read_wanted_job
from taskexecutor_common.errors import JobNotFound, NotServed
from taskexecutor_common.ids import parse_id
from taskexecutor_common.model.job import JobStatus, Trigger
from taskexecutor_common.rpc.calls import REQUEST_ID, Context
from taskexecutor_common.store.endpoints import EndpointStore
from taskexecutor_common.store.executions import ExecutionStore
from taskexecutor_common.store.jobs import JobStore


def job_uuid(text: str) -> UUID:
    """The UUID of a job id; what cannot be one does not exist."""
    job_id = parse_id(text, "job")
    if job_id is None:
        raise JobNotFound.named(text)
    return job_id


class JobServicer(job_pb2_grpc.JobServiceServicer):
    """See job.proto."""

    def __init__(
        self, jobs: JobStore, executions: ExecutionStore, endpoints: EndpointStore, creator: JobCreator
    ) -> None:
        self._jobs = jobs
        self._executions = executions
        self._endpoints = endpoints
        self._creator = creator

    async def CreateJob(self, request: pb.CreateJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        result = await self._creator.create(namespace(), read_wanted_job(request), REQUEST_ID.get())
        if not result.deduplicated:
            await created(context)
        return convert.job(result.job, deduplicated=result.deduplicated)

    async def ListJobs(self, request: pb.ListJobsRequest, context: Context) -> pb.ListJobsResponse:
        """See job.proto."""
        limit = page_size(request)
        trigger = optional_enum(request.trigger, pb.Job.Trigger.items(), "trigger")
        status = optional_enum(request.status, pb.Job.Status.items(), "status")
        endpoint = request.endpoint if request.HasField("endpoint") else None
        filters = [namespace(), endpoint, trigger, status]
        before = pages.time_key(pages.read_cursor(request, "jobs", filters), pages.LAST_ID, UUID)
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
        job = await self._jobs.get(namespace(), job_uuid(request.job_id))
        if job is None:
            raise JobNotFound.named(request.job_id)
        return convert.job(job)

    async def CancelJob(self, request: pb.CancelJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        return convert.job(await cancel_job(self._jobs, self._executions, namespace(), job_uuid(request.job_id)))

    async def BatchCreateJobs(self, request: pb.BatchCreateJobsRequest, context: Context) -> pb.BatchCreateJobsResponse:
        """See job.proto."""
        raise NotServed("batches are not served by this version")

    async def UpdateJob(self, request: pb.UpdateJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        raise NotServed("updates of cron jobs are not served by this version")

    async def GetJobStatus(self, request: pb.GetJobStatusRequest, context: Context) -> pb.JobStatus:
        """See job.proto."""
        raise NotServed("the status of cron jobs is not served by this version")

    async def ListJobVersions(self, request: pb.ListJobVersionsRequest, context: Context) -> pb.ListJobVersionsResponse:
        """See job.proto."""
        raise NotServed("the versions of cron jobs are not served by this version")

    async def PauseJob(self, request: pb.PauseJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        raise NotServed("pausing is not served by this version")

    async def ResumeJob(self, request: pb.ResumeJobRequest, context: Context) -> pb.Job:
        """See job.proto."""
        raise NotServed("resuming is not served by this version")

    async def PreviewCron(self, request: pb.PreviewCronRequest, context: Context) -> pb.PreviewCronResponse:
        """See job.proto."""
        raise NotServed("a preview of cron firings is not served by this version")
