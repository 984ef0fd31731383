"""The database's part alone: claim a batch, record it as delivered, claim the next, with nothing sent in between.

A program: `python -m bench.ceilings.raw_store URL WORKERS`. It works off what waits and prints one JSON line: executions,
and seconds.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import sys
import time
import uuid
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field

import uvloop

from taskexecutor_common.model.execution import AttemptResult, Claim
from taskexecutor_common.model.state import AttemptStatus, ExecutionStatus
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.queue import QueueStore

BATCH = 200
QUEUES_AT_ONCE = 20  # a claim takes from so many queues, as a dispatcher's does
GRACE_MS = 10_000
OUTPUT = {"status_code": 200, "body": {"ok": True}, "truncated": False}


@dataclass
class Times:
    """What was done, and how long each statement took, in milliseconds."""

    executions: int = 0
    claims_ms: list[float] = field(default_factory=list)
    finalises_ms: list[float] = field(default_factory=list)


class BareWorker:
    """A dispatcher's two statements over one connection."""

    def __init__(self, database: Database, queues: Sequence[uuid.UUID], times: Times) -> None:
        self._store = QueueStore(database, uuid.uuid4(), GRACE_MS)
        self._turns = _chunks(queues)
        self._times = times

    async def work(self) -> int:
        """One batch. Answers how many executions were in it."""
        queues = next(self._turns)
        begin = time.perf_counter()
        claims = await self._store.claim(dict.fromkeys(queues, BATCH // len(queues)))
        claimed = time.perf_counter()
        if not claims:
            return 0
        done = await self._store.finalise([succeeded(claim) for claim in claims])
        finalised = time.perf_counter()
        assert len(done) == len(claims)
        self._times.executions += len(claims)
        if len(claims) == BATCH:
            self._times.claims_ms.append((claimed - begin) * 1000)
            self._times.finalises_ms.append((finalised - claimed) * 1000)
        return len(claims)


def succeeded(claim: Claim) -> AttemptResult:
    """The record of a delivery that went well."""
    return AttemptResult(
        execution_id=claim.execution_id,
        attempt_number=claim.attempt_count,
        attempt_status=AttemptStatus.SUCCESS,
        next_status=ExecutionStatus.SUCCESS,
        retry_delay_ms=0,
        duration_ms=3,
        output=OUTPUT,
        error=None,
        log_level=None,
        log_message=None,
    )


def _chunks(queues: Sequence[uuid.UUID]) -> Iterator[Sequence[uuid.UUID]]:
    """QUEUES_AT_ONCE of the queues, then the next, round and round."""
    return itertools.cycle([queues[n : n + QUEUES_AT_ONCE] for n in range(0, len(queues), QUEUES_AT_ONCE)])


@contextlib.asynccontextmanager
async def bare_database(url: str, connections: int) -> AsyncIterator[Database]:
    """The store's pool, as a dispatcher has it, inside the block."""
    database = Database(url, pool_size=connections, application_name="bench")
    await database.open()
    try:
        yield database
    finally:
        await database.close()


async def work_off(url: str, workers: int) -> dict[str, object]:
    """All that waits, over `workers` connections."""
    times = Times()
    async with bare_database(url, workers) as database:
        queues = [state.queue for state in await QueueStore(database, uuid.uuid4(), GRACE_MS).find_waiting_queues()]

        async def work() -> None:
            worker = BareWorker(database, queues, times)
            for _ in range(len(queues) // QUEUES_AT_ONCE + 1):  # so many empty batches in a row: nothing is left
                while await worker.work():
                    pass

        begin = time.perf_counter()
        await asyncio.gather(*(work() for _ in range(workers)))
        elapsed = time.perf_counter() - begin
    return {"executions": times.executions, "sec": elapsed}


def main() -> None:
    """Entry point of the program."""
    print(json.dumps(uvloop.run(work_off(sys.argv[1], int(sys.argv[2])))), flush=True)


if __name__ == "__main__":
    main()
