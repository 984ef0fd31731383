"""Endpoints, their types and retry policies."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any
from uuid import UUID


class EndpointType(StrEnum):
    """The kinds of target."""

    HTTP = "HTTP"
    KAFKA = "KAFKA"
    REDIS_STREAM = "REDIS_STREAM"


class Backoff(StrEnum):
    """How the delay grows from attempt to attempt."""

    FIXED = "fixed"
    LINEAR = "linear"
    EXPONENTIAL = "exponential"


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """When and how often a failed attempt is tried again; delays in milliseconds."""

    max_attempts: int = 1
    backoff: Backoff = Backoff.EXPONENTIAL
    initial_delay_ms: int = 1000
    max_delay_ms: int = 60_000
    non_retryable_status_codes: tuple[int, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """The form that is stored."""
        return {
            "max_attempts": self.max_attempts,
            "backoff": self.backoff.value,
            "initial_delay_ms": self.initial_delay_ms,
            "max_delay_ms": self.max_delay_ms,
            "non_retryable_status_codes": list(self.non_retryable_status_codes),
        }

    @classmethod
    def from_json(cls, stored: dict[str, Any]) -> RetryPolicy:
        """Reads the stored form; what is missing takes its default."""
        known = {**cls().to_json(), **stored}
        return cls(
            max_attempts=known["max_attempts"],
            backoff=Backoff(known["backoff"]),
            initial_delay_ms=known["initial_delay_ms"],
            max_delay_ms=known["max_delay_ms"],
            non_retryable_status_codes=tuple(known["non_retryable_status_codes"]),
        )


@dataclass(frozen=True, slots=True)
class RateLimit:
    """A token bucket: `burst` deliveries at once, `per_sec` of them grow back each second."""

    per_sec: float
    burst: int


@dataclass(frozen=True, slots=True)
class CircuitBreaker:
    """When a failing receiver is left alone, and for how long. Times in milliseconds."""

    failure_rate: float = 0.5
    minimum_attempts: int = 20
    window_ms: int = 60_000
    open_ms: int = 30_000


@dataclass(frozen=True, slots=True)
class FlowControl:
    """What an endpoint takes at a time, over all dispatchers. None: no such limit."""

    max_in_flight: int | None = None
    rate_limit: RateLimit | None = None
    circuit_breaker: CircuitBreaker | None = None


NO_LIMITS = FlowControl()


class Circuit(StrEnum):
    """Where a circuit breaker stands."""

    CLOSED = "CLOSED"
    OPEN = "OPEN"
    HALF_OPEN = "HALF_OPEN"


class ClosedBy(StrEnum):
    """What holds an endpoint back for a time."""

    CIRCUIT = "CIRCUIT"
    RETRY_AFTER = "RETRY_AFTER"


@dataclass(frozen=True, slots=True)
class EndpointFlow:
    """An endpoint's limits and where they stand. Limits that are not set are None."""

    endpoint_id: UUID
    max_in_flight: int | None
    rate_per_sec: float | None
    burst: int | None
    failure_rate: float | None
    minimum_attempts: int | None
    window_ms: int | None
    open_ms: int | None
    is_limited: bool
    paused_at: datetime | None
    in_flight: int
    """Counted while limits are set."""
    circuit: Circuit
    closed_until: datetime | None
    closed_by: ClosedBy | None

    @property
    def control(self) -> FlowControl:
        """The limits as they were set."""
        rate_limit = breaker = None
        if self.rate_per_sec is not None and self.burst is not None:
            rate_limit = RateLimit(self.rate_per_sec, self.burst)
        if None not in (self.failure_rate, self.minimum_attempts, self.window_ms, self.open_ms):
            breaker = CircuitBreaker(self.failure_rate, self.minimum_attempts, self.window_ms, self.open_ms)  # type: ignore[arg-type]
        return FlowControl(self.max_in_flight, rate_limit, breaker)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A living endpoint in its current revision."""

    endpoint_id: UUID
    namespace: str
    name: str
    endpoint_type: EndpointType
    revision: int
    payload_spec: str | None
    config: str | None
    spec: dict[str, Any]
    retry_policy: dict[str, Any]
    created_at: datetime
    updated_at: datetime


@dataclass(frozen=True, slots=True)
class EndpointRevision:
    """One immutable state of an endpoint."""

    name: str
    revision: int
    payload_spec: str | None
    config: str | None
    spec: dict[str, Any]
    retry_policy: dict[str, Any]
    created_at: datetime
