"""The headers of a Kafka record: the identity that consumers act by, and what the user wrote."""

from __future__ import annotations

from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_dispatcher.endpoints.http_headers import traceparent


def record_headers(
    users: tuple[tuple[str, bytes], ...], identity: DeliveryIdentity
) -> list[tuple[str, str | bytes | None]]:
    """All headers of one attempt, under the names that HTTP deliveries have them by. When it was sent is the record's
    own timestamp. The spec refuses the user's headers that have names of ours."""
    return [
        ("Idempotency-Key", identity.execution_id),
        ("webhook-id", identity.execution_id),
        ("Task-Executor-Attempt", str(identity.attempt)),
        ("Task-Executor-Job-Id", identity.job_id),
        ("Task-Executor-Scheduled-At", identity.scheduled_at),
        ("traceparent", traceparent(identity.execution_id, identity.attempt)),
        *users,
    ]
