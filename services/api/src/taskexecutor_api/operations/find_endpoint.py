"""Finding the living endpoint of a name."""

from __future__ import annotations

from taskexecutor_common.errors import EndpointNotFound
from taskexecutor_common.model.endpoint import Endpoint
from taskexecutor_common.store.endpoints import EndpointStore


async def find_endpoint(endpoints: EndpointStore, namespace: str, name: str) -> Endpoint:
    """The endpoint in its current revision; it may be deleted right after this look. Raises EndpointNotFound."""
    endpoint = await endpoints.get(namespace, name)
    if endpoint is None:
        raise EndpointNotFound.named(name)
    return endpoint
