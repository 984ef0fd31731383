"""Examples of requests and answers; the addresses are nobody's. Tests hold each to its schema."""

from __future__ import annotations

from typing import Any

Named = dict[str, Any]

_CREATED_AT = "2026-03-15T10:00:00Z"
_STAMPS = {"created_at": _CREATED_AT, "updated_at": _CREATED_AT}
_JOB_ID = "job_0019cf0e5c80871b8d4c2a9f60d3b7e5"
_NEW_JOB_ID = "job_0019cf0f1a3389c0a7e5513b2d8846fa"
_CRON_JOB_ID = "job_0019cf0e9d218e44b05f7cc91d2a6b38"
_EXECUTION_ID = "exec_0019cf0e5c80871b8d4c2a9f60d3b7e5"

_PAYLOAD_SPEC = {
    "name": "send-welcome-email-input",
    "schema": {
        "type": "object",
        "properties": {
            "user_id": {"type": "string", "description": "Target user ID"},
            "order_id": {"type": "string", "description": "Associated order ID"},
        },
        "required": ["user_id"],
    },
}

_CONFIGS: Named = {
    "http": {
        "name": "email-service",
        "values": {"api_base_url": "https://api.example.com", "sender": "noreply@example.com"},
    },
    "kafka": {
        "name": "order-events",
        "values": {"bootstrap_servers": "kafka-1.example:9092,kafka-2.example:9092", "topic": "order.events.v1"},
    },
    "redis_stream": {
        "name": "notification-stream",
        "values": {
            "redis_url": "redis://redis.example:6379",
            "stream_name": "notifications:outbound",
            "max_stream_length": 100_000,
        },
    },
}

_HTTP_ENDPOINT: Named = {
    "name": "send-welcome-email",
    "type": "HTTP",
    "payload_spec": "send-welcome-email-input",
    "config": "email-service",
    "spec": {
        "url": "{{config.api_base_url}}/emails/welcome",
        "method": "POST",
        "headers": {"Authorization": "Bearer {{secret.email_api_key}}", "Content-Type": "application/json"},
        "body_template": {"user_id": "{{input.user_id}}", "sender": "{{config.sender}}"},
        "timeout_ms": 5000,
        "expected_status_codes": [200, 201, 202, 204],
    },
    "retry_policy": {"max_attempts": 3, "backoff": "exponential", "initial_delay_ms": 1000, "max_delay_ms": 30_000},
}

_FLOW_CONTROL: Named = {
    "max_in_flight": 20,
    "rate_limit": {"per_second": 50, "burst": 100},
    "circuit_breaker": {"failure_rate": 0.5, "minimum_attempts": 20, "window_sec": 60, "open_sec": 30},
}

_KAFKA_ENDPOINT: Named = {
    "name": "publish-order-event",
    "type": "KAFKA",
    "payload_spec": "order-event-input",
    "config": "order-events",
    "spec": {
        "bootstrap_servers": "{{config.bootstrap_servers}}",
        "topic": "{{config.topic}}",
        "key_template": "{{input.order_id}}",
        "value_template": {
            "event_type": "{{input.event_type}}",
            "order_id": "{{input.order_id}}",
            "amount": "{{input.amount}}",
        },
        "headers": {"ce-type": "order.{{input.event_type}}", "ce-source": "task-executor"},
        "acks": "all",
        "timeout_ms": 10_000,
    },
    "retry_policy": {"max_attempts": 5, "backoff": "exponential", "initial_delay_ms": 500, "max_delay_ms": 15_000},
}

_REDIS_STREAM_ENDPOINT: Named = {
    "name": "push-notification",
    "type": "REDIS_STREAM",
    "payload_spec": "notification-input",
    "config": "notification-stream",
    "spec": {
        "redis_url": "{{config.redis_url}}",
        "stream": "{{config.stream_name}}",
        "fields_template": {
            "user_id": "{{input.user_id}}",
            "title": "{{input.title}}",
            "body": "{{input.body}}",
        },
        "max_len": "{{config.max_stream_length}}",
        "approximate_trimming": True,
        "timeout_ms": 3000,
    },
    "retry_policy": {"max_attempts": 3, "backoff": "exponential", "initial_delay_ms": 500, "max_delay_ms": 10_000},
}

_EMAIL_INPUT = {"user_id": "u_abc", "order_id": "order-1234"}

_JOBS: Named = {
    "immediate": {
        "endpoint": "send-welcome-email",
        "trigger": "IMMEDIATE",
        "idempotency_key": "order-1234-welcome-email",
        "input": _EMAIL_INPUT,
    },
    "delayed": {
        "endpoint": "send-welcome-email",
        "trigger": "DELAYED",
        "idempotency_key": "order-1234-reminder",
        "run_at": "2026-03-15T18:00:00Z",
        "input": _EMAIL_INPUT,
    },
    "cron": {
        "endpoint": "push-notification",
        "trigger": "CRON",
        "cron": "0 9 * * MON",
        "timezone": "Asia/Kolkata",
        "starts_at": "2026-03-16T00:00:00Z",
        "ends_at": None,
        "input": {"user_id": "u_abc", "title": "Weekly Summary", "body": "Here's your weekly report"},
    },
}

_CRON_CHANGE = {
    "cron": "0 10 * * MON",
    "timezone": "Asia/Kolkata",
    "input": {"report_type": "weekly", "include_charts": True},
}

_ONE_SHOT_JOB: Named = {
    "job_id": _JOB_ID,
    "endpoint": "send-welcome-email",
    "endpoint_type": "HTTP",
    "trigger": "IMMEDIATE",
    "status": "ACTIVE",
    "version": 1,
    "idempotency_key": "order-1234-welcome-email",
    "input": _EMAIL_INPUT,
    "execution": {"execution_id": _EXECUTION_ID, "status": "QUEUED", "created_at": _CREATED_AT},
    "endpoint_revision": 1,
    "created_at": _CREATED_AT,
}

