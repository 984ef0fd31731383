"""Executions, attempts and logs; claims and their results."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple
from uuid import UUID

from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.model.state import AttemptStatus, ExecutionStatus, LogLevel


@dataclass(frozen=True, slots=True)
class Execution:
    """One firing of a job and what became of it."""

    execution_id: UUID
    job_id: UUID
    endpoint: str
    endpoint_type: EndpointType
    idempotency_key: str | None
    tick_at: datetime | None
    status: ExecutionStatus
    input: dict[str, Any] | None
    output: dict[str, Any] | None
    error: dict[str, Any] | None
    attempt_count: int
    max_attempts: int
    run_at: datetime
    started_at: datetime | None
    completed_at: datetime | None
    duration_ms: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class Attempt:
    """One try to deliver."""

    execution_id: UUID
    attempt_number: int
    status: AttemptStatus
    started_at: datetime
    completed_at: datetime | None
    duration_ms: int | None
    output: dict[str, Any] | None
    error: dict[str, Any] | None


@dataclass(frozen=True, slots=True)
class ExecutionLog:
    """A line of an execution's log."""

    attempt_number: int
    seq: int
    level: LogLevel
    message: str
    logged_at: datetime


class Claim(NamedTuple):
    """An execution that this worker holds under a lease. Times measured by the database's clock."""

    execution_id: UUID
    job_id: UUID
    namespace: str
    queue: UUID
    endpoint_revision: int
    config_revision_id: UUID | None
    attempt_count: int
    max_attempts: int
    scheduled_at: datetime
    claimed_at_ms: float
    """The clock at the claim, as milliseconds since the epoch."""
    ready_at_ms: float
    """When it was ready, likewise; later than the claim when it was claimed ahead of its time, before which nothing is sent."""
    late_ms: float
    """From being due to being claimed."""
    job_version: int
    input: dict[str, Any] | None

    @property
    def ahead_ms(self) -> float:
        """How long before its time it was claimed; negative: how long it had waited."""
        return self.ready_at_ms - self.claimed_at_ms


@dataclass(frozen=True, slots=True)
class AttemptResult:
    """How a claimed attempt ended and what follows. Field by field what `finalise_executions` reads, as JSON."""

    execution_id: UUID
    attempt_number: int
    attempt_status: AttemptStatus
    next_status: ExecutionStatus
    retry_delay_ms: int
    duration_ms: int
    output: dict[str, Any] | None
    error: dict[str, Any] | None
    log_level: LogLevel | None
    log_message: str | None
    is_receivers_fault: bool = False
    """Counts against the endpoint's circuit breaker."""
    close_ms: int | None = None
    """The receiver wants a rest: its endpoint sends nothing for so long."""
    is_counted: bool = True
    """False: it says nothing of this delivery, and is not one of the attempts that the execution has."""


class Finalised(NamedTuple):
    """A result that was recorded. `run_at` is the time of the next attempt, unknown where the answer had been lost."""

    execution_id: UUID
    attempt_number: int
    status: ExecutionStatus
    run_at: datetime | None
    counted_for: UUID | None
    """The endpoint with limits that has room for another delivery now."""
    closed: UUID | None
    """The endpoint that sends nothing for `close_ms` from now, because its receiver wants a rest."""
    close_ms: int | None


class QueueState(NamedTuple):
    """A queue that has work."""

    queue: UUID
    is_limited: bool
    """True when its endpoint counts what is in flight, keeps a rate or has a circuit breaker."""
    opens_in_ms: float | None
    """0: it may send now. None: not before something happens, such as an answer or the end of a pause."""


@dataclass(frozen=True, slots=True)
class Reclaimed:
    """An execution that was taken back from a worker."""

    execution_id: UUID
    queue: UUID
    status: ExecutionStatus
    worker_id: UUID
    attempt_number: int
