"""Moves timers to the ready queue when they are due, and tells the dispatchers."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from uuid import UUID

from taskexecutor_common.runtime.loop import Loop
from taskexecutor_common.store.timers import TimerStore
from taskexecutor_scheduler.due import DueTimes

_BATCH = 500  # the LIMIT of promote_timers


class Promoter:
    """Sleeps until the next timer is due, as the database's clock tells it. Two at once share the work by SKIP LOCKED."""

    def __init__(
        self,
        store: TimerStore,
        *,
        lanes: Sequence[int],
        wake_queues: Callable[[Iterable[UUID]], None],
        interval_sec: float,
    ) -> None:
        self._store = store
        self._lanes = lanes
        self._wake_queues = wake_queues
        self._due = DueTimes()
        self.loop = Loop("promoter", self.run_once, interval_sec=interval_sec)

    def hint(self, due_at: datetime | None) -> None:
        """A timer was set."""
        if self._due.is_news(due_at):
            self.loop.wake()

    async def run_once(self) -> float | None:
        """Promotes all that is due. Answers the seconds until the next timer."""
        self._due.forget()
        while True:
            upcoming = await self._store.next_timers(self._lanes)
            late = [due.lane for due in upcoming if due.due_in_ms <= 0]
            if not late:
                return self._due.learn(upcoming)
            for lane in late:
                await self._promote(lane)

    async def _promote(self, lane: int) -> None:
        while True:
            moved = await self._store.promote(lane)
            self._wake_queues(moved)
            if sum(moved.values()) < _BATCH:
                return
