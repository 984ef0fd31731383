"""ExecutionService on the wire."""

from __future__ import annotations

from uuid import UUID

from taskexecutor.v1 import execution_pb2 as pb
from taskexecutor.v1 import execution_pb2_grpc
from taskexecutor_api import convert, pages
from taskexecutor_api.auth import namespace
from taskexecutor_api.operations.cancel import cancel_execution
from taskexecutor_api.servicers.jobs import job_uuid
from taskexecutor_api.validate import optional_enum, page_size
from taskexecutor_common.errors import ExecutionNotFound, JobNotFound
from taskexecutor_common.ids import parse_id
from taskexecutor_common.model.execution import Execution
from taskexecutor_common.model.job import Trigger
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.rpc.calls import Context
from taskexecutor_common.store.executions import ExecutionStore
from taskexecutor_common.store.jobs import JobStore


def execution_uuid(text: str) -> UUID:
    """The UUID of an execution id; what cannot be one does not exist."""
    execution_id = parse_id(text, "exec")
    if execution_id is None:
        raise ExecutionNotFound.named(text)
    return execution_id


class ExecutionServicer(execution_pb2_grpc.ExecutionServiceServicer):
    """See execution.proto."""

    def __init__(self, jobs: JobStore, executions: ExecutionStore) -> None:
        self._jobs = jobs
        self._executions = executions

    async def GetExecution(self, request: pb.GetExecutionRequest, context: Context) -> pb.Execution:
        """See execution.proto."""
        return convert.execution(await self._find(request.execution_id))

    async def CancelExecution(self, request: pb.CancelExecutionRequest, context: Context) -> pb.Execution:
        """See execution.proto."""
        execution_id = execution_uuid(request.execution_id)
        return convert.execution(await cancel_execution(self._executions, namespace(), execution_id))

    async def ListAttempts(self, request: pb.ListAttemptsRequest, context: Context) -> pb.ListAttemptsResponse:
        """See execution.proto."""
        limit = page_size(request)
        execution = await self._find(request.execution_id)
        filters = [namespace(), execution.execution_id]
        (after,) = pages.read_cursor(request, "attempts", filters, pages.number) or (0,)
        rows = await self._executions.list_attempts(execution.execution_id, after, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.attempt_number,), "attempts", filters)
        return pb.ListAttemptsResponse(items=map(convert.attempt, page), cursor=cursor)

    async def ListExecutionLogs(
        self, request: pb.ListExecutionLogsRequest, context: Context
    ) -> pb.ListExecutionLogsResponse:
        """See execution.proto."""
        limit = page_size(request)
        execution = await self._find(request.execution_id)
        filters = [namespace(), execution.execution_id]
        after = pages.read_cursor(request, "logs", filters, pages.number, pages.number) or (0, 0)
        rows = await self._executions.list_logs(execution.execution_id, after, limit + 1)
        page, cursor = pages.cut(rows, limit, lambda row: (row.attempt_number, row.seq), "logs", filters)
        return pb.ListExecutionLogsResponse(items=map(convert.execution_log, page), cursor=cursor)

    async def ListJobExecutions(
        self, request: pb.ListJobExecutionsRequest, context: Context
    ) -> pb.ListJobExecutionsResponse:
        """See execution.proto."""
        limit = page_size(request)
        status = optional_enum(request.status, pb.Execution.Status, "status")
        job = await self._jobs.get(namespace(), job_uuid(request.job_id))
        if job is None:
            raise JobNotFound.named(request.job_id)
        filters = [namespace(), job.job_id, status]
        (before,) = pages.read_cursor(request, "job-executions", filters, pages.instant) or (pages.END_OF_TIME,)
        if job.trigger_type is not Trigger.CRON:
            return await self._only_execution(job.job_id, status)
        rows = await self._executions.list_of_cron_job(
            namespace(), job.job_id, ExecutionStatus(status) if status else None, before, limit + 1
        )
        page, cursor = pages.cut(rows, limit, lambda row: (row.tick_at,), "job-executions", filters)
        return pb.ListJobExecutionsResponse(items=map(convert.execution, page), cursor=cursor)

    async def _only_execution(self, job_id: UUID, status: str | None) -> pb.ListJobExecutionsResponse:
        """A one-shot job has one execution, which bears the job's UUID."""
        execution = await self._executions.get(namespace(), job_id)
        wanted = execution is not None and (status is None or execution.status.value == status)
        return pb.ListJobExecutionsResponse(items=[convert.execution(execution)] if execution and wanted else [])

    async def _find(self, text: str) -> Execution:
        execution = await self._executions.get(namespace(), execution_uuid(text))
        if execution is None:
            raise ExecutionNotFound.named(text)
        return execution
