"""Running instances: their heartbeats, who is alive, and taking back what the dead held."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from taskexecutor_common.model.execution import Reclaimed
from taskexecutor_common.observability import metrics
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.setup import to_json


@dataclass(frozen=True, slots=True)
class Instance:
    """A running instance of a service, and where its internal rpc listens."""

    instance_id: UUID
    component: str
    address: str | None
    status: str


@dataclass(frozen=True, slots=True)
class _Beat:
    last_beat_at: datetime


@dataclass(frozen=True, slots=True)
class _Buried:
    component: str
    instance_id: UUID


@dataclass(frozen=True, slots=True)
class _DueIn:
    due_in_ms: float | None


class InstanceStore:
    """Heartbeats and their consequences. `dead_after_ms`: silence that counts as death."""

    def __init__(self, database: Database, region: str, dead_after_ms: int, slack_ms: int = 5000) -> None:
        self._db = database
        self._region = region
        self._dead_after_ms = dead_after_ms
        self._slack_ms = slack_ms

    async def beat(
        self, component: str, instance_id: UUID, address: str | None, status: str, metadata: dict[str, Any]
    ) -> datetime:
        """Says that an instance is ALIVE, DRAINING or, by its own word, DEAD. Answers the database's time."""
        beat = await self._db.fetch_one(
            "beat",
            _Beat,
            region=self._region,
            component=component,
            instance_id=instance_id,
            address=address,
            status=status,
            metadata=to_json(metadata),
        )
        assert beat is not None  # an upsert without a condition always has a row
        return beat.last_beat_at

    async def list_live(self, component: str) -> list[Instance]:
        """Instances of a component that may be hinted."""
        return await self._db.fetch_all(
            "list_live_instances",
            Instance,
            region=self._region,
            component=component,
            dead_after_ms=self._dead_after_ms,
        )

    async def bury_silent(self) -> list[UUID]:
        """Declares instances dead that were silent for too long."""
        rows = await self._db.fetch_all("bury_silent_instances", _Buried, dead_after_ms=self._dead_after_ms)
        for row in rows:
            metrics.INSTANCES_BURIED.labels(component=row.component).inc()
        await self._db.execute("forget_dead_instances")
        return [row.instance_id for row in rows]

    async def reclaim(self, error: dict[str, Any]) -> list[Reclaimed]:
        """Takes back up to 200 executions of the dead and of those that outlived their lease; `error` goes on record as
        the attempt's end. Repeatable: what was taken is no longer leased."""
        rows = await self._db.fetch_all(
            "reclaim_leases",
            Reclaimed,
            slack_ms=self._slack_ms,
            error=to_json(error),
            log_message=error["message"],
        )
        for row in rows:
            metrics.RECLAIMED.labels(status=row.status.value).inc()
        return rows

    async def next_reclaim_in_ms(self) -> float | None:
        """How long until an instance could be dead or a lease be over; None: nothing lives."""
        row = await self._db.fetch_one(
            "next_reclaim", _DueIn, dead_after_ms=self._dead_after_ms, slack_ms=self._slack_ms
        )
        return row.due_in_ms if row else None
