"""Endpoints as job creation needs them, cached: with their compiled payload schema.

The cache may be stale, and that is harmless: the statement that writes a job checks that endpoint and schema still are
what the input was checked against, and writes nothing if not; and who refuses an input asks first whether they still are.
"""

from __future__ import annotations

import math
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
_NEVER = -math.inf


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
        known, since = self._entries.get((namespace, name), (None, _NEVER))
        if known is not None and time.monotonic() - since < _TTL_SEC:
            return known
        entry = await self._load(namespace, name, known)
        if len(self._entries) >= _MAX_ENTRIES:
            self._entries.pop(next(iter(self._entries)))
        self._entries[namespace, name] = (entry, time.monotonic())
        return entry

    async def is_current(self, namespace: str, entry: Entry) -> bool:
        """Whether endpoint and payload spec still are as the entry has them."""
        endpoint = await self._endpoints.get(namespace, entry.endpoint.name)
        if endpoint is None or endpoint.endpoint_id != entry.endpoint.endpoint_id:
            return False
        if endpoint.revision != entry.endpoint.revision or endpoint.payload_spec is None:
            return endpoint.revision == entry.endpoint.revision
        spec = await self._setup.get_payload_spec(namespace, endpoint.payload_spec)
        return spec is not None and spec.revision_id == entry.schema_revision_id

    def forget(self, namespace: str, name: str) -> None:
        """What is known of this endpoint is not to be used again, but for its schema if that is still the same."""
        known, _ = self._entries.get((namespace, name), (None, _NEVER))
        if known is not None:
            self._entries[namespace, name] = (known, _NEVER)

    async def _load(self, namespace: str, name: str, known: Entry | None) -> Entry:
        endpoint = await self._endpoints.get(namespace, name)
        if endpoint is None:
            self._entries.pop((namespace, name), None)
            raise EndpointNotFound.named(name)
        if endpoint.payload_spec is None:
            return Entry(endpoint, None, None)
        spec = await self._setup.get_payload_spec(namespace, endpoint.payload_spec)
        if spec is None:  # cannot be deleted while it is referred to
            raise InvalidPayloadSpecRef(f"payload spec '{endpoint.payload_spec}' of the endpoint is gone")
        if known is not None and known.schema_revision_id == spec.revision_id:
            return Entry(endpoint, known.schema, spec.revision_id)
        return Entry(endpoint, compile_schema(spec.schema_json), spec.revision_id)
