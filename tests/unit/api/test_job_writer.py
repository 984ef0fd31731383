"""The writer of jobs: alone when nobody else comes, together when many do, and nobody waits for a neighbour's trouble."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Sequence
from datetime import UTC, datetime

import pytest

from taskexecutor_api.operations.job_writer import _BATCH, JobWriter
from taskexecutor_common.errors import Unavailable
from taskexecutor_common.model.job import CreatedJob, NewJob, Trigger
from taskexecutor_common.model.state import ExecutionStatus
from tests.support.waiting import wait_until

NOW = datetime(2030, 1, 1, tzinfo=UTC)


class SlowStore:
    """Stands in for JobStore: notes its batches, and answers each when the test says so."""

    def __init__(self) -> None:
        self.batches: list[list[NewJob]] = []
        self._answers: list[asyncio.Future[None]] = []

    async def create_many(self, jobs: Sequence[NewJob]) -> list[CreatedJob]:
        self.batches.append(list(jobs))
        answer: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._answers.append(answer)
        await answer
        return [CreatedJob(job.job_id, ExecutionStatus.QUEUED, NOW) for job in jobs if job.idempotency_key != "known"]

    @property
    def sizes(self) -> list[int]:
        return [len(batch) for batch in self.batches]

    async def answer(self, batch: int, error: Exception | None = None) -> None:
        """Lets a batch end, once it has begun."""
        await wait_until(lambda: len(self._answers) > batch, what=f"batch {batch}")
        if error is None:
            self._answers[batch].set_result(None)
        else:
            self._answers[batch].set_exception(error)


@pytest.fixture
def store() -> SlowStore:
    return SlowStore()


@pytest.fixture
def writer(store: SlowStore) -> JobWriter:
    return JobWriter(store)  # type: ignore[arg-type]


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """No statement takes long."""
    monkeypatch.setattr("taskexecutor_api.operations.job_writer._PROMPT_SEC", 3600.0)


def new_job(key: str = "key") -> NewJob:
    return NewJob(
        job_id=uuid.uuid4(),
        lane=0,
        endpoint_id=uuid.UUID(int=1),
        endpoint_revision=1,
        schema_revision_id=None,
        trigger_type=Trigger.IMMEDIATE,
        idempotency_key=key,
        dedup_hash=b"",
        input_json=None,
        run_at=None,
        request_id="req_test",
    )


def write(writer: JobWriter, count: int) -> list[asyncio.Task[CreatedJob | None]]:
    return [asyncio.create_task(writer.write(new_job())) for _ in range(count)]


async def begun(store: SlowStore, batches: int) -> None:
    await wait_until(lambda: len(store.batches) == batches, what=f"{batches} batches")


@pytest.mark.usefixtures("patient")
async def test_what_comes_while_a_batch_is_written_shares_the_next(store: SlowStore, writer: JobWriter) -> None:
    first = write(writer, 1)
    await begun(store, 1)
    others = write(writer, 5)
    await store.answer(0)
    await asyncio.gather(*first)
    await store.answer(1)
    await asyncio.gather(*others)
    assert store.sizes == [1, 5]


@pytest.mark.usefixtures("patient")
async def test_a_full_batch_waits_for_none(store: SlowStore, writer: JobWriter) -> None:
    tasks = write(writer, 1)
    await begun(store, 1)
    tasks += write(writer, 2 * _BATCH + 1)
    await begun(store, 3)
    assert store.sizes == [1, _BATCH, _BATCH]
    for batch in range(4):
        await store.answer(batch)
    await asyncio.gather(*tasks)
    assert store.sizes == [1, _BATCH, _BATCH, 1]


async def test_a_statement_that_takes_long_holds_up_nobody_else(store: SlowStore, writer: JobWriter) -> None:
    slow = write(writer, 1)
    await begun(store, 1)
    other = write(writer, 1)
    await store.answer(1)
    await asyncio.gather(*other)
    late = write(writer, 1)
    await store.answer(2)
    await asyncio.gather(*late)
    await store.answer(0)
    await asyncio.gather(*slow)


async def test_a_job_that_was_not_written_has_no_answer(store: SlowStore, writer: JobWriter) -> None:
    known = asyncio.create_task(writer.write(new_job("known")))
    fresh = asyncio.create_task(writer.write(new_job()))
    await store.answer(0)
    assert await known is None
    assert await fresh is not None


async def test_a_job_that_the_database_refuses_fails_alone(store: SlowStore, writer: JobWriter) -> None:
    good, bad = (asyncio.create_task(writer.write(new_job())) for _ in range(2))
    await store.answer(0, ValueError("one of them is bad"))
    await store.answer(1)
    await store.answer(2, ValueError("this one"))
    assert await good is not None
    with pytest.raises(ValueError, match="this one"):
        await bad
    assert store.sizes == [2, 1, 1]


async def test_a_database_that_is_away_is_told_to_all_at_once(store: SlowStore, writer: JobWriter) -> None:
    tasks = write(writer, 3)
    await store.answer(0, Unavailable("away"))
    results = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(result) for result in results] == [Unavailable] * 3
    assert store.sizes == [3]


async def test_a_caller_that_has_gone_does_not_disturb_its_batch(store: SlowStore, writer: JobWriter) -> None:
    gone, staying = write(writer, 2)
    await begun(store, 1)
    gone.cancel()
    await store.answer(0)
    assert await staying is not None


async def test_stopping_lets_what_was_taken_be_written(store: SlowStore, writer: JobWriter) -> None:
    tasks = write(writer, 1)
    await begun(store, 1)
    tasks += write(writer, 2)
    stopping = asyncio.create_task(writer.stop())
    await store.answer(0)
    await store.answer(1)
    await stopping
    assert all([await task for task in tasks])
