"""Reads what an endpoint is wanted to be: shapes and bounds, and the defaults of what was left out."""

from __future__ import annotations

import math

from taskexecutor.v1 import endpoint_pb2 as pb
from taskexecutor_api.operations.register_endpoint import Registration
from taskexecutor_api.validate import optional_enum, require_name, require_object, within
from taskexecutor_common.errors import InvalidRequest
from taskexecutor_common.model.endpoint import (
    Backoff,
    CircuitBreaker,
    EndpointType,
    FlowControl,
    RateLimit,
    RetryPolicy,
)

_MAX_DELAY_MS = 86_400_000
_MAX_COUNT = 10_000  # of what is under way, of a burst, of attempts in a window
_MIN_PER_SEC = 0.001
_MAX_PER_SEC = 10_000
_MAX_WINDOW_SEC = 3600
_MAX_OPEN_SEC = 86_400

_Limits = pb.FlowControl | pb.RateLimit | pb.CircuitBreaker


def read_registration(
    request: pb.CreateEndpointRequest | pb.UpdateEndpointRequest, endpoint_type: EndpointType
) -> Registration:
    """The wanted settings. Raises InvalidRequest."""
    return Registration(
        endpoint_type=endpoint_type,
        payload_spec=require_name(request.payload_spec, "payload_spec") if request.HasField("payload_spec") else None,
        config=require_name(request.config, "config") if request.HasField("config") else None,
        spec=require_object(request, "spec"),
        retry_policy=_retry_policy(request.retry_policy),
        flow_control=_flow_control(request.flow_control),
    )


def _retry_policy(policy: pb.RetryPolicy) -> RetryPolicy:
    """The policy with its defaults; an absent message is all defaults."""
    default = RetryPolicy()
    backoff = optional_enum(policy.backoff, pb.RetryPolicy.Backoff, "retry_policy.backoff")
    statuses = [
        within(status, f"retry_policy.non_retryable_status_codes.{index}", least=100, most=599)
        for index, status in enumerate(policy.non_retryable_status_codes)
    ]
    return RetryPolicy(
        max_attempts=_setting(policy, "max_attempts", default.max_attempts, least=1, most=100),
        backoff=Backoff(backoff) if backoff else default.backoff,
        initial_delay_ms=_setting(policy, "initial_delay_ms", default.initial_delay_ms, least=0, most=_MAX_DELAY_MS),
        max_delay_ms=_setting(policy, "max_delay_ms", default.max_delay_ms, least=0, most=_MAX_DELAY_MS),
        non_retryable_status_codes=tuple(sorted(set(statuses))),
    )


def _setting(policy: pb.RetryPolicy, field: str, default: int, *, least: int, most: int) -> int:
    if not policy.HasField(field):
        return default
    return within(getattr(policy, field), f"retry_policy.{field}", least=least, most=most)


def _flow_control(control: pb.FlowControl) -> FlowControl:
    """The limits; an absent message is none."""
    return FlowControl(
        max_in_flight=_count(control, "max_in_flight", "flow_control"),
        rate_limit=_rate_limit(control.rate_limit) if control.HasField("rate_limit") else None,
        circuit_breaker=_circuit_breaker(control.circuit_breaker) if control.HasField("circuit_breaker") else None,
    )


def _rate_limit(limit: pb.RateLimit) -> RateLimit:
    """The rate, with the burst that goes with it."""
    field = "flow_control.rate_limit.per_second"
    if limit.per_second == 0:
        raise InvalidRequest(f"{field}: is required, {_MIN_PER_SEC} to {_MAX_PER_SEC}", field=field)
    if not _MIN_PER_SEC <= limit.per_second <= _MAX_PER_SEC:  # not a number is neither
        raise InvalidRequest(
            f"{field}: {limit.per_second:g} is not between {_MIN_PER_SEC} and {_MAX_PER_SEC}", field=field
        )
    burst = _count(limit, "burst", "flow_control.rate_limit")
    return RateLimit(limit.per_second, math.ceil(limit.per_second) if burst is None else burst)


def _circuit_breaker(breaker: pb.CircuitBreaker) -> CircuitBreaker:
    """The breaker with its defaults."""
    default, path = CircuitBreaker(), "flow_control.circuit_breaker"
    rate = breaker.failure_rate if breaker.HasField("failure_rate") else default.failure_rate
    if not 0 < rate <= 1:
        raise InvalidRequest(
            f"{path}.failure_rate: {rate:g} is not above 0 and at most 1", field=f"{path}.failure_rate"
        )
    return CircuitBreaker(
        failure_rate=rate,
        minimum_attempts=_count(breaker, "minimum_attempts", path) or default.minimum_attempts,
        window_ms=_milliseconds(breaker, "window_sec", path, most=_MAX_WINDOW_SEC) or default.window_ms,
        open_ms=_milliseconds(breaker, "open_sec", path, most=_MAX_OPEN_SEC) or default.open_ms,
    )


def _count(limits: _Limits, field: str, path: str, most: int = _MAX_COUNT) -> int | None:
    """A number of at least 1; None when it was left out."""
    if not limits.HasField(field):
        return None
    return within(getattr(limits, field), f"{path}.{field}", least=1, most=most)


def _milliseconds(breaker: pb.CircuitBreaker, field: str, path: str, *, most: int) -> int | None:
    seconds = _count(breaker, field, path, most)
    return None if seconds is None else seconds * 1000
