"""Endpoints, their revisions and what they refer to."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskexecutor_common.model.endpoint import (
    NO_LIMITS,
    Endpoint,
    EndpointRevision,
    EndpointType,
    FlowControl,
    RetryPolicy,
)
from taskexecutor_common.model.setup import Reference
from taskexecutor_common.store.database import Database, Transaction
from taskexecutor_common.store.flow import write_limits
from taskexecutor_common.store.setup import lock_references, to_json


@dataclass(frozen=True, slots=True)
class EndpointSettings:
    """What one revision of an endpoint consists of; `spec` was checked."""

    payload_spec: str | None
    config: str | None
    spec: dict[str, Any]
    retry_policy: RetryPolicy
    timeout_ms: int
    references: list[Reference]
    flow_control: FlowControl = NO_LIMITS
    """Not of the revision but of the endpoint: it applies to all that waits."""


@dataclass(frozen=True, slots=True)
class StoredRevision:
    """A revision as the dispatcher caches it; it never changes."""

    endpoint_id: UUID
    namespace: str
    name: str
    endpoint_type: EndpointType
    revision: int
    spec: dict[str, Any]
    retry_policy: dict[str, Any]
    timeout_ms: int


@dataclass(frozen=True, slots=True)
class _Locked:
    endpoint_id: UUID
    endpoint_type: EndpointType
    revision: int


@dataclass(frozen=True, slots=True)
class _Created:
    endpoint_id: UUID
    revision: int


@dataclass(frozen=True, slots=True)
class _LiveJob:
    job_id: UUID


@dataclass(frozen=True, slots=True)
class _EndpointId:
    endpoint_id: UUID


@dataclass(frozen=True, slots=True)
class _RevisionRow:
    revision: int
    payload_spec: str | None
    config: str | None
    spec: dict[str, Any]
    retry_policy: dict[str, Any]
    created_at: datetime


class ReferencesMissing(Exception):
    """An endpoint refers to what does not exist (any more); `missing` says to what."""

    def __init__(self, missing: list[Reference]) -> None:
        super().__init__("references missing")
        self.missing = missing


class EndpointStore:
    """Reads and writes of endpoints."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def create(
        self, namespace: str, name: str, endpoint_id: UUID, endpoint_type: EndpointType, settings: EndpointSettings
    ) -> bool:
        """Writes a new endpoint with its first revision; False: the name is taken. Raises ReferencesMissing."""

        async def work(tx: Transaction) -> bool:
            if missing := await lock_references(tx, namespace, settings.references):
                raise ReferencesMissing(missing)
            created = await tx.fetch_one(
                "create_endpoint",
                _Created,
                namespace=namespace,
                name=name,
                endpoint_id=endpoint_id,
                endpoint_type=endpoint_type,
            )
            if created is not None:
                await _write_revision(tx, namespace, endpoint_id, 1, settings)
                await write_limits(tx, endpoint_id, settings.flow_control)
            return created is not None

        if await self._db.run("create_endpoint", work):
            return True
        # An answer may have been lost and the work run again: then the name is taken by ourselves.
        found = await self.get(namespace, name)
        return found is not None and found.endpoint_id == endpoint_id

    async def update(self, namespace: str, name: str, endpoint_type: EndpointType, settings: EndpointSettings) -> bool:
        """Writes the next revision; False: there is no such endpoint of this type, which `settings` were checked for (any
        more: it may have been deleted, and its name taken by one of another type). Raises ReferencesMissing."""

        async def work(tx: Transaction) -> bool:
            locked = await tx.fetch_one("lock_endpoint", _Locked, namespace=namespace, name=name)
            if locked is None or locked.endpoint_type is not endpoint_type:
                return False
            if missing := await lock_references(tx, namespace, settings.references):
                raise ReferencesMissing(missing)
            revision = locked.revision + 1
            await _write_revision(tx, namespace, locked.endpoint_id, revision, settings)
            await tx.execute("advance_endpoint", endpoint_id=locked.endpoint_id, revision=revision)
            await write_limits(tx, locked.endpoint_id, settings.flow_control)
            return True

        return await self._db.run("update_endpoint", work, repeatable=False)

    async def delete(self, namespace: str, name: str) -> tuple[bool, list[UUID]]:
        """Hides an endpoint that has no live job. Answers whether it was there, and some jobs that stand in the way.

        A job may be created between the look and the hiding: it still fires, because its revision stays readable and no
        pause outlives the endpoint. What cancelled jobs left in its queue the next claim drops.
        """

        async def work(tx: Transaction) -> tuple[bool, list[UUID]]:
            locked = await tx.fetch_one("lock_endpoint", _Locked, namespace=namespace, name=name)
            if locked is None:
                return False, []
            live = await tx.fetch_all("find_live_jobs_of_endpoint", _LiveJob, endpoint_id=locked.endpoint_id)
            if not live:
                await tx.execute("hide_endpoint", endpoint_id=locked.endpoint_id)
                await tx.execute("lift_pause", endpoint_id=locked.endpoint_id)
            return True, [row.job_id for row in live]

        return await self._db.run("delete_endpoint", work, repeatable=False)

    async def get(self, namespace: str, name: str) -> Endpoint | None:
        """Reads a living endpoint in its current revision."""
        return await self._db.fetch_one("get_endpoint", Endpoint, namespace=namespace, name=name)

    async def list_page(
        self, namespace: str, endpoint_type: EndpointType | None, before: tuple[datetime, str], page: int
    ) -> list[Endpoint]:
        """Reads a page, newest first, of what is older than `before`."""
        return await self._db.fetch_all(
            "list_endpoints",
            Endpoint,
            namespace=namespace,
            endpoint_type=endpoint_type,
            before_created_at=before[0],
            before_name=before[1],
            page=page,
        )

    async def find_ids(self, namespace: str, name: str) -> list[UUID]:
        """The ids of all endpoints that bear or bore this name."""
        rows = await self._db.fetch_all("find_endpoint_ids", _EndpointId, namespace=namespace, name=name)
        return [row.endpoint_id for row in rows]

    async def list_revisions(self, endpoint: Endpoint, before: int, page: int) -> list[EndpointRevision]:
        """Reads a page of revisions, newest first."""
        rows = await self._db.fetch_all(
            "list_endpoint_revisions",
            _RevisionRow,
            endpoint_id=endpoint.endpoint_id,
            before_revision=before,
            page=page,
        )
        return [
            EndpointRevision(
                endpoint.name, row.revision, row.payload_spec, row.config, row.spec, row.retry_policy, row.created_at
            )
            for row in rows
        ]

    async def get_revision(self, endpoint_id: UUID, revision: int) -> StoredRevision | None:
        """Reads one revision, of a deleted endpoint too."""
        return await self._db.fetch_one(
            "get_endpoint_revision", StoredRevision, endpoint_id=endpoint_id, revision=revision
        )


async def _write_revision(
    tx: Transaction, namespace: str, endpoint_id: UUID, revision: int, settings: EndpointSettings
) -> None:
    await tx.execute(
        "create_endpoint_revision",
        endpoint_id=endpoint_id,
        revision=revision,
        payload_spec=settings.payload_spec,
        config=settings.config,
        spec=to_json(settings.spec),
        retry_policy=to_json(settings.retry_policy.to_json()),
        timeout_ms=settings.timeout_ms,
        max_attempts=settings.retry_policy.max_attempts,
    )
    await tx.execute(
        "create_endpoint_references",
        namespace=namespace,
        endpoint_id=endpoint_id,
        revision=revision,
        kinds=[reference.kind.value for reference in settings.references],
        names=[reference.name for reference in settings.references],
        paths=[reference.path for reference in settings.references],
    )
