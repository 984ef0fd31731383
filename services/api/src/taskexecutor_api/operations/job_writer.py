"""Writes one-shot jobs in batches: requests that come while one batch is written share the next statement.

On an idle system a job is written at once and alone; under load the round trip is paid once for many. A job is answered
only after the statement that holds it has committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from taskexecutor_common.errors import TaskExecutorError
from taskexecutor_common.model.job import CreatedJob, NewJob
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.store.jobs import JobStore

_BATCH = 100
_WRITERS = 2  # statements under way at once: while one waits for the disk, the next is prepared

_log = get_logger("job_writer")

_Waiting = tuple[NewJob, "asyncio.Future[CreatedJob | None]"]


class JobWriter:
    """Gathers and writes. A Service so that a shutdown lets what was taken be written."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._waiting: list[_Waiting] = []
        self._writers: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Nothing to do: writers come with the work."""

    async def stop(self) -> None:
        """Waits for what is being written."""
        while self._writers:
            await asyncio.wait(self._writers)

    async def write(self, job: NewJob) -> CreatedJob | None:
        """Writes a job. None: its key is known, or its endpoint changed (see JobStore.create_many)."""
        future: asyncio.Future[CreatedJob | None] = asyncio.get_running_loop().create_future()
        self._waiting.append((job, future))
        if len(self._writers) < _WRITERS:
            task = asyncio.create_task(self._drain())
            self._writers.add(task)
            task.add_done_callback(self._writers.discard)
        return await future

    async def _drain(self) -> None:
        while self._waiting:
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            await self._write(batch)

    async def _write(self, batch: Sequence[_Waiting]) -> None:
        try:
            created = await self._store.create_many([job for job, _ in batch])
        except TaskExecutorError as error:
            _fail(batch, error)
        except Exception as error:
            if len(batch) == 1:
                _fail(batch, error)
                return
            # One job that the database refuses must not take its neighbours with it.
            _log.warning("a batch of jobs cannot be written; trying them one by one", jobs=len(batch), exc_info=True)
            for waiting in batch:
                await self._write([waiting])
        else:
            by_id = {job.job_id: job for job in created}
            for job, future in batch:
                if not future.done():  # its caller may have gone
                    future.set_result(by_id.get(job.job_id))


def _fail(batch: Sequence[_Waiting], error: Exception) -> None:
    for _, future in batch:
        if not future.done():
            future.set_exception(error)
