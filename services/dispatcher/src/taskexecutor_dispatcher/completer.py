"""Writes the results of attempts in batches: what gathers while one batch is written is the next."""

from __future__ import annotations

import asyncio
import dataclasses
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from uuid import UUID

from taskexecutor_common.errors import TaskExecutorError
from taskexecutor_common.ids import execution_id_text
from taskexecutor_common.model.execution import AttemptResult, Finalised
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.observability import metrics
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.store.queue import QueueStore

_BATCH = 200
_LINGER_SEC = 0.005
_TRICKLE_LINGER_SEC = 0.025  # at 200 results a second five share a statement, and claims find the processors free
_FAILURE_PAUSE_SEC = 0.5
_MAX_UNWRITTEN = 2_000
_UNWRITABLE = {"type": "INTERNAL_ERROR", "message": "the answer could not be stored"}

_log = get_logger("completer")


class Completer:
    """Takes results at any rate and loses none while it lives: what cannot be written is tried again.

    `wake_at` is told when the next attempt of a retried execution is due, so that the scheduler wakes in time; `make_room`,
    which endpoints with limits have room for another delivery; `rest`, which endpoint sends nothing for so many milliseconds.
    """

    def __init__(
        self,
        store: QueueStore,
        wake_at: Callable[[datetime], None],
        make_room: Callable[[Collection[UUID]], None],
        rest: Callable[[UUID, int], None],
    ) -> None:
        self._store = store
        self._wake_at = wake_at
        self._make_room = make_room
        self._rest = rest
        self._pending: list[AttemptResult] = []
        self._arrived = asyncio.Event()
        self._full = asyncio.Event()
        self._stopping = False
        self._failing = False
        self._is_trickle = False
        self._task: asyncio.Task[None] | None = None

    @property
    def backlog(self) -> int:
        """Results that wait to be written."""
        return len(self._pending)

    def unwritten(self) -> set[tuple[UUID, int]]:
        """Execution and attempt of the results that wait to be written: RUNNING still, as far as the database knows."""
        return {(result.execution_id, result.attempt_number) for result in self._pending}

    def problem(self) -> str | None:
        """What a health check says: None while results get written."""
        return "results cannot be written" if self._failing else None

    def keeps_up(self) -> bool:
        """Whether more may be claimed: results get written, and few wait.

        What is claimed while they do not is sent again if this process dies. And under serializable isolation claims and
        results of the same endpoint conflict: as long as small claims go on, a large batch of results may lose each time.
        """
        return not self._failing and len(self._pending) < _MAX_UNWRITTEN

    def put(self, result: AttemptResult) -> None:
        """Takes a result."""
        self._pending.append(result)
        self._arrived.set()
        if len(self._pending) >= _BATCH:
            self._full.set()

    async def start(self) -> None:
        """Begins to write."""
        self._task = asyncio.create_task(self._run(), name="completer")

    async def stop(self) -> None:
        """Writes what is left, then returns. What cannot be written in 10 s is left to the lease."""
        self._stopping = True
        self._arrived.set()
        self._full.set()
        if self._task is not None:
            _, unfinished = await asyncio.wait([self._task], timeout=10)
            if unfinished:
                _log.error("results left unwritten; their leases will run out", results=len(self._pending))
                self._task.cancel()
            self._task = None

    async def _run(self) -> None:
        while not (self._stopping and not self._pending):
            if not self._pending:
                self._arrived.clear()
                await self._arrived.wait()
                await self._linger()
                continue
            batch = self._pending[:_BATCH]
            try:
                await self._write(batch)
            except TaskExecutorError as error:
                self._failing = True
                _log.warning("cannot write results", results=len(self._pending), error=error.message)
                await asyncio.sleep(_FAILURE_PAUSE_SEC)
                continue
            self._failing = False
            del self._pending[: len(batch)]

    async def _linger(self) -> None:
        """A moment for more results to come, which makes batches of a trickle; a full batch does not wait.

        The moment is longer while results keep coming, unless an endpoint with limits waits for the room they make.
        """
        self._full.clear()
        if self._stopping or len(self._pending) >= _BATCH:
            return
        try:
            async with asyncio.timeout(_TRICKLE_LINGER_SEC if self._is_trickle else _LINGER_SEC):
                await self._full.wait()
        except TimeoutError:
            pass

    async def _write(self, batch: Sequence[AttemptResult]) -> None:
        try:
            done = await self._store.finalise(batch)
        except TaskExecutorError:
            raise
        except Exception:
            if len(batch) == 1:
                await self._write_without_answer(batch[0])
                return
            _log.exception("a batch cannot be written; trying its results one by one", results=len(batch))
            for result in batch:
                await self._write([result])
            return
        self._account(batch, done)

    async def _write_without_answer(self, result: AttemptResult) -> None:
        """The last resort for a result that the database refuses: how it ended is kept, what was answered is not."""
        _log.exception("a result cannot be written", execution_id=execution_id_text(result.execution_id))
        bare = dataclasses.replace(result, output=None, error=_UNWRITABLE, log_message=None, log_level=None)
        try:
            self._account([bare], await self._store.finalise([bare]))
        except TaskExecutorError:
            raise
        except Exception:
            _log.exception("given up; the lease will run out", execution_id=execution_id_text(result.execution_id))

    def _account(self, batch: Sequence[AttemptResult], done: Sequence[Finalised]) -> None:
        for status, count in Counter(finalised.status for finalised in done).items():
            metrics.EXECUTIONS_ENDED.labels(status=status.value).inc(count)
        if lost := len(batch) - len(done):
            metrics.CLAIMS_LOST.inc(lost)
            recorded = {finalised.execution_id for finalised in done}
            for result in batch:
                if result.execution_id not in recorded:
                    _log.warning(
                        "claim was lost, result not recorded",
                        execution_id=execution_id_text(result.execution_id),
                        attempt=result.attempt_number,
                    )
        freed = {finalised.counted_for for finalised in done if finalised.counted_for is not None}
        self._is_trickle = len(batch) > 1 and not freed
        if freed:
            self._make_room(freed)
        for finalised in done:
            if finalised.closed is not None and finalised.close_ms is not None:
                self._rest(finalised.closed, finalised.close_ms)
        retries = [f.run_at for f in done if f.status is ExecutionStatus.RETRYING and f.run_at is not None]
        if retries:
            self._wake_at(min(retries))
