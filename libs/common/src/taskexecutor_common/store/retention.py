"""Forgetting finished work, in bounded steps."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from taskexecutor_common.store.database import Database


@dataclass(frozen=True, slots=True)
class PruneStep:
    """What one step of the walk did; `last_id` is where the next one begins, None at the end."""

    last_id: UUID | None
    looked_at: int
    pruned: int


@dataclass(frozen=True, slots=True)
class Namespace:
    """A namespace; `retention_sec` None: as the scheduler's setting says."""

    namespace: str
    retention_sec: int | None
    created_at: datetime


@dataclass(frozen=True, slots=True)
class _Seconds:
    seconds: int


@dataclass(frozen=True, slots=True)
class _Pruned:
    pruned: int


class RetentionStore:
    """What ended more than its namespace's retention ago goes; `default_sec` where a namespace has none of its own."""

    def __init__(self, database: Database, default_sec: int) -> None:
        self._db = database
        self._default_sec = default_sec

    async def shortest_sec(self) -> int:
        """The shortest retention of any namespace."""
        row = await self._db.fetch_one("shortest_retention", _Seconds, default_sec=self._default_sec)
        return row.seconds if row else self._default_sec

    async def prune_executions(self, after_id: UUID, before_id: UUID) -> PruneStep:
        """One step of the walk from `after_id` to `before_id`, both exclusive."""
        step = await self._db.fetch_one(
            "prune_executions", PruneStep, after_id=after_id, before_id=before_id, default_sec=self._default_sec
        )
        assert step is not None  # a select of scalars always has a row
        return step

    async def prune_cron_jobs(self) -> int:
        """Forgets up to 500 retired cron jobs. Answers how many."""
        row = await self._db.fetch_one("prune_cron_jobs", _Pruned, default_sec=self._default_sec)
        return row.pruned if row else 0

    async def set_retention(self, namespace: str, retention_sec: int | None) -> Namespace:
        """Makes a namespace if need be, and sets its retention."""
        row = await self._db.fetch_one("set_retention", Namespace, namespace=namespace, retention_sec=retention_sec)
        assert row is not None  # an upsert without a condition always has a row
        return row

    async def ensure_namespace(self, namespace: str) -> None:
        """Makes a namespace if need be."""
        await self._db.execute("ensure_namespace", namespace=namespace)

    async def list_namespaces(self) -> list[Namespace]:
        """All namespaces."""
        return await self._db.fetch_all("list_namespaces", Namespace)
