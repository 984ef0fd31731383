"""Cron jobs: their creation, versions, pauses and figures. (Their ticks are the scheduler's: store/timers.py.)"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from datetime import datetime
from uuid import UUID

from taskexecutor_common.model.job import CatchUp, CronJobFigures, Job, LockedCronJob, NewCronJob
from taskexecutor_common.store.database import Database, Transaction


@dataclass(frozen=True, slots=True)
class _JobId:
    job_id: UUID


class EndpointChanged(Exception):
    """The endpoint is no longer what the job was checked against; nothing was written."""


class CronJobStore:
    """Reads and writes of schedules. The caller has checked the namespace."""

    def __init__(self, database: Database, region: str) -> None:
        self._db = database
        self._region = region

    async def create(self, job: NewCronJob) -> bool:
        """Writes a cron job; False: its endpoint changed meanwhile. Repeatable: a job of this id is not written twice,
        and the caller looks for it before it believes a False."""
        row = await self._db.fetch_one("create_cron_job", _JobId, region=self._region, **asdict(job))
        return row is not None

    async def replace(self, job_id: UUID, successor: Callable[[LockedCronJob], NewCronJob]) -> NewCronJob | None:
        """Retires a version and writes the next in one transaction. None: it is retired, or replaced, already.

        `successor` is called with the locked schedule, so that no tick can come between. Raises EndpointChanged.
        """

        async def work(tx: Transaction) -> NewCronJob | None:
            locked = await tx.fetch_one("lock_cron_job", LockedCronJob, job_id=job_id)
            if locked is None or locked.status != "ACTIVE":
                return None
            new = successor(locked)
            await tx.fetch_one("retire_cron_job", _JobId, job_id=job_id, replaced_by_id=new.job_id)
            created = await tx.fetch_one("create_cron_job", _JobId, region=self._region, **asdict(new))
            if created is None:
                raise EndpointChanged
            return new

        return await self._db.run("replace_cron_job", work, repeatable=False)

    async def retire(self, job_id: UUID) -> bool:
        """Stops a cron job; False: it was retired already."""
        return await self._db.fetch_one("retire_cron_job", _JobId, job_id=job_id, replaced_by_id=None) is not None

    async def pause(self, job_id: UUID) -> bool:
        """Stops the ticks until `resume`; False: it is paused or retired already."""
        return await self._db.fetch_one("pause_cron_job", _JobId, job_id=job_id) is not None

    async def resume(
        self, job_id: UUID, catch_up: CatchUp, next_run: Callable[[datetime, datetime], datetime | None]
    ) -> bool:
        """Lets a paused job tick again; False: it is not paused, or retired already.
        `next_run(paused_at, now)` says from when; nothing left retires the job."""

        async def work(tx: Transaction) -> bool:
            locked = await tx.fetch_one("lock_cron_job", LockedCronJob, job_id=job_id)
            if locked is None or locked.paused_at is None or locked.status != "ACTIVE":
                return False
            next_run_at = next_run(locked.paused_at, locked.db_now)
            await tx.fetch_one("resume_cron_job", _JobId, job_id=job_id, next_run_at=next_run_at, catch_up=catch_up)
            return True

        return await self._db.run("resume_cron_job", work)

    async def list_versions(self, namespace: str, root_job_id: UUID, before: int, page: int) -> list[Job]:
        """Reads a page of versions, newest first."""
        return await self._db.fetch_all(
            "list_job_versions",
            Job,
            namespace=namespace,
            root_job_id=root_job_id,
            before_version=before,
            page=page,
        )

    async def figures(self, job_id: UUID) -> CronJobFigures:
        """What the status shows."""
        found = await self._db.fetch_one("cron_job_figures", CronJobFigures, job_id=job_id)
        assert found is not None  # an aggregate always has a row
        return found
