"""The model as messages of the public contract."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from taskexecutor.v1 import api_key_pb2, config_pb2, endpoint_pb2, execution_pb2, job_pb2, payload_spec_pb2, secret_pb2
from taskexecutor_common import ids
from taskexecutor_common.model.endpoint import Endpoint, EndpointRevision, RetryPolicy
from taskexecutor_common.model.execution import Attempt, Execution, ExecutionLog
from taskexecutor_common.model.job import CronJobFigures, Job, Trigger
from taskexecutor_common.model.setup import ApiKeyInfo, Config, ConfigRevision, PayloadSpec, Secret


def to_struct(value: dict[str, Any] | None) -> Struct:
    """Plain JSON as a Struct; None as an empty one."""
    struct = Struct()
    if value:
        struct.update(value)
    return struct


def to_timestamp(time: datetime | None) -> Timestamp | None:
    """A UTC time as a Timestamp."""
    if time is None:
        return None
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp


def payload_spec(spec: PayloadSpec) -> payload_spec_pb2.PayloadSpec:
    """A payload spec."""
    return payload_spec_pb2.PayloadSpec(
        name=spec.name,
        schema=to_struct(spec.schema_json),
        created_at=to_timestamp(spec.created_at),
        updated_at=to_timestamp(spec.updated_at),
    )


def config(config: Config) -> config_pb2.Config:
    """A config."""
    return config_pb2.Config(
        name=config.name,
        values=to_struct(config.values_json),
        revision=config.revision,
        created_at=to_timestamp(config.created_at),
        updated_at=to_timestamp(config.updated_at),
    )


def config_revision(name: str, revision: ConfigRevision) -> config_pb2.ConfigRevision:
    """A config revision."""
    return config_pb2.ConfigRevision(
        name=name,
        revision=revision.revision,
        values=to_struct(revision.values_json),
        created_at=to_timestamp(revision.created_at),
    )


def secret(secret: Secret) -> secret_pb2.Secret:
    """A secret, which is to say its metadata."""
    return secret_pb2.Secret(
        name=secret.name, created_at=to_timestamp(secret.created_at), updated_at=to_timestamp(secret.updated_at)
    )


def retry_policy(stored: dict[str, Any]) -> endpoint_pb2.RetryPolicy:
    """A retry policy with its defaults filled in."""
    policy = RetryPolicy.from_json(stored)
    return endpoint_pb2.RetryPolicy(
        max_attempts=policy.max_attempts,
        backoff=policy.backoff.value,
        initial_delay_ms=policy.initial_delay_ms,
        max_delay_ms=policy.max_delay_ms,
        non_retryable_status_codes=policy.non_retryable_status_codes,
    )


def endpoint(endpoint: Endpoint) -> endpoint_pb2.Endpoint:
    """An endpoint."""
    return endpoint_pb2.Endpoint(
        name=endpoint.name,
        type=endpoint.endpoint_type.value,
        payload_spec=endpoint.payload_spec,
        config=endpoint.config,
        spec=to_struct(endpoint.spec),
        retry_policy=retry_policy(endpoint.retry_policy),
        revision=endpoint.revision,
        created_at=to_timestamp(endpoint.created_at),
        updated_at=to_timestamp(endpoint.updated_at),
    )


def endpoint_revision(revision: EndpointRevision) -> endpoint_pb2.EndpointRevision:
    """An endpoint revision."""
    return endpoint_pb2.EndpointRevision(
        name=revision.name,
        revision=revision.revision,
        payload_spec=revision.payload_spec,
        config=revision.config,
        spec=to_struct(revision.spec),
        retry_policy=retry_policy(revision.retry_policy),
        created_at=to_timestamp(revision.created_at),
    )


def job(job: Job, *, deduplicated: bool = False) -> job_pb2.Job:
    """A job; a one-shot one with its execution in short."""
    return job_pb2.Job(
        job_id=ids.job_id_text(job.job_id),
        endpoint=job.endpoint,
        endpoint_type=job.endpoint_type.value,
        trigger=job.trigger_type.value,
        status=job.status.value,
        version=job.version,
        previous_version_id=ids.job_id_text(job.previous_version_id) if job.previous_version_id else None,
        replaced_by_id=ids.job_id_text(job.replaced_by_id) if job.replaced_by_id else None,
        idempotency_key=job.idempotency_key,
        input=to_struct(job.input),
        run_at=to_timestamp(job.run_at),
        cron=job.cron_expression,
        timezone=job.cron_timezone,
        starts_at=to_timestamp(job.cron_starts_at),
        ends_at=to_timestamp(job.cron_ends_at),
        next_run_at=to_timestamp(job.next_run_at),
        last_tick_at=to_timestamp(job.last_tick_at),
        catch_up=job.catch_up.value if job.catch_up else None,
        paused_at=to_timestamp(job.paused_at),
        execution=_summary(job),
        deduplicated=True if deduplicated else None,
        endpoint_revision=job.endpoint_revision,
        created_at=to_timestamp(job.created_at),
        retired_at=to_timestamp(job.retired_at),
        request_id=job.request_id,
    )


def _summary(job: Job) -> job_pb2.ExecutionSummary | None:
    if job.execution_id is None or job.execution_status is None:
        return None
    return job_pb2.ExecutionSummary(
        execution_id=ids.execution_id_text(job.execution_id),
        status=job.execution_status.value,
        created_at=to_timestamp(job.execution_created_at),
    )


def job_status(job: Job, health: str, last: Execution | None, figures: CronJobFigures) -> job_pb2.JobStatus:
    """How a job fares."""
    status = job_pb2.JobStatus(
        job_id=ids.job_id_text(job.job_id),
        endpoint=job.endpoint,
        endpoint_type=job.endpoint_type.value,
        trigger=job.trigger_type.value,
        health=health,
        version=job.version,
        active_executions=job_pb2.JobStatus.ActiveExecutions(
            pending=figures.pending, running=figures.running, total=figures.pending + figures.running
        ),
        stats=job_pb2.JobStatus.Stats(
            last_24h=job_pb2.JobStatus.WindowStats(
                total=figures.succeeded + figures.failed,
                succeeded=figures.succeeded,
                failed=figures.failed,
                avg_duration_ms=round(figures.avg_duration_ms),
                p99_duration_ms=round(figures.p99_duration_ms),
            )
        ),
    )
    if last is not None:
        status.last_execution.CopyFrom(_last_execution(last))
    if job.trigger_type is Trigger.CRON:
        cron = job_pb2.JobStatus.Cron(
            expression=job.cron_expression,
            next_run_at=to_timestamp(job.next_run_at),
            last_tick_at=to_timestamp(job.last_tick_at),
        )
        status.cron.CopyFrom(cron)
    return status


def _last_execution(execution: Execution) -> job_pb2.JobStatus.LastExecution:
    return job_pb2.JobStatus.LastExecution(
        execution_id=ids.execution_id_text(execution.execution_id),
        status=execution.status.value,
        started_at=to_timestamp(execution.started_at),
        completed_at=to_timestamp(execution.completed_at),
        attempt_number=execution.attempt_count,
    )


def execution(execution: Execution) -> execution_pb2.Execution:
    """An execution."""
    key = execution.idempotency_key
    if execution.tick_at is not None:
        key = ids.cron_key(execution.job_id, round(execution.tick_at.timestamp() * 1000))
    return execution_pb2.Execution(
        execution_id=ids.execution_id_text(execution.execution_id),
        job_id=ids.job_id_text(execution.job_id),
        endpoint=execution.endpoint,
        endpoint_type=execution.endpoint_type.value,
        idempotency_key=key,
        status=execution.status.value,
        input=to_struct(execution.input),
        output=None if execution.output is None else to_struct(execution.output),
        error=attempt_error(execution.error),
        attempt_count=execution.attempt_count,
        max_attempts=execution.max_attempts,
        run_at=to_timestamp(execution.run_at),
        started_at=to_timestamp(execution.started_at),
        completed_at=to_timestamp(execution.completed_at),
        duration_ms=execution.duration_ms,
        created_at=to_timestamp(execution.created_at),
    )


def attempt(attempt: Attempt) -> execution_pb2.Attempt:
    """An attempt."""
    return execution_pb2.Attempt(
        execution_id=ids.execution_id_text(attempt.execution_id),
        attempt_number=attempt.attempt_number,
        status=attempt.status.value,
        started_at=to_timestamp(attempt.started_at),
        completed_at=to_timestamp(attempt.completed_at),
        duration_ms=attempt.duration_ms,
        output=None if attempt.output is None else to_struct(attempt.output),
        error=attempt_error(attempt.error),
    )


def attempt_error(stored: dict[str, Any] | None) -> execution_pb2.AttemptError | None:
    """Why an attempt failed."""
    if stored is None:
        return None
    return execution_pb2.AttemptError(
        type=stored["type"], status_code=stored.get("status_code"), message=stored["message"]
    )


def execution_log(log: ExecutionLog) -> execution_pb2.ExecutionLog:
    """A log row."""
    return execution_pb2.ExecutionLog(
        attempt_number=log.attempt_number,
        level=log.level.value,
        message=log.message,
        logged_at=to_timestamp(log.logged_at),
    )


def api_key(info: ApiKeyInfo) -> api_key_pb2.ApiKey:
    """An API key, which is to say its metadata."""
    return api_key_pb2.ApiKey(
        key_id=info.key_id,
        name=info.name,
        scopes=info.scopes,
        created_at=to_timestamp(info.created_at),
        expires_at=to_timestamp(info.expires_at),
        revoked_at=to_timestamp(info.revoked_at),
    )
