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
