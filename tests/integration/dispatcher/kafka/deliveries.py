"""Deliveries as the tests make them: a record, an identity, a transport that may reach this machine."""

from __future__ import annotations

from typing import Any

from taskexecutor_common.egress import EgressPolicy
from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.kafka import KafkaRequest
from taskexecutor_dispatcher.endpoints.kafka import KafkaTransport

EXECUTION_ID = "exec_0190c9e37b7c7d2ea3f4b8c1d2e3f405"
JOB_ID = "job_0190c9e37b7c7d2ea3f4b8c1d2e3f4ff"
SCHEDULED_AT = "2026-03-15T10:00:00Z"
PATIENCE_MS = 10_000


def a_request(bootstrap_servers: str, topic: str, **changes: Any) -> KafkaRequest:
    """A small JSON record with a key, to be confirmed by all replicas."""
    fields: dict[str, Any] = {
        "bootstrap_servers": bootstrap_servers,
        "topic": topic,
        "key": b"order-1",
        "value": b'{"amount":12.5}',
        "headers": (("ce-type", b"order.created"),),
        "acks": "all",
    }
    return KafkaRequest(**(fields | changes))


def an_identity(attempt: int = 1) -> DeliveryIdentity:
    """Whose delivery it is."""
    return DeliveryIdentity(execution_id=EXECUTION_ID, job_id=JOB_ID, attempt=attempt, scheduled_at=SCHEDULED_AT)


def a_transport(allow: str = "loopback", **settings: Any) -> KafkaTransport:
    """A transport with real name lookups."""
    return KafkaTransport(egress=EgressPolicy.parse(allow), **settings)
