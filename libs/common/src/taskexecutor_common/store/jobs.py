"""Jobs: their creation in batches, and reading them."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

import orjson

from taskexecutor_common.model.job import CreatedJob, Job, JobStatus, KnownKey, NewJob, Trigger
from taskexecutor_common.observability import metrics
from taskexecutor_common.store.database import SMALL_BATCH, Database


class JobStore:
    """Reads and writes of jobs."""

    def __init__(self, database: Database, region: str) -> None:
        self._db = database
        self._region = region

    async def create_many(self, jobs: Sequence[NewJob]) -> list[CreatedJob]:
        """Writes one-shot jobs in one statement; those that come back were written.

        Repeatable: the idempotency key holds a job that an earlier try has written, and `find_by_key` finds it.
        """
        metrics.CREATE_BATCH.observe(len(jobs))
        return await self._db.fetch_all(
            "create_jobs",
            CreatedJob,
            small=len(jobs) <= SMALL_BATCH,
            region=self._region,
            # One document: psycopg needs many times as long for an array of each field.
            jobs=orjson.dumps(jobs, default=bytes.hex).decode(),
        )

    async def find_by_key(self, dedup_hashes: Sequence[bytes]) -> dict[bytes, UUID]:
        """Which jobs hold these idempotency keys."""
        rows = await self._db.fetch_all("find_jobs_by_key", KnownKey, dedup_hashes=list(dedup_hashes))
        return {row.dedup_hash: row.job_id for row in rows}

    async def get(self, namespace: str, job_id: UUID) -> Job | None:
        """Reads one job."""
        jobs = await self.get_many(namespace, [job_id])
        return jobs.get(job_id)

    async def get_many(self, namespace: str, job_ids: Sequence[UUID]) -> dict[UUID, Job]:
        """Reads jobs by id; those of other namespaces are not there."""
        rows = await self._db.fetch_all("get_jobs", Job, namespace=namespace, job_ids=list(job_ids))
        return {job.job_id: job for job in rows}

    async def list_page(
        self,
        namespace: str,
        *,
        endpoint_ids: Sequence[UUID] | None,
        trigger: Trigger | None,
        status: JobStatus | None,
        before: tuple[datetime, UUID],
        page: int,
    ) -> list[Job]:
        """Reads a page, newest first, of what is older than `before`; a filter that is None does not filter."""
        filters: dict[str, Any] = {
            "namespace": namespace,
            "trigger_type": trigger,
            "status": status,
            "before_created_at": before[0],
            "before_id": before[1],
            "page": page,
        }
        if endpoint_ids is None:
            return await self._db.fetch_all("list_jobs", Job, **filters)
        return await self._db.fetch_all("list_jobs_of_endpoint", Job, endpoint_ids=list(endpoint_ids), **filters)
