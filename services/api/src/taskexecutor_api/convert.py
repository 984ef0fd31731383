"""The model as messages of the public contract."""

from __future__ import annotations

from datetime import datetime
from functools import lru_cache
from typing import Any

from google.protobuf.struct_pb2 import Struct
from google.protobuf.timestamp_pb2 import Timestamp

from taskexecutor.v1 import api_key_pb2, config_pb2, endpoint_pb2, execution_pb2, job_pb2, payload_spec_pb2, secret_pb2
from taskexecutor_common import ids
from taskexecutor_common.model.endpoint import (
    NO_LIMITS,
    CircuitBreaker,
    Endpoint,
    EndpointFlow,
    EndpointRevision,
    FlowControl,
    RetryPolicy,
)
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
    return None if time is None else _timestamp(time)


def _timestamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp


# To be copied and never changed: the jobs of a batch and their executions have one time of creation.
_shared_timestamp = lru_cache(maxsize=64)(_timestamp)


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


def flow_control(control: FlowControl) -> endpoint_pb2.FlowControl | None:
    """Limits with their defaults filled in; None when there are none."""
    if control == NO_LIMITS:
        return None
    rate, breaker = control.rate_limit, control.circuit_breaker
    return endpoint_pb2.FlowControl(
        max_in_flight=control.max_in_flight,
        rate_limit=endpoint_pb2.RateLimit(per_second=rate.per_sec, burst=rate.burst) if rate else None,
        circuit_breaker=_circuit_breaker(breaker) if breaker else None,
    )


def _circuit_breaker(breaker: CircuitBreaker) -> endpoint_pb2.CircuitBreaker:
    return endpoint_pb2.CircuitBreaker(
        failure_rate=breaker.failure_rate,
        minimum_attempts=breaker.minimum_attempts,
        window_sec=breaker.window_ms // 1000,
        open_sec=breaker.open_ms // 1000,
    )


def flow_state(flow: EndpointFlow) -> endpoint_pb2.FlowState:
    """Whether an endpoint may send now."""
    return endpoint_pb2.FlowState(
        paused_at=to_timestamp(flow.paused_at),
        in_flight=flow.in_flight if flow.is_limited else None,
        circuit=flow.circuit.value if flow.control.circuit_breaker else None,
        closed_until=to_timestamp(flow.closed_until),
        closed_by=flow.closed_by.value if flow.closed_by else None,
    )


def endpoint(endpoint: Endpoint, flow: EndpointFlow | None) -> endpoint_pb2.Endpoint:
    """An endpoint; `flow` is None for one that an older version of the api has registered."""
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
        flow_control=flow_control(flow.control) if flow else None,
        flow_state=flow_state(flow) if flow else endpoint_pb2.FlowState(),
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
    message = job_pb2.Job()
    write_job(message, job, deduplicated=deduplicated)
    return message


def write_job(message: job_pb2.Job, job: Job, *, deduplicated: bool = False, sent_input: Struct | None = None) -> None:
    """Writes a job into an empty message: many are written where they belong and never copied.

    `sent_input` is the job's input as its caller sent it, where that is at hand; to build it anew takes ten times as long.
    """
    message.job_id = ids.job_id_text(job.job_id)
    message.endpoint = job.endpoint
    message.endpoint_type = job.endpoint_type.value
    message.trigger = job.trigger_type.value  # type: ignore[assignment]  # names of enum values are taken, too
    message.status = job.status.value  # type: ignore[assignment]
    message.version = job.version
    message.input.CopyFrom(to_struct(job.input) if sent_input is None else sent_input)
    message.endpoint_revision = job.endpoint_revision
    created_at = _shared_timestamp(job.created_at)
    message.created_at.CopyFrom(created_at)
    if job.idempotency_key is not None:
        message.idempotency_key = job.idempotency_key
    if job.run_at is not None:
        message.run_at.FromDatetime(job.run_at)
    if job.execution_id is not None and job.execution_status is not None:
        message.execution.execution_id = ids.execution_id_text(job.execution_id)
        message.execution.status = job.execution_status.value  # type: ignore[assignment]
        began_at = job.execution_created_at or job.created_at
        message.execution.created_at.CopyFrom(created_at if began_at is job.created_at else _shared_timestamp(began_at))
    if deduplicated:
        message.deduplicated = True
    if job.retired_at is not None:
        message.retired_at.FromDatetime(job.retired_at)
    if job.request_id is not None:
        message.request_id = job.request_id
    if job.trigger_type is Trigger.CRON:
        message.MergeFrom(_schedule(job))


def _schedule(job: Job) -> job_pb2.Job:
    """What only CRON jobs have."""
    return job_pb2.Job(
        previous_version_id=ids.job_id_text(job.previous_version_id) if job.previous_version_id else None,
        replaced_by_id=ids.job_id_text(job.replaced_by_id) if job.replaced_by_id else None,
        cron=job.cron_expression,
        timezone=job.cron_timezone,
        starts_at=to_timestamp(job.cron_starts_at),
        ends_at=to_timestamp(job.cron_ends_at),
        next_run_at=to_timestamp(job.next_run_at),
        last_tick_at=to_timestamp(job.last_tick_at),
        catch_up=job.catch_up.value if job.catch_up else None,
        paused_at=to_timestamp(job.paused_at),
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
