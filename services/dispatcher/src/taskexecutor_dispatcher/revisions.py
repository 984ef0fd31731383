"""What deliveries need besides their claim, cached: compiled endpoint revisions, config revisions, secrets.

Revisions never change, so a cached one cannot go stale; they are dropped when unused for a while. Secrets can change: they
are read again after their time, or when a hint says so.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Hashable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar
from uuid import UUID

from taskexecutor_common.crypto import KeyRing
from taskexecutor_common.endpoint_types.base import CompiledSpec
from taskexecutor_common.endpoint_types.registry import kind_of
from taskexecutor_common.model.endpoint import EndpointType, RetryPolicy
from taskexecutor_common.store.endpoints import EndpointStore
from taskexecutor_common.store.setup import SetupStore

KeyT = TypeVar("KeyT", bound=Hashable)
ValueT = TypeVar("ValueT")

_MAX_ENTRIES = 10_000


@dataclass(slots=True)
class _Entry(Generic[ValueT]):
    value: ValueT
    since: float
    """Of its load or its last use."""


class Cache(Generic[KeyT, ValueT]):
    """Loads each value once however many ask at once, and keeps it for `ttl_sec` from its load, or from its last use."""

    def __init__(self, load: Callable[[KeyT], Awaitable[ValueT]], ttl_sec: float, *, from_last_use: bool) -> None:
        self._load = load
        self._ttl_sec = ttl_sec
        self._from_last_use = from_last_use
        self._values: dict[KeyT, _Entry[ValueT]] = {}
        self._loading: dict[KeyT, asyncio.Task[ValueT]] = {}

    def peek(self, key: KeyT) -> ValueT | None:
        """The value if it is at hand."""
        entry = self._values.get(key)
        if entry is None:
            return None
        now = time.monotonic()
        if now - entry.since > self._ttl_sec:
            del self._values[key]
            return None
        if self._from_last_use:
            entry.since = now
        return entry.value

    async def get(self, key: KeyT) -> ValueT:
        """The value, loaded if need be. Whatever loading raises is the caller's."""
        value = self.peek(key)
        if value is not None:
            return value
        task = self._loading.get(key)
        if task is None:
            task = self._loading[key] = asyncio.create_task(self._fetch(key))
            task.add_done_callback(lambda _: self._loading.pop(key, None) if self._loading.get(key) is task else None)
        return await asyncio.shield(task)

    def forget(self, key: KeyT) -> None:
        """The next `get` loads it again; a load that is under way does not count."""
        self._values.pop(key, None)
        self._loading.pop(key, None)

    async def _fetch(self, key: KeyT) -> ValueT:
        task = asyncio.current_task()
        value = await self._load(key)
        if self._loading.get(key) is task:
            if len(self._values) >= _MAX_ENTRIES:
                self._values.pop(next(iter(self._values)))
            self._values[key] = _Entry(value, time.monotonic())
        return value


class Unresolvable(Exception):
    """Something that a template names is not there: the placeholder, or the thing itself, is in the message."""


@dataclass(frozen=True, slots=True)
class Revision:
    """An endpoint revision, ready to deliver."""

    endpoint_type: EndpointType
    spec: CompiledSpec
    retry_policy: RetryPolicy
    secrets: tuple[str, ...]
    """Names of the secrets that its templates name."""


class Revisions:
    """All three caches of a dispatcher."""

    def __init__(
        self,
        endpoints: EndpointStore,
        setup: SetupStore,
        keys: KeyRing,
        *,
        revision_ttl_sec: float,
        secret_ttl_sec: float,
    ) -> None:
        self._endpoints = endpoints
        self._setup = setup
        self._keys = keys
        self.endpoints = Cache(self._load_endpoint, revision_ttl_sec, from_last_use=True)
        self.configs = Cache(self._load_config, revision_ttl_sec, from_last_use=True)
        self.secrets = Cache(self._load_secret, secret_ttl_sec, from_last_use=False)

    async def _load_endpoint(self, key: tuple[UUID, int]) -> Revision:
        stored = await self._endpoints.get_revision(*key)
        if stored is None:
            raise Unresolvable("the endpoint revision is gone")
        spec = kind_of(stored.endpoint_type).compile(stored.spec)
        secrets = {placeholder.path[0] for placeholder in spec.placeholders if placeholder.namespace == "secret"}
        policy = RetryPolicy.from_json(stored.retry_policy)
        return Revision(stored.endpoint_type, spec, policy, tuple(sorted(secrets)))

    async def _load_config(self, revision_id: UUID) -> dict[str, Any]:
        values = await self._setup.get_config_revision(revision_id)
        if values is None:
            raise Unresolvable("the config revision is gone")
        return values

    async def _load_secret(self, key: tuple[str, str]) -> str:
        namespace, name = key
        stored = await self._setup.get_encrypted_secret(namespace, name)
        if stored is None:
            raise Unresolvable(f"{{{{secret.{name}}}}}: there is no such secret")
        return self._keys.decrypt(stored.key_id, stored.encrypted_value, namespace=namespace, name=name)
