"""Jobs as callers see them and as they are written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any, NamedTuple
from uuid import UUID

from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.model.state import ExecutionStatus


class Trigger(StrEnum):
    """When a job fires."""

    IMMEDIATE = "IMMEDIATE"
    DELAYED = "DELAYED"
    CRON = "CRON"


class JobStatus(StrEnum):
    """Whether a job can still cause deliveries."""

    ACTIVE = "ACTIVE"
    RETIRED = "RETIRED"


class CatchUp(StrEnum):
    """What happens to ticks that were missed."""

    ALL = "ALL"
    LATEST = "LATEST"
    NONE = "NONE"


class Job(NamedTuple):
    """A job with what can change about it."""

    job_id: UUID
    endpoint_id: UUID
    endpoint: str
    endpoint_type: EndpointType
    endpoint_revision: int
    trigger_type: Trigger
    status: JobStatus
    version: int
    root_job_id: UUID
    previous_version_id: UUID | None
    replaced_by_id: UUID | None
    idempotency_key: str | None
    input: dict[str, Any] | None
    run_at: datetime | None
    cron_expression: str | None
    cron_timezone: str | None
    cron_starts_at: datetime | None
    cron_ends_at: datetime | None
    next_run_at: datetime | None
    last_tick_at: datetime | None
    catch_up: CatchUp | None
    paused_at: datetime | None
    execution_id: UUID | None
    execution_status: ExecutionStatus | None
    execution_created_at: datetime | None
    request_id: str | None
    created_at: datetime
    retired_at: datetime | None


@dataclass(frozen=True, slots=True)
class NewJob:
    """A one-shot job that was checked and waits to be written. Its execution bears the same UUID."""

    job_id: UUID
    lane: int
    endpoint_id: UUID
    endpoint_revision: int
    schema_revision_id: UUID | None
    """The payload spec state that the input was checked against."""
    trigger_type: Trigger
    idempotency_key: str
    dedup_hash: bytes
    input_json: str | None
    run_at: datetime | None
    request_id: str


class CreatedJob(NamedTuple):
    """What became of a NewJob that was written."""

    job_id: UUID
    status: ExecutionStatus
    created_at: datetime


@dataclass(frozen=True, slots=True)
class KnownKey:
    """A job that holds an idempotency key."""

    job_id: UUID
    dedup_hash: bytes


@dataclass(frozen=True, slots=True)
class NewCronJob:
    """A cron job that was checked and waits to be written."""

    job_id: UUID
    lane: int
    endpoint_id: UUID
    endpoint_revision: int
    version: int
    root_job_id: UUID
    previous_version_id: UUID | None
    input_json: str | None
    cron_expression: str
    cron_timezone: str
    cron_starts_at: datetime | None
    cron_ends_at: datetime | None
    next_run_at: datetime | None
    """None: paused."""
    paused_at: datetime | None
    catch_up: CatchUp
    request_id: str
    schema_revision_id: UUID | None = None
    """Of the payload spec that the input was checked against; None: there is none."""


@dataclass(frozen=True, slots=True)
class LockedCronJob:
    """A schedule as it stands, locked, and the database's now."""

    job_id: UUID
    status: JobStatus
    next_run_at: datetime | None
    paused_at: datetime | None
    db_now: datetime


@dataclass(frozen=True, slots=True)
class CronJobFigures:
    """What the status of a cron job shows; durations in milliseconds, ends of the last 24 hours."""

    pending: int
    running: int
    succeeded: int
    failed: int
    avg_duration_ms: float
    p99_duration_ms: float


@dataclass(frozen=True, slots=True)
class DueCronJob:
    """A schedule whose next tick has come."""

    job_id: UUID
    tick_at: datetime
    cron_expression: str
    cron_timezone: str
    cron_starts_at: datetime | None
    cron_ends_at: datetime | None
    catch_up: CatchUp
    db_now: datetime


@dataclass(frozen=True, slots=True)
class CronTick:
    """What is to become of a due tick: fired (at its nominal time) or skipped, and when the next one is."""

    job_id: UUID
    tick_at: datetime
    fired_at: datetime | None
    next_at: datetime | None
    execution_id: UUID
