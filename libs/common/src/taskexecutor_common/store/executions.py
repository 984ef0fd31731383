"""Executions and their history, as callers read them, and their cancellation."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from taskexecutor_common.model.execution import Attempt, Execution, ExecutionLog
from taskexecutor_common.model.state import ExecutionStatus
from taskexecutor_common.store.database import Database


@dataclass(frozen=True, slots=True)
class _ExecutionId:
    execution_id: UUID


class ExecutionStore:
    """Reads of executions. Attempts and logs carry no namespace: read their execution first."""

    def __init__(self, database: Database) -> None:
        self._db = database

    async def get(self, namespace: str, execution_id: UUID) -> Execution | None:
        """Reads one execution."""
        return await self._db.fetch_one("get_execution", Execution, namespace=namespace, execution_id=execution_id)

    async def list_of_cron_job(
        self, namespace: str, job_id: UUID, status: ExecutionStatus | None, before_tick_at: datetime, page: int
    ) -> list[Execution]:
        """Reads a page of a cron job's executions, newest tick first."""
        return await self._db.fetch_all(
            "list_executions_of_cron_job",
            Execution,
            namespace=namespace,
            job_id=job_id,
            status=status,
            before_tick_at=before_tick_at,
            page=page,
        )

    async def list_attempts(self, execution_id: UUID, after_number: int, page: int) -> list[Attempt]:
        """Reads a page of attempts, oldest first."""
        return await self._db.fetch_all(
            "list_attempts", Attempt, execution_id=execution_id, after_number=after_number, page=page
        )

    async def list_logs(self, execution_id: UUID, after: tuple[int, int], page: int) -> list[ExecutionLog]:
        """Reads a page of log rows after (attempt number, seq), oldest first."""
        return await self._db.fetch_all(
            "list_execution_logs",
            ExecutionLog,
            execution_id=execution_id,
            after_number=after[0],
            after_seq=after[1],
            page=page,
        )

    async def cancel(self, namespace: str, execution_id: UUID) -> bool:
        """Cancels what waits; False: it does not wait (any more)."""
        row = await self._db.fetch_one("cancel_execution", _ExecutionId, namespace=namespace, execution_id=execution_id)
        return row is not None
