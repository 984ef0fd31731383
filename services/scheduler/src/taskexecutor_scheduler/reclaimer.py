"""Declares silent instances dead and takes back what they held."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from uuid import UUID

from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.runtime.loop import Loop
from taskexecutor_common.store.instances import InstanceStore

_BATCH = 200  # the LIMIT of reclaim_leases
_MIN_SLEEP_SEC = 0.5
_HUNG_SEC = 2.0

WORKER_LOST = {
    "type": "WORKER_LOST",
    "message": "the dispatcher that held this attempt stopped answering; whether the delivery was made is not known",
}

_log = get_logger("reclaimer")


class Reclaimer:
    """Sleeps until an instance could be dead or a lease be over. Two at once share the work by SKIP LOCKED.

    After an outage of the database all instances look silent, though only their beats were lost: so nobody is buried until
    this loop has seen the database for `calm_sec`, long enough for the living to beat again. A round of its own that takes
    long tells of an outage too.
    """

    def __init__(
        self,
        store: InstanceStore,
        *,
        wake_queues: Callable[[Iterable[UUID]], None],
        interval_sec: float,
        calm_sec: float,
        outage_sec: float,
    ) -> None:
        self._store = store
        self._wake_queues = wake_queues
        self._calm_sec = calm_sec
        self._outage_sec = outage_sec
        self._calm_since: float | None = None
        self._last_round = float("-inf")
        self.loop = Loop("reclaimer", self.run_once, interval_sec=interval_sec)

    async def run_once(self) -> float | None:
        """Buries, reclaims. Answers the seconds until there can be more to do."""
        began = time.monotonic()
        still = self._wait_for_calm()
        try:
            due_in_ms = await self._store.next_reclaim_in_ms()
            if still <= 0 and not _has_hung(began):
                for instance_id in await self._store.bury_silent():
                    _log.warning("instance declared dead", instance_id=str(instance_id))
                await self._reclaim()
                due_in_ms = await self._store.next_reclaim_in_ms()
        except BaseException:
            self._calm_since = None
            raise
        if _has_hung(began):
            self._calm_since = None
            return _MIN_SLEEP_SEC
        if still > 0:
            return still
        return None if due_in_ms is None else max(_MIN_SLEEP_SEC, due_in_ms / 1000 + 0.05)

    def _wait_for_calm(self) -> float:
        """Seconds for which the database must yet be seen before anybody may be declared dead.

        A round that comes much later than the last one counts as an outage too: this process was frozen, and what it
        missed it cannot judge by.
        """
        now = time.monotonic()
        if self._calm_since is None or now - self._last_round > self._outage_sec:
            self._calm_since = now
        self._last_round = now
        return self._calm_sec - (now - self._calm_since)

    async def _reclaim(self) -> None:
        while True:
            taken = await self._store.reclaim(WORKER_LOST)
            for execution in taken:
                _log.warning(
                    "execution reclaimed",
                    execution_id=f"exec_{execution.execution_id.hex}",
                    attempt=execution.attempt_number,
                    status=execution.status.value,
                    worker_id=str(execution.worker_id),
                )
            self._wake_queues({execution.queue for execution in taken if execution.status is ExecutionStatus.RETRYING})
            if len(taken) < _BATCH:
                return


def _has_hung(began: float) -> bool:
    """Whether the database has kept a round waiting, as it does when its disk or its standby is away."""
    return time.monotonic() - began > _HUNG_SEC
