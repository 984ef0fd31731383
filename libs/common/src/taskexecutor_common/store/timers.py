"""What waits for its time: timers and cron ticks, by lane."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from taskexecutor_common.model.job import CronTick, DueCronJob
from taskexecutor_common.observability import metrics
from taskexecutor_common.store.database import Database


@dataclass(frozen=True, slots=True)
class NextDue:
    """The earliest thing that waits in a lane: when it is due, and how far off that is by the database's clock.

    A negative `due_in_ms` means that it is late.
    """

    lane: int
    due_at: datetime
    due_in_ms: float


@dataclass(frozen=True, slots=True)
class Promotion:
    """Timers that were moved, by queue, and the one that its lane waits for next."""

    moved: dict[UUID, int]
    upcoming: NextDue | None

    @property
    def count(self) -> int:
        """How many were moved."""
        return sum(self.moved.values())


@dataclass(frozen=True, slots=True)
class _Moved:
    queue: UUID | None
    moved: int
    next_at: datetime | None
    next_in_ms: float | None


@dataclass(frozen=True, slots=True)
class _Fired:
    queue: UUID
    execution_id: UUID


class TimerStore:
    """Promotion of timers and advancing of schedules; every statement is safe to run by two schedulers at once."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def promote(self, lane: int, *, ahead_ms: int = 0, small: bool = False) -> Promotion:
        """Moves up to 500 timers of a lane that are due within `ahead_ms` to the ready queue; `small`: few are expected.
        Repeatable: what moved is gone from the timers."""
        rows = await self._db.fetch_all("promote_timers", _Moved, small=small, lane=lane, ahead_ms=ahead_ms)
        moved, upcoming = dict[UUID, int](), None
        for row in rows:
            if row.queue is not None:
                moved[row.queue] = row.moved
            elif row.next_at is not None and row.next_in_ms is not None:
                upcoming = NextDue(lane, row.next_at, row.next_in_ms)
        promotion = Promotion(moved, upcoming)
        metrics.TIMERS_PROMOTED.inc(promotion.count)
        return promotion

    async def next_timers(self, lanes: Sequence[int]) -> list[NextDue]:
        """The earliest timer of each lane that has one."""
        return await self._db.fetch_all("next_timers", NextDue, small=True, lanes=list(lanes))

    async def next_cron_ticks(self, lanes: Sequence[int], *, unreadable: Collection[UUID] = ()) -> list[NextDue]:
        """The earliest cron tick of each lane that has one; jobs that are `unreadable` are passed by."""
        return await self._db.fetch_all(
            "next_cron_ticks", NextDue, small=True, lanes=list(lanes), unreadable=list(unreadable)
        )

    async def find_due_cron_jobs(self, lane: int, batch: int, *, unreadable: Collection[UUID] = ()) -> list[DueCronJob]:
        """Schedules of a lane whose next tick has come, oldest first: half of a `batch` late the longest, half only just due;
        jobs that are `unreadable` are passed by."""
        return await self._db.fetch_all(
            "find_due_cron_jobs", DueCronJob, lane=lane, half=max(1, batch // 2), unreadable=list(unreadable)
        )

    async def tick(self, ticks: Sequence[CronTick]) -> list[UUID]:
        """Advances schedules and creates the executions of fired ticks. Answers the queues that have work now.
        Repeatable: a tick that was taken no longer matches its schedule."""
        rows = await self._db.fetch_all(
            "tick_cron_jobs",
            _Fired,
            job_ids=[tick.job_id for tick in ticks],
            tick_ats=[tick.tick_at for tick in ticks],
            fired_ats=[tick.fired_at for tick in ticks],
            next_ats=[tick.next_at for tick in ticks],
            execution_ids=[tick.execution_id for tick in ticks],
        )
        metrics.CRON_TICKS.labels(result="fired").inc(len(rows))
        return [row.queue for row in rows]
