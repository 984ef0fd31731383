"""Pausing and resuming an endpoint: what waits for it is held back, or let go."""

from __future__ import annotations

from taskexecutor_api.operations.find_endpoint import find_endpoint
from taskexecutor_common.errors import EndpointNotFound
from taskexecutor_common.model.endpoint import Endpoint
from taskexecutor_common.rpc.hints import DispatcherHints
from taskexecutor_common.store.endpoints import EndpointStore
from taskexecutor_common.store.flow import FlowStore


async def pause_endpoint(endpoints: EndpointStore, flows: FlowStore, namespace: str, name: str) -> Endpoint:
    """Nothing more is claimed for the endpoint; what a dispatcher holds it delivers. Raises EndpointNotFound."""
    endpoint = await find_endpoint(endpoints, namespace, name)
    if not await flows.pause(endpoint.endpoint_id):
        raise EndpointNotFound.named(name)  # deleted after that look
    return endpoint


async def resume_endpoint(
    endpoints: EndpointStore, flows: FlowStore, hints: DispatcherHints, namespace: str, name: str
) -> Endpoint:
    """Lets the endpoint send again, whatever held it back but its limits. Raises EndpointNotFound."""
    endpoint = await find_endpoint(endpoints, namespace, name)
    await flows.resume(endpoint.endpoint_id)
    hints.wake([endpoint.endpoint_id])
    return endpoint
