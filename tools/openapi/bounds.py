"""What the api enforces and the descriptor cannot say: lengths, ranges, patterns, defaults, and what belongs to a variant.

Where the api has a public constant, it is taken from there; the rest is held to the api by tests/e2e_fuzz, which sends
values on both sides of every bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from taskexecutor_api.validate import DEFAULT_PAGE, MAX_EXACT, MAX_PAGE
from taskexecutor_common.endpoint_types.http import HttpSpec
from taskexecutor_common.endpoint_types.kafka import KafkaSpec
from taskexecutor_common.endpoint_types.redis_stream import RedisStreamSpec
from taskexecutor_common.model.endpoint import CircuitBreaker, RetryPolicy

Schema = dict[str, Any]

_NAME = {"pattern": "^[a-z0-9][a-z0-9_-]{0,127}$"}
_ENDPOINT_NAME = {"pattern": "^[a-z0-9][a-z0-9-]{0,127}$"}
_JOB_ID = {"pattern": "^job_[0-9a-f]{32}$"}
_EXECUTION_ID = {"pattern": "^exec_[0-9a-f]{32}$"}
_NO_NUL = {"pattern": r"^[^\u0000]*$"}
_DELAY_MS = {"minimum": 0, "maximum": 86_400_000}
_HTTP_STATUS = {"minimum": 100, "maximum": 599}
_POLICY = RetryPolicy()
_BREAKER = CircuitBreaker()
_SPECS = ("HttpSpec", "KafkaSpec", "RedisStreamSpec")


def _text(most: int) -> Schema:
    return {"minLength": 1, "maxLength": most, **_NO_NUL}


EVERYWHERE: dict[str, Schema] = {
    "job_id": _JOB_ID,
    "previous_version_id": _JOB_ID,
    "replaced_by_id": _JOB_ID,
    "execution_id": _EXECUTION_ID,
    "key_id": {"pattern": "^[0-9a-f]{4,64}$"},
    "cursor": {"pattern": "^[A-Za-z0-9_-]+$"},
}
"""By the name of the field, in requests and answers alike."""

IN_REQUESTS: dict[str, Schema] = {
    "name": _NAME,
    "payload_spec": _NAME,
    "config": _NAME,
    "limit": {"minimum": 1, "maximum": MAX_PAGE, "default": DEFAULT_PAGE},
    "cron": _text(256),
    "timezone": _text(64),
    "idempotency_key": _text(255),
    "value": _text(64 * 1024),
    "count": {"minimum": 1, "maximum": 1000, "default": 10},
    "jobs": {"minItems": 1, "maxItems": 1000},
    "scopes": {"minItems": 1},
    "CreateEndpointRequest.name": _ENDPOINT_NAME,
    "CreateApiKeyRequest.name": _text(128),
    "CreateJobRequest.endpoint": _text(128),
    "ListJobsRequest.endpoint": _NO_NUL,
    "UpdateEndpointRequest.spec": {"anyOf": [{"$ref": f"#/components/schemas/{name}"} for name in _SPECS]},
    "RetryPolicy.max_attempts": {"minimum": 1, "maximum": 100, "default": _POLICY.max_attempts},
    "RetryPolicy.initial_delay_ms": {**_DELAY_MS, "default": _POLICY.initial_delay_ms},
    "RetryPolicy.max_delay_ms": {**_DELAY_MS, "default": _POLICY.max_delay_ms},
    "RetryPolicy.non_retryable_status_codes": {"items": _HTTP_STATUS},
    "FlowControl.max_in_flight": {"minimum": 1, "maximum": 10_000},
    "RateLimit.per_second": {"minimum": 0.001, "maximum": 10_000},
    "RateLimit.burst": {"minimum": 1, "maximum": 10_000},
    "CircuitBreaker.failure_rate": {"exclusiveMinimum": 0, "maximum": 1, "default": _BREAKER.failure_rate},
    "CircuitBreaker.minimum_attempts": {"minimum": 1, "maximum": 10_000, "default": _BREAKER.minimum_attempts},
    "CircuitBreaker.window_sec": {"minimum": 1, "maximum": 3600, "default": _BREAKER.window_ms // 1000},
    "CircuitBreaker.open_sec": {"minimum": 1, "maximum": 86_400, "default": _BREAKER.open_ms // 1000},
}
"""By the name of the field, or of message and field, which goes before."""

FILLED_IN_ANSWERS = frozenset({"RetryPolicy", "RateLimit", "CircuitBreaker"})
"""Messages whose optional fields answers always carry."""

EXACTLY_ONE: dict[str, tuple[str, ...]] = {"BatchCreateJobsResponse.Result": ("job", "error")}
"""Messages of which one field is present."""


@dataclass(frozen=True)
class Variant:
    """What a request looks like for one value of its deciding field."""

    component: str
    fields: tuple[str, ...] | None = None
    """The fields that it may carry beside the deciding one; None: all."""
    required: tuple[str, ...] = ()
    """Those of them that it must carry, beside what every variant must."""
    spec: str | None = None
    """Component of its `spec`."""


@dataclass(frozen=True)
class Variants:
    """A request whose shape depends on one of its fields."""

    decided_by: str
    by_value: dict[str, Variant]


_CRON = ("cron", "timezone", "starts_at", "ends_at", "catch_up")

VARIANTS: dict[str, Variants] = {
    "CreateEndpointRequest": Variants(
        "type",
        {
            "HTTP": Variant("CreateHttpEndpointRequest", spec="HttpSpec"),
            "KAFKA": Variant("CreateKafkaEndpointRequest", spec="KafkaSpec"),
            "REDIS_STREAM": Variant("CreateRedisStreamEndpointRequest", spec="RedisStreamSpec"),
        },
    ),
    "CreateJobRequest": Variants(
        "trigger",
        {
            "IMMEDIATE": Variant(
                "CreateImmediateJobRequest", ("endpoint", "idempotency_key", "input"), ("idempotency_key",)
            ),
            "DELAYED": Variant(
                "CreateDelayedJobRequest",
                ("endpoint", "idempotency_key", "input", "run_at"),
                ("idempotency_key", "run_at"),
            ),
            "CRON": Variant("CreateCronJobRequest", ("endpoint", "input", *_CRON), ("cron", "timezone")),
        },
    ),
}

SPECS: dict[str, type[BaseModel]] = {"HTTP": HttpSpec, "KAFKA": KafkaSpec, "REDIS_STREAM": RedisStreamSpec}
"""What checks the `spec` of each endpoint type."""

_LARGEST_EXACT = MAX_EXACT - 1

JSON_SCHEMAS: dict[str, Schema] = {
    "JsonObject": {
        "description": "Free JSON. At most 256 KiB and 30 levels; no NUL characters.",
        "type": "object",
        "propertyNames": _NO_NUL,
        "additionalProperties": {"$ref": "#/components/schemas/JsonValue"},
    },
    "JsonValue": {
        "description": "Any JSON value. Integers of magnitude 2^53 and more must be sent as strings.",
        "type": ["object", "array", "string", "number", "boolean", "null"],
        "minimum": -_LARGEST_EXACT,
        "maximum": _LARGEST_EXACT,
        **_NO_NUL,
        "items": {"$ref": "#/components/schemas/JsonValue"},
        "propertyNames": _NO_NUL,
        "additionalProperties": {"$ref": "#/components/schemas/JsonValue"},
    },
}
"""What a google.protobuf.Struct may hold."""

_JSON_VALUE: Schema = {"$ref": "#/components/schemas/JsonValue"}

SPEC_FIELDS: dict[str, Schema] = {
    "HttpSpec.body_template": _JSON_VALUE,
    "KafkaSpec.value_template": {**_JSON_VALUE, "type": ["object", "array", "string", "number", "boolean"]},
    "RedisStreamSpec.fields_template": {
        "type": "object",
        "propertyNames": _NO_NUL,
        "additionalProperties": _JSON_VALUE,
        "minProperties": 1,
    },
    "RedisStreamSpec.max_len": {"type": ["integer", "string", "null"], "minimum": 0},
}
"""Fields that are checked by code and not by their type."""
