"""How a job fares: its health, what has not ended, and the figures of the last day."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

from taskexecutor_api.pages import END_OF_TIME
from taskexecutor_common.clock import Clock
from taskexecutor_common.model.execution import Execution
from taskexecutor_common.model.job import CronJobFigures, Job, Trigger
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.store.cron_jobs import CronJobStore
from taskexecutor_common.store.executions import ExecutionStore

_DEGRADED_FROM = 0.1
_FAILING_FROM = 0.5


class Health(StrEnum):
    """How a job fares."""

    HEALTHY = "HEALTHY"
    DEGRADED = "DEGRADED"
    FAILING = "FAILING"
    IDLE = "IDLE"


@dataclass(frozen=True, slots=True)
class StatusReport:
    """All that the status shows besides the job itself."""

    health: Health
    last: Execution | None
    figures: CronJobFigures


def judge(succeeded: int, failed: int) -> Health:
    """IDLE without an end in 24 hours; DEGRADED from a tenth of failures on, FAILING from a half."""
    if succeeded + failed == 0:
        return Health.IDLE
    share = failed / (succeeded + failed)
    if share < _DEGRADED_FROM:
        return Health.HEALTHY
    return Health.DEGRADED if share < _FAILING_FROM else Health.FAILING


async def report(
    cron_jobs: CronJobStore, executions: ExecutionStore, clock: Clock, namespace: str, job: Job
) -> StatusReport:
    """The status of a job."""
    if job.trigger_type is Trigger.CRON:
        figures = await cron_jobs.figures(job.job_id)
        newest = await executions.list_of_cron_job(namespace, job.job_id, None, END_OF_TIME, 1)
        last = newest[0] if newest else None
    else:
        last = await executions.get(namespace, job.job_id)
        figures = _figures_of(last, clock)
    return StatusReport(judge(figures.succeeded, figures.failed), last, figures)


def _figures_of(execution: Execution | None, clock: Clock) -> CronJobFigures:
    """A one-shot job has one execution to count."""
    if execution is None:
        return CronJobFigures(0, 0, 0, 0, 0.0, 0.0)
    recent = execution.completed_at is not None and clock.now() - execution.completed_at < timedelta(hours=24)
    duration = float(execution.duration_ms or 0) if recent else 0.0
    return CronJobFigures(
        pending=int(execution.completed_at is None and execution.status is not ExecutionStatus.RUNNING),
        running=int(execution.status is ExecutionStatus.RUNNING),
        succeeded=int(recent and execution.status is ExecutionStatus.SUCCESS),
        failed=int(recent and execution.status is ExecutionStatus.FAILED),
        avg_duration_ms=duration,
        p99_duration_ms=duration,
    )
