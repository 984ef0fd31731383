"""Turns due cron ticks into executions, one each, and advances the schedules."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime, timedelta
from functools import lru_cache
from uuid import UUID

from taskexecutor_common.cron import CronSchedule
from taskexecutor_common.model.job import CatchUp, CronTick, DueCronJob
from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.runtime.loop import Loop
from taskexecutor_common.store.timers import TimerStore
from taskexecutor_scheduler.due import DueTimes

_READ_AGAIN_SEC = 60.0  # what cannot be read is tried again, and complained of, so often

_log = get_logger("cron_ticker")


@lru_cache(maxsize=10_000)
def _schedule(expression: str, timezone: str, starts_at: datetime | None, ends_at: datetime | None) -> CronSchedule:
    return CronSchedule.parse(expression, timezone, starts_at=starts_at, ends_at=ends_at)


def decide(job: DueCronJob, grace: timedelta, new_id: Callable[[], UUID]) -> CronTick:
    """What becomes of a due tick. The next one is computed from the tick, not from now: that is what catches up.

    ALL fires each missed tick in its turn, LATEST only the newest one, NONE those that are late by no more than `grace`.
    """
    schedule = _schedule(job.cron_expression, job.cron_timezone, job.cron_starts_at, job.cron_ends_at)
    fired: datetime | None = job.tick_at
    base = job.tick_at
    if job.catch_up is CatchUp.LATEST:
        fired = base = schedule.latest(job.tick_at, job.db_now) or job.tick_at
    elif job.catch_up is CatchUp.NONE and job.db_now - job.tick_at > grace:
        fired = None
        base = job.db_now - grace
    return CronTick(job.job_id, job.tick_at, fired, schedule.next_after(base), new_id())


class CronTicker:
    """Sleeps until the next tick, as the database's clock tells it. Two at once: the compare-and-set lets one win.

    A schedule was valid when it was stored, but the zone data may have changed since. One that cannot be read stays due: its
    ticks are caught up with once it can. Meanwhile it is passed by.
    """

    def __init__(
        self,
        store: TimerStore,
        *,
        lanes: Sequence[int],
        new_id: Callable[[], UUID],
        wake_queues: Callable[[Iterable[UUID]], None],
        interval_sec: float,
        batch: int,
        grace_sec: float,
    ) -> None:
        self._store = store
        self._lanes = lanes
        self._new_id = new_id
        self._wake_queues = wake_queues
        self._batch = batch
        self._grace = timedelta(seconds=grace_sec)
        self._due = DueTimes(lanes)
        self._unreadable: set[UUID] = set()
        self._read_again_at = float("-inf")
        self.loop = Loop("cron_ticker", self.run_once, interval_sec=interval_sec)

    def hint(self, due_at: datetime | None) -> None:
        """A schedule was made or changed."""
        if self._due.is_news(due_at):
            self.loop.wake()

    async def run_once(self) -> float | None:
        """Handles a batch of each lane that has ticks due. Answers the seconds until there can be more, 0 after a batch:
        catching up takes many rounds, and a shutdown comes between any two of them."""
        if self._unreadable and time.monotonic() >= self._read_again_at:
            self._unreadable.clear()
        self._due.forget(self._lanes)
        self._due.learn(self._lanes, await self._store.next_cron_ticks(self._lanes, unreadable=self._unreadable))
        late = self._due.late()
        for lane in late:
            await self._tick(lane)
        return 0.0 if late else self._due.wait_sec()

    async def _tick(self, lane: int) -> None:
        """Handles a batch of a lane."""
        due = await self._store.find_due_cron_jobs(lane, self._batch, unreadable=self._unreadable)
        ticks = [tick for job in due if (tick := self._decide(job)) is not None]
        if ticks:
            self._wake_queues(await self._store.tick(ticks))

    def _decide(self, job: DueCronJob) -> CronTick | None:
        try:
            tick = decide(job, self._grace, self._new_id)
        except Exception:  # InvalidCron, as a rule; whatever it is, it is this schedule's alone
            _log.exception("schedule cannot be read", job_id=str(job.job_id), expression=job.cron_expression)
            metrics.CRON_TICKS.labels(result="unreadable").inc()
            if not self._unreadable:
                self._read_again_at = time.monotonic() + _READ_AGAIN_SEC
            self._unreadable.add(job.job_id)
            return None
        if tick.fired_at is None:
            metrics.CRON_TICKS.labels(result="skipped").inc()
        return tick
