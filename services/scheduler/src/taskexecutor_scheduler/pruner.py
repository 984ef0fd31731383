"""Forgets finished work whose retention is over, a bounded step at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from uuid import UUID

from taskexecutor_common.ids import first_id
from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.runtime.loop import Loop
from taskexecutor_common.store.retention import RetentionStore

_STEP = 2000  # the LIMIT of prune_executions
_PAUSE_SEC = 0.05  # between steps: forgetting is never urgent
_SLACK_MS = 3_600_000  # ids carry their maker's clock; this is more than clocks differ by

_log = get_logger("pruner")


class Pruner:
    """Walks the executions of each lane from the oldest on. Two at once delete disjoint rows or wait for each other.

    A step is a round of the loop: a walk of minutes holds up no shutdown, and its steps are what shows that it lives. One that
    fails is made again after the interval.
    """

    def __init__(
        self, store: RetentionStore, *, lanes: Sequence[int], epoch_ms: Callable[[], int], interval_sec: float
    ) -> None:
        self._store = store
        self._lanes = lanes
        self._epoch_ms = epoch_ms
        self._ahead: deque[tuple[UUID, UUID]] = deque()
        """What the walk has yet to look at: from and to which id, both exclusive."""
        self._pruned = 0
        self.loop = Loop("pruner", self.run_once, interval_sec=interval_sec, jitter=0.2)

    async def run_once(self) -> float | None:
        """One step of a walk over all lanes. Answers the seconds until the next; None: the walk is over."""
        if not self._ahead:
            await self._begin_walk()
        after, before = self._ahead[0]
        step = await self._store.prune_executions(after, before)
        metrics.PRUNED.inc(step.pruned)
        self._pruned += step.pruned
        if step.last_id is not None and step.looked_at == _STEP:
            self._ahead[0] = step.last_id, before
            return _PAUSE_SEC
        self._ahead.popleft()
        if self._ahead:
            return _PAUSE_SEC
        await self._end_walk()
        return None

    async def _begin_walk(self) -> None:
        shortest_ms = await self._store.shortest_sec() * 1000
        # What is younger cannot have ended long enough ago: the walk need not look at it. Whether a row goes is decided
        # by the database's clock alone.
        newest_ms = max(0, self._epoch_ms() - shortest_ms + _SLACK_MS)
        self._ahead.extend((first_id(lane, 0), first_id(lane, newest_ms)) for lane in self._lanes)
        self._pruned = 0

    async def _end_walk(self) -> None:
        pruned_jobs = await self._store.prune_cron_jobs()
        if self._pruned or pruned_jobs:
            _log.info("pruned", executions=self._pruned, cron_jobs=pruned_jobs)
