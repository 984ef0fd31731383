"""Endpoints as job creation needs them, cached: with their compiled payload schema.

The cache may be stale, and that is harmless: the statement that writes a job checks that endpoint and schema still are
what the input was checked against, and writes nothing if not.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from uuid import UUID

from taskexecutor_common.errors import EndpointNotFound, InvalidPayloadSpecRef
from taskexecutor_common.json_schema import CompiledSchema, compile_schema
from taskexecutor_common.model.endpoint import Endpoint
from taskexecutor_common.store.endpoints import EndpointStore
from taskexecutor_common.store.setup import SetupStore

_TTL_SEC = 60.0
_MAX_ENTRIES = 10_000


@dataclass(frozen=True, slots=True)
class Entry:
    """An endpoint with its schema."""

    endpoint: Endpoint
    schema: CompiledSchema | None
    schema_revision_id: UUID | None


class EndpointCatalog:
    """Finds endpoints by name."""

    def __init__(self, endpoints: EndpointStore, setup: SetupStore) -> None:
        self._endpoints = endpoints
        self._setup = setup
        self._entries: dict[tuple[str, str], tuple[Entry, float]] = {}

    async def find(self, namespace: str, name: str) -> Entry:
        """The endpoint of this name. Raises EndpointNotFound."""
        cached = self._entries.get((namespace, name))
        if cached is not None and time.monotonic() - cached[1] < _TTL_SEC:
            return cached[0]
        entry = await self._load(namespace, name)
        if len(self._entries) >= _MAX_ENTRIES:
            self._entries.pop(next(iter(self._entries)))
        self._entries[namespace, name] = (entry, time.monotonic())
        return entry

    def forget(self, namespace: str, name: str) -> None:
        """What is known of this endpoint is not to be used again."""
        self._entries.pop((namespace, name), None)

    async def _load(self, namespace: str, name: str) -> Entry:
        endpoint = await self._endpoints.get(namespace, name)
        if endpoint is None:
            raise EndpointNotFound.named(name)
        if endpoint.payload_spec is None:
            return Entry(endpoint, None, None)
        spec = await self._setup.get_payload_spec(namespace, endpoint.payload_spec)
        if spec is None:  # cannot be deleted while it is referred to
            raise InvalidPayloadSpecRef(f"payload spec '{endpoint.payload_spec}' of the endpoint is gone")
        return Entry(endpoint, compile_schema(spec.schema_json), spec.revision_id)
