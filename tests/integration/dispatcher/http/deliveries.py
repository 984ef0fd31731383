"""Deliveries as the tests make them: a plain request, an identity, a transport that may reach this machine."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from taskexecutor_common.clock import Clock
from taskexecutor_common.egress import EgressPolicy
from taskexecutor_common.endpoint_types.base import DeliveryIdentity
from taskexecutor_common.endpoint_types.http import HttpRequest
from taskexecutor_dispatcher.endpoints.base import Transport
from taskexecutor_dispatcher.endpoints.http import HttpTransport
from taskexecutor_dispatcher.endpoints.http_aiohttp import AiohttpTransport

EXECUTION_ID = "exec_0190c9e37b7c7d2ea3f4b8c1d2e3f405"
PATIENCE_MS = 10_000

CLIENTS: dict[str, type[HttpTransport] | type[AiohttpTransport]] = {
    "httptools": HttpTransport,
    "aiohttp": AiohttpTransport,
}
HttpClient = Transport[HttpRequest]
MakeTransport = Callable[..., HttpClient]


def a_request(url: str, **changes: Any) -> HttpRequest:
    """A POST of a small JSON body that counts 200 as success."""
    fields: dict[str, Any] = {
        "method": "POST",
        "url": url,
        "headers": (("Content-Type", "application/json"),),
        "body": b'{"sku":"a-1"}',
        "expected_status_codes": frozenset({200}),
        "signing_secret": None,
    }
    return HttpRequest(**(fields | changes))


def an_identity(attempt: int = 1) -> DeliveryIdentity:
    """Whose delivery it is."""
    return DeliveryIdentity(
        execution_id=EXECUTION_ID,
        job_id="job_0190c9e37b7c7d2ea3f4b8c1d2e3f4ff",
        attempt=attempt,
        scheduled_at="2026-03-15T10:00:00Z",
    )


def a_transport(client: str, allow: str = "loopback", **settings: Any) -> HttpClient:
    """A transport with the real clock."""
    return CLIENTS[client](egress=EgressPolicy.parse(allow), clock=Clock(), **settings)
