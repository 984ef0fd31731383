"""Moves timers to the ready queue shortly before they are due, and tells the dispatchers."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from taskexecutor_common.runtime.loop import Loop
from taskexecutor_common.store.database import SMALL_BATCH
from taskexecutor_common.store.timers import TimerStore
from taskexecutor_scheduler.due import DueTimes

_BATCH = 500  # the LIMIT of promote_timers


class Promoter:
    """Sleeps until the next timer is near, as the database's clock tells it. Two at once share the work by SKIP LOCKED.

    A timer is handed over up to `ahead_ms` before its time and no later than half of that before: so the way to the
    dispatcher is behind it when its time comes, and a steady stream of timers goes in batches. The dispatcher keeps it until
    then.
    """

    def __init__(
        self,
        store: TimerStore,
        *,
        lanes: Sequence[int],
        wake_queues: Callable[[Iterable[UUID]], None],
        interval_sec: float,
        ahead_ms: int = 0,
    ) -> None:
        self._store = store
        self._lanes = lanes
        self._wake_queues = wake_queues
        self._interval_sec = interval_sec
        self._ahead_ms = ahead_ms
        self._due = DueTimes(lanes, lead_sec=ahead_ms / 2000)
        self._looked_at = float("-inf")
        self._is_shallow = True
        self.loop = Loop("promoter", self.run_once, interval_sec=interval_sec)

    def hint(self, due_at: datetime | None) -> None:
        """A timer was set."""
        if self._due.is_news(due_at):
            self.loop.wake()

    async def run_once(self) -> float | None:
        """Promotes a batch of each lane in which timers are near. Answers the seconds until more are, 0 after a full batch:
        much work takes many rounds, and a shutdown comes between any two of them."""
        late = self._due.late()
        if not late or time.monotonic() - self._looked_at >= self._interval_sec:
            await self._look()
            late = self._due.late()
        for lane in late:
            await self._promote(lane)
        return self._due.wait_sec()

    async def _look(self) -> None:
        """Finds what no promotion told of: other promoters' left-overs, and timers whose hint was lost."""
        self._looked_at = time.monotonic()
        self._due.forget(self._lanes)
        self._due.learn(self._lanes, await self._store.next_timers(self._lanes))

    async def _promote(self, lane: int) -> None:
        """Promotes a batch of what is near in a lane. After a full one it is not known what else is."""
        self._due.forget([lane])
        promotion = await self._store.promote(lane, ahead_ms=self._ahead_ms, small=self._is_shallow)
        self._wake_queues(promotion.moved)
        self._is_shallow = promotion.count <= SMALL_BATCH
        if promotion.count < _BATCH:
            self._due.learn([lane], filter(None, [promotion.upcoming]))