_CRON_JOB: Named = {
    "job_id": _CRON_JOB_ID,
    "endpoint": "push-notification",
    "endpoint_type": "REDIS_STREAM",
    "trigger": "CRON",
    "status": "ACTIVE",
    "version": 1,
    "input": _JOBS["cron"]["input"],
    "cron": "0 9 * * MON",
    "timezone": "Asia/Kolkata",
    "starts_at": "2026-03-16T00:00:00Z",
    "next_run_at": "2026-03-16T03:30:00Z",
    "catch_up": "ALL",
    "endpoint_revision": 1,
    "created_at": _CREATED_AT,
}

_JOB_STATUS: Named = {
    "job_id": _CRON_JOB_ID,
    "endpoint": "push-notification",
    "endpoint_type": "REDIS_STREAM",
    "trigger": "CRON",
    "health": "HEALTHY",
    "version": 1,
    "last_execution": {
        "execution_id": _EXECUTION_ID,
        "status": "SUCCESS",
        "started_at": "2026-03-15T10:30:00Z",
        "completed_at": "2026-03-15T10:30:01Z",
        "attempt_number": 1,
    },
    "active_executions": {"pending": 2, "running": 1, "total": 3},
    "cron": {
        "expression": "0 9 * * MON",
        "next_run_at": "2026-03-16T03:30:00Z",
        "last_tick_at": "2026-03-09T03:30:00Z",
    },
    "stats": {
        "last_24h": {"total": 142, "succeeded": 139, "failed": 3, "avg_duration_ms": 340, "p99_duration_ms": 1200}
    },
}


def _without_name(creation: Named) -> Named:
    return {key: value for key, value in creation.items() if key != "name"}


_LIMITED_ENDPOINT: Named = {
    **_HTTP_ENDPOINT,
    "retry_policy": {**_HTTP_ENDPOINT["retry_policy"], "non_retryable_status_codes": []},
    "revision": 2,
    **_STAMPS,
    "flow_control": _FLOW_CONTROL,
}
_OPEN_FLOW: Named = {"in_flight": 3, "circuit": "CLOSED"}


REQUESTS: dict[str, Named] = {
    "CreatePayloadSpec": {"schema": _PAYLOAD_SPEC},
    "UpdatePayloadSpec": {"schema": _without_name(_PAYLOAD_SPEC)},
    "CreateConfig": _CONFIGS,
    "UpdateConfig": {"http": _without_name(_CONFIGS["http"])},
    "CreateSecret": {"api_key": {"name": "email_api_key", "value": "sk-live-abc123"}},
    "UpdateSecret": {"api_key": {"value": "sk-live-def456"}},
    "CreateEndpoint": {"http": _HTTP_ENDPOINT, "kafka": _KAFKA_ENDPOINT, "redis_stream": _REDIS_STREAM_ENDPOINT},
    "UpdateEndpoint": {
        "http": _without_name(_HTTP_ENDPOINT),
        "with_limits": {**_without_name(_HTTP_ENDPOINT), "flow_control": _FLOW_CONTROL},
    },
    "RenderEndpoint": {"email": {"input": _EMAIL_INPUT}},
    "TestEndpoint": {"email": {"input": _EMAIL_INPUT}},
    "CreateJob": _JOBS,
    "BatchCreateJobs": {"mixed": {"jobs": list(_JOBS.values())}},
    "UpdateJob": {"later": _CRON_CHANGE},
    "ResumeJob": {"newest": {"catch_up": "LATEST"}},
    "PreviewCron": {"mondays": {"cron": "0 9 * * MON", "timezone": "Asia/Kolkata", "count": 2}},
    "CreateApiKey": {"reader": {"name": "dashboard", "scopes": ["read"]}},
}
"""By operation."""

ANSWERS: dict[str, Named] = {
    "CreatePayloadSpec": {"schema": {**_PAYLOAD_SPEC, **_STAMPS}},
    "CreateConfig": {"http": {**_CONFIGS["http"], "revision": 1, **_STAMPS}},
    "CreateSecret": {"api_key": {"name": "email_api_key", **_STAMPS}},
    "CreateEndpoint": {
        "http": {
            **_HTTP_ENDPOINT,
            "retry_policy": {**_HTTP_ENDPOINT["retry_policy"], "non_retryable_status_codes": []},
            "revision": 1,
            **_STAMPS,
            "flow_state": {},
        }
    },
    "PauseEndpoint": {"limited": {**_LIMITED_ENDPOINT, "flow_state": {**_OPEN_FLOW, "paused_at": _CREATED_AT}}},
    "ResumeEndpoint": {"limited": {**_LIMITED_ENDPOINT, "flow_state": _OPEN_FLOW}},
    "CreateJob": {"immediate": _ONE_SHOT_JOB, "cron": _CRON_JOB},
    "GetJob": {"immediate": _ONE_SHOT_JOB, "cron": _CRON_JOB},
    "UpdateJob": {
        "later": {
            **_CRON_JOB,
            **_CRON_CHANGE,
            "job_id": _NEW_JOB_ID,
            "version": 2,
            "previous_version_id": _CRON_JOB_ID,
            "next_run_at": "2026-03-16T04:30:00Z",
        }
    },
    "GetJobStatus": {"cron": _JOB_STATUS},
    "PreviewCron": {"mondays": {"items": [{"run_at": "2026-03-16T03:30:00Z"}, {"run_at": "2026-03-23T03:30:00Z"}]}},
}
"""By operation; shown with its successes."""
