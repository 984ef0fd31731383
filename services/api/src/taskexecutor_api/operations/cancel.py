"""Cancelling: a cron job stops firing, an execution that waits is taken back."""

from __future__ import annotations

from uuid import UUID

from taskexecutor_common.errors import ExecutionNotCancellable, ExecutionNotFound, JobNotFound
from taskexecutor_common.ids import execution_id_text, job_id_text
from taskexecutor_common.model.execution import Execution
from taskexecutor_common.model.job import Job, Trigger
from taskexecutor_common.model.state import WAITING, ExecutionStatus
from taskexecutor_common.store.cron_jobs import CronJobStore
from taskexecutor_common.store.executions import ExecutionStore
from taskexecutor_common.store.jobs import JobStore

_TRIES = 5  # each lost one to an attempt that began and ended meanwhile


async def cancel_execution(store: ExecutionStore, namespace: str, execution_id: UUID) -> Execution:
    """Cancels what waits; what is cancelled already is answered again.

    Raises ExecutionNotFound, ExecutionNotCancellable.
    """
    # An attempt may end within a try: it ran when it was to be cancelled, and waits for its retry when it is read.
    for _ in range(_TRIES):
        execution = await _try_to_cancel(store, namespace, execution_id)
        if execution.status not in WAITING:
            break
    if execution.status is not ExecutionStatus.CANCELLED:
        raise ExecutionNotCancellable(
            f"execution '{execution_id_text(execution_id)}' is {execution.status}; only what waits can be cancelled"
        )
    return execution


async def _try_to_cancel(store: ExecutionStore, namespace: str, execution_id: UUID) -> Execution:
    await store.cancel(namespace, execution_id)
    execution = await store.get(namespace, execution_id)
    if execution is None:
        raise ExecutionNotFound.named(execution_id_text(execution_id))
    return execution


async def cancel_job(
    jobs: JobStore, cron_jobs: CronJobStore, executions: ExecutionStore, namespace: str, job_id: UUID
) -> Job:
    """Retires a cron job, or cancels the execution of a one-shot job. Raises JobNotFound, ExecutionNotCancellable."""
    job = await jobs.get(namespace, job_id)
    if job is None:
        raise JobNotFound.named(job_id_text(job_id))
    if job.trigger_type is Trigger.CRON:
        await cron_jobs.retire(job_id)
    else:
        await cancel_execution(executions, namespace, job_id)
    cancelled = await jobs.get(namespace, job_id)
    if cancelled is None:
        raise JobNotFound.named(job_id_text(job_id))
    return cancelled
