"""Deliveries as the tests make them: an entry, an identity, a transport that may reach this machine."""

from __future__ import annotations

from typing import Any

from taskexecutor_common.egress import EgressPolicy
from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.redis_stream import RedisStreamRequest
from taskexecutor_dispatcher.endpoints.redis_stream import RedisStreamTransport

STREAM = "notifications:outbound"
PATIENCE_MS = 10_000


def a_request(url: str, **changes: Any) -> RedisStreamRequest:
    """An entry of two fields for an untrimmed stream."""
    fields: dict[str, Any] = {
        "redis_url": url,
        "stream": STREAM,
        "fields": (("user_id", "u-1"), ("title", "Grüße")),
        "max_len": None,
        "approximate": True,
    }
    return RedisStreamRequest(**(fields | changes))


def an_identity() -> DeliveryIdentity:
    """Whose delivery it is."""
    return DeliveryIdentity(
        execution_id="exec_0190c9e37b7c7d2ea3f4b8c1d2e3f405",
        job_id="job_0190c9e37b7c7d2ea3f4b8c1d2e3f4ff",
        attempt=1,
        scheduled_at="2026-03-15T10:00:00Z",
    )


def a_transport(allow: str = "loopback", **settings: Any) -> RedisStreamTransport:
    """A transport with real name lookups."""
    return RedisStreamTransport(egress=EgressPolicy.parse(allow), **settings)
