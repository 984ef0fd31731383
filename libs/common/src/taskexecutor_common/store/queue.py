"""The claimable set: which queues have work, claiming it, and recording what became of it."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from uuid import UUID

import orjson

from taskexecutor_common.model.execution import AttemptResult, Claim, Finalised, QueueState
from taskexecutor_common.observability import metrics
from taskexecutor_common.store.database import SMALL_BATCH, Database

_LOWEST: Mapping[UUID, int] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class _Recorded:
    execution_id: UUID
    attempt_number: int


class QueueStore:
    """Statements of one worker, a dispatcher instance, over the queue."""

    def __init__(self, database: Database, worker_id: UUID, grace_ms: int) -> None:
        self._db = database
        self._worker_id = worker_id
        self._grace_ms = grace_ms

    async def find_waiting_queues(self) -> list[QueueState]:
        """All queues that have work."""
        return await self._db.fetch_all("find_waiting_queues", QueueState, small=True)

    async def look_at_queues(self, queues: Collection[UUID]) -> list[QueueState]:
        """Those of `queues` that have work."""
        return await self._db.fetch_all("look_at_queues", QueueState, small=True, queues=list(queues))

    async def claim(
        self, quotas: Mapping[UUID, int], *, first_lanes: Mapping[UUID, int] = _LOWEST, small: bool = False
    ) -> list[Claim]:
        """Takes up to `quotas[queue]` executions of each queue, as far as its endpoint's limits allow. Lanes are walked in
        order from `first_lanes[queue]`, the lowest where it is not said. `small`: there are believed to be few.

        Raises AmbiguousResult when the answer was lost: what was claimed by then is found by `find_held`.
        """
        started = time.perf_counter()
        claims = await self._db.fetch_all(
            "claim_executions",
            Claim,
            queues=list(quotas.keys()),
            quotas=list(quotas.values()),
            first_lanes=[first_lanes.get(queue, 0) for queue in quotas],
            worker_id=self._worker_id,
            grace_ms=self._grace_ms,
            repeatable=False,
            small=small,
        )
        metrics.CLAIM_SECONDS.observe(time.perf_counter() - started)
        if claims:
            metrics.CLAIM_BATCH.observe(len(claims))
            metrics.CLAIMED.inc(len(claims))
        return claims

    async def find_held(self, known: Collection[UUID]) -> list[Claim]:
        """What this worker holds beyond `known`."""
        return await self._db.fetch_all("find_held_executions", Claim, worker_id=self._worker_id, known=list(known))

    async def finalise(self, results: Sequence[AttemptResult]) -> list[Finalised]:
        """Records results in one statement; those that do not come back had lost their claim.

        What this worker has recorded before counts as done: where an answer was lost, here or in a call that failed, the
        results are written again, and what is recorded meets the statement's guard no more.
        """
        started = time.perf_counter()
        done = await self._db.fetch_all(
            "finalise_executions",
            Finalised,
            worker_id=self._worker_id,
            # One document: psycopg needs eight times as long for ten arrays of this.
            results=orjson.dumps(results).decode(),
            small=len(results) <= SMALL_BATCH,
        )
        answered = {(each.execution_id, each.attempt_number) for each in done}
        if unanswered := [r for r in results if (r.execution_id, r.attempt_number) not in answered]:
            recorded = await self._find_recorded(unanswered)
            done += [
                Finalised(r.execution_id, r.attempt_number, r.next_status, None, None, None, None)
                for r in unanswered
                if (r.execution_id, r.attempt_number) in recorded
            ]
        metrics.FINALISE_SECONDS.observe(time.perf_counter() - started)
        metrics.FINALISE_BATCH.observe(len(results))
        return done

    async def _find_recorded(self, results: Sequence[AttemptResult]) -> set[tuple[UUID, int]]:
        rows = await self._db.fetch_all(
            "find_recorded_attempts",
            _Recorded,
            worker_id=self._worker_id,
            execution_ids=[r.execution_id for r in results],
            attempt_numbers=[r.attempt_number for r in results],
        )
        return {(row.execution_id, row.attempt_number) for row in rows}
