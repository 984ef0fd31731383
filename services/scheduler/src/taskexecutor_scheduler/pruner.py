"""Forgets finished work whose retention is over, a bounded step at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

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
    """Walks the executions of each lane from the oldest on. Two at once delete disjoint rows or wait for each other."""

    def __init__(
        self, store: RetentionStore, *, lanes: Sequence[int], epoch_ms: Callable[[], int], interval_sec: float
    ) -> None:
        self._store = store
        self._lanes = lanes
        self._epoch_ms = epoch_ms
        self.loop = Loop("pruner", self.run_once, interval_sec=interval_sec, jitter=0.2)

    async def run_once(self) -> float | None:
        """One walk over all lanes."""
        shortest_ms = await self._store.shortest_sec() * 1000
        # What is younger cannot have ended long enough ago: the walk need not look at it. Whether a row goes is decided
        # by the database's clock alone.
        newest_ms = max(0, self._epoch_ms() - shortest_ms + _SLACK_MS)
        pruned = 0
        for lane in self._lanes:
            pruned += await self._prune_lane(lane, newest_ms)
        pruned_jobs = await self._store.prune_cron_jobs()
        metrics.PRUNED.inc(pruned)
        if pruned or pruned_jobs:
            _log.info("pruned", executions=pruned, cron_jobs=pruned_jobs)
        return None

    async def _prune_lane(self, lane: int, newest_ms: int) -> int:
        after, before, pruned = first_id(lane, 0), first_id(lane, newest_ms), 0
        while True:
            step = await self._store.prune_executions(after, before)
            pruned += step.pruned
            if step.last_id is None or step.looked_at < _STEP:
                return pruned
            after = step.last_id
            await asyncio.sleep(_PAUSE_SEC)
