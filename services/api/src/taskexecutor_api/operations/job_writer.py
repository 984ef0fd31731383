"""Writes one-shot jobs in batches: requests that come while one batch is written share the next statement.

On an idle system a job is written at once and alone; under load the round trip is paid once for many. Beside a statement
under way another begins only for a full batch, or when the first takes long: two that shared what comes would both be small.
A job is answered only after the statement that holds it has committed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from taskexecutor_common.errors import TaskExecutorError
from taskexecutor_common.model.job import CreatedJob, NewJob
from taskexecutor_common.observability.logging import get_logger
from taskexecutor_common.store.jobs import JobStore

_BATCH = 100
_WRITERS = 4  # statements under way at once
_PROMPT_SEC = 0.02  # a statement that takes longer holds up nobody else

_log = get_logger("job_writer")

_Waiting = tuple[NewJob, "asyncio.Future[CreatedJob | None]"]


class JobWriter:
    """Gathers and writes. A Service so that a shutdown lets what was taken be written."""

    def __init__(self, store: JobStore) -> None:
        self._store = store
        self._waiting: list[_Waiting] = []
        self._writers: set[asyncio.Task[None]] = set()
        self._prompt: set[asyncio.Task[None]] = set()  # the writers that have not taken long yet

    async def start(self) -> None:
        """Nothing to do: writers come with the work."""

    async def stop(self) -> None:
        """Waits for what is being written."""
        self._begin_batches()
        while self._writers:
            await asyncio.wait(self._writers)

    async def write(self, job: NewJob) -> CreatedJob | None:
        """Writes a job. None: its key is known, or its endpoint changed (see JobStore.create_many)."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[CreatedJob | None] = loop.create_future()
        self._waiting.append((job, future))
        loop.call_soon(self._begin_batches)  # after all that came at the same moment
        return await future

    def _begin_batches(self) -> None:
        while self._waiting and len(self._writers) < _WRITERS:
            if self._prompt and len(self._waiting) < _BATCH:
                return
            batch, self._waiting = self._waiting[:_BATCH], self._waiting[_BATCH:]
            task = asyncio.create_task(self._write(batch))
            self._writers.add(task)
            self._prompt.add(task)
            task.add_done_callback(self._end_batch)
            asyncio.get_running_loop().call_later(_PROMPT_SEC, self._wait_no_longer, task)

    def _wait_no_longer(self, task: asyncio.Task[None]) -> None:
        self._prompt.discard(task)
        self._begin_batches()

    def _end_batch(self, task: asyncio.Task[None]) -> None:
        self._writers.discard(task)
        self._wait_no_longer(task)

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
