"""Short words for the tests of the engine: make endpoints and jobs, be a worker, look into the tables, let time pass.

Time passes by moving what is stored: the engine compares stored times with the database's clock only, so a timer that is
set back an hour is due for an hour.
"""

from __future__ import annotations

import itertools
import uuid
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

import psycopg

from taskexecutor_common.clock import Clock
from taskexecutor_common.ids import LaneIds, dedup_hash
from taskexecutor_common.model.endpoint import EndpointFlow, EndpointType, FlowControl, RetryPolicy
from taskexecutor_common.model.execution import AttemptResult, Claim, Execution
from taskexecutor_common.model.job import CatchUp, CreatedJob, NewCronJob, NewJob, Trigger
from taskexecutor_common.model.state import AttemptStatus, ExecutionStatus, LogLevel
from taskexecutor_common.store.cron_jobs import CronJobStore
from taskexecutor_common.store.database import Database
from taskexecutor_common.store.endpoints import EndpointSettings, EndpointStore
from taskexecutor_common.store.executions import ExecutionStore
from taskexecutor_common.store.flow import FlowStore
from taskexecutor_common.store.instances import InstanceStore
from taskexecutor_common.store.jobs import JobStore
from taskexecutor_common.store.queue import QueueStore
from taskexecutor_common.store.setup import SetupStore
from taskexecutor_common.store.timers import TimerStore

REGION = NAMESPACE = "default"
DEAD_AFTER_MS = 15_000
SLACK_MS = 5_000
GRACE_MS = 10_000
LOST = {"type": "WORKER_LOST", "message": "the dispatcher stopped answering"}

_names = itertools.count()


@dataclass(frozen=True, slots=True)
class MadeEndpoint:
    """An endpoint that a test has registered."""

    endpoint_id: uuid.UUID
    name: str
    revision: int = 1


@dataclass(frozen=True, slots=True)
class Worker:
    """A dispatcher instance, as far as the store is concerned."""

    worker_id: uuid.UUID
    queue: QueueStore


def succeeded(claim: Claim) -> AttemptResult:
    """The result of a claimed attempt that went well."""
    return success_of(claim.execution_id, claim.attempt_count)


def success_of(execution_id: uuid.UUID, attempt_number: int) -> AttemptResult:
    """The result of an attempt that went well."""
    return AttemptResult(
        execution_id=execution_id,
        attempt_number=attempt_number,
        attempt_status=AttemptStatus.SUCCESS,
        next_status=ExecutionStatus.SUCCESS,
        retry_delay_ms=0,
        duration_ms=7,
        output={"status_code": 200},
        error=None,
        log_level=None,
        log_message=None,
    )


def failed(
    claim: Claim, next_status: ExecutionStatus = ExecutionStatus.FAILED, *, retry_delay_ms: int = 0
) -> AttemptResult:
    """The result of a claimed attempt that went wrong."""
    return replace(
        succeeded(claim),
        attempt_status=AttemptStatus.FAILED,
        next_status=next_status,
        retry_delay_ms=retry_delay_ms,
        output=None,
        error={"type": "HTTP_ERROR", "status_code": 500, "message": "no"},
        log_level=LogLevel.WARN,
        log_message="attempt failed: 500",
    )


def retrying(claim: Claim, delay_ms: int = 0) -> AttemptResult:
    """The result of a claimed attempt that went wrong and is to be tried again."""
    return failed(claim, ExecutionStatus.RETRYING, retry_delay_ms=delay_ms)


class Engine:
    """One database with the stores on it. `lanes`: how many the ids are spread over."""

    def __init__(self, db: Database, connection: psycopg.AsyncConnection[Any], lanes: int = 1) -> None:
        self.db = db
        self.lanes = range(lanes)
        self._connection = connection
        self.jobs = JobStore(db, REGION)
        self.cron_jobs = CronJobStore(db, REGION)
        self.executions = ExecutionStore(db)
        self.timers = TimerStore(db)
        self.setup = SetupStore(db)
        self.endpoints = EndpointStore(db)
        self.flows = FlowStore(db)
        self.instances = InstanceStore(db, REGION, DEAD_AFTER_MS, SLACK_MS)
        self._ids = LaneIds(lanes, Clock().epoch_ms)

    # --- making ---

    async def endpoint(
        self,
        *,
        max_attempts: int = 1,
        timeout_ms: int = 30_000,
        config: str | None = None,
        payload_spec: str | None = None,
        namespace: str = NAMESPACE,
        spec: dict[str, Any] | None = None,
        flow_control: FlowControl | None = None,
    ) -> MadeEndpoint:
        """A new HTTP endpoint."""
        made = MadeEndpoint(uuid.uuid4(), f"endpoint-{next(_names)}")
        settings = self.settings(
            max_attempts=max_attempts,
            timeout_ms=timeout_ms,
            config=config,
            payload_spec=payload_spec,
            spec=spec,
            flow_control=flow_control,
        )
        assert await self.endpoints.create(namespace, made.name, made.endpoint_id, EndpointType.HTTP, settings)
        return made

    @staticmethod
    def settings(
        *,
        max_attempts: int = 1,
        timeout_ms: int = 30_000,
        config: str | None = None,
        payload_spec: str | None = None,
        spec: dict[str, Any] | None = None,
        flow_control: FlowControl | None = None,
    ) -> EndpointSettings:
        """Settings of an endpoint."""
        return EndpointSettings(
            payload_spec=payload_spec,
            config=config,
            spec=spec or {"url": "http://127.0.0.1:9/", "method": "POST", "timeout_ms": timeout_ms},
            retry_policy=RetryPolicy(max_attempts=max_attempts, initial_delay_ms=1),
            timeout_ms=timeout_ms,
            references=[],
            flow_control=flow_control or FlowControl(),
        )

    def job(self, endpoint: MadeEndpoint, *, key: str | None = None, run_at: datetime | None = None) -> NewJob:
        """A one-shot job that is not written yet."""
        job_id, lane = self._ids.new()
        key = key or job_id.hex
        return NewJob(
            job_id=job_id,
            lane=lane,
            endpoint_id=endpoint.endpoint_id,
            endpoint_revision=endpoint.revision,
            schema_revision_id=None,
            trigger_type=Trigger.DELAYED if run_at else Trigger.IMMEDIATE,
            idempotency_key=key,
            dedup_hash=dedup_hash(endpoint.endpoint_id, key),
            input_json='{"n": 1}',
            run_at=run_at,
            request_id="req_test",
        )

    async def create(
        self, endpoint: MadeEndpoint, count: int = 1, *, run_at: datetime | None = None
    ) -> list[CreatedJob]:
        """Writes `count` one-shot jobs; an execution bears the id of its job."""
        created = await self.jobs.create_many([self.job(endpoint, run_at=run_at) for _ in range(count)])
        assert len(created) == count
        return created

    async def create_one(self, endpoint: MadeEndpoint, *, run_at: datetime | None = None) -> uuid.UUID:
        """Writes one job. Answers its id and that of its execution."""
        return (await self.create(endpoint, run_at=run_at))[0].job_id

    async def create_cron(
        self,
        endpoint: MadeEndpoint,
        next_run_at: datetime,
        *,
        expression: str = "* * * * *",
        timezone: str = "UTC",
        ends_at: datetime | None = None,
        catch_up: CatchUp = CatchUp.ALL,
        lane: int | None = None,
    ) -> uuid.UUID:
        """Writes a cron job, in the lane of its id unless told otherwise."""
        job_id, its_lane = self._ids.new()
        job = NewCronJob(
            job_id=job_id,
            lane=its_lane if lane is None else lane,
            endpoint_id=endpoint.endpoint_id,
            endpoint_revision=endpoint.revision,
            version=1,
            root_job_id=job_id,
            previous_version_id=None,
            input_json=None,
            cron_expression=expression,
            cron_timezone=timezone,
            cron_starts_at=None,
            cron_ends_at=ends_at,
            next_run_at=next_run_at,
            paused_at=None,
            catch_up=catch_up,
            request_id="req_test",
        )
        assert await self.cron_jobs.create(job)
        return job_id

    def new_id(self) -> uuid.UUID:
        """An id for an execution."""
        return self._ids.new()[0]

    # --- being a scheduler ---

    async def promote(self, *, ahead_ms: int = 0) -> Counter[uuid.UUID]:
        """Promotes all that is due within `ahead_ms`, lane after lane. Answers how many went to each queue."""
        moved: Counter[uuid.UUID] = Counter()
        for lane in self.lanes:
            while (promotion := await self.timers.promote(lane, ahead_ms=ahead_ms)).moved:
                moved.update(promotion.moved)
        return moved

    # --- being a worker ---

    async def worker(self, db: Database | None = None, *, status: str = "ALIVE") -> Worker:
        """An instance that has beaten once. `db`: the connections it uses, if not those of all."""
        worker_id = uuid.uuid4()
        await self.beat(worker_id, status)
        return Worker(worker_id, QueueStore(db or self.db, worker_id, GRACE_MS))

    async def beat(self, worker_id: uuid.UUID, status: str = "ALIVE") -> None:
        """A heartbeat of a dispatcher."""
        await self.instances.beat("dispatcher", worker_id, None, status, {})

    async def claim_one(self, endpoint: MadeEndpoint, worker: Worker) -> Claim:
        """Claims the next execution of an endpoint."""
        (claim,) = await worker.queue.claim({endpoint.endpoint_id: 1})
        return claim

    async def running(self, *, max_attempts: int = 3) -> tuple[Worker, Claim]:
        """A worker that holds an execution."""
        endpoint = await self.endpoint(max_attempts=max_attempts)
        await self.create(endpoint)
        worker = await self.worker()
        return worker, await self.claim_one(endpoint, worker)

    # --- looking ---

    async def rows(self, query: str, *parameters: Any) -> list[tuple[Any, ...]]:
        """The rows of any query."""
        cursor = await self._connection.execute(query, parameters)
        return await cursor.fetchall() if cursor.description else []

    async def value(self, query: str, *parameters: Any) -> Any:
        """The only value of any query."""
        ((value,),) = await self.rows(query, *parameters)
        return value

    async def count(self, table: str) -> int:
        """How many rows a table has."""
        return int(await self.value(f"SELECT count(*) FROM {table}"))

    async def now(self) -> datetime:
        """The database's clock."""
        moment = await self.value("SELECT clock_timestamp()")
        assert isinstance(moment, datetime)
        return moment

    async def flow(self, endpoint: MadeEndpoint) -> EndpointFlow:
        """Where an endpoint's limits stand."""
        return (await self.flows.get([endpoint.endpoint_id]))[endpoint.endpoint_id]

    async def execution(self, execution_id: uuid.UUID) -> Execution:
        """An execution as callers see it."""
        found = await self.executions.get(NAMESPACE, execution_id)
        assert found is not None
        return found

    async def status(self, execution_id: uuid.UUID) -> ExecutionStatus:
        """Where an execution stands."""
        return (await self.execution(execution_id)).status

    async def statuses(self, execution_ids: Iterable[uuid.UUID]) -> list[ExecutionStatus]:
        """Where executions stand."""
        return [await self.status(execution_id) for execution_id in execution_ids]

    async def attempts(self, execution_id: uuid.UUID) -> list[tuple[int, str, str | None]]:
        """Number, status and error type of an execution's attempts."""
        attempts = await self.executions.list_attempts(execution_id, 0, 100)
        return [(a.attempt_number, a.status.value, (a.error or {}).get("type")) for a in attempts]

    async def waiting(self, table: str = "ready_queue") -> list[uuid.UUID]:
        """The executions in the ready queue, or among the timers, in their order."""
        order = {
            "ready_queue": "queue, lane, priority, ready_at, execution_id",
            "timers": "lane, fire_at, execution_id",
        }
        rows = await self.rows(f"SELECT execution_id FROM {table} ORDER BY {order[table]}")
        return [row[0] for row in rows]

    # --- letting time pass ---

    async def timers_come_due(self, execution_ids: Sequence[uuid.UUID] | None = None) -> None:
        """The timers of these executions, or all, were due a second ago."""
        chosen = list(execution_ids) if execution_ids is not None else await self.waiting("timers")
        due_at = await self.value("SELECT now() - interval '1 second'")
        await self.rows("UPDATE timers SET fire_at = %s WHERE execution_id = ANY (%s)", due_at, chosen)
        await self.rows("UPDATE executions SET run_at = %s WHERE execution_id = ANY (%s)", due_at, chosen)

    async def closed_for_long_enough(self, endpoint: MadeEndpoint) -> None:
        """What closed an endpoint for a time is over."""
        await self.rows(
            "UPDATE endpoint_flow SET closed_until = now() WHERE endpoint_id = %s AND closed_until IS NOT NULL",
            endpoint.endpoint_id,
        )

    async def tokens_grow(self, endpoint: MadeEndpoint, seconds: float) -> None:
        """An endpoint with a rate has rested for so long."""
        await self.rows(
            "UPDATE endpoint_flow SET tokens_at = tokens_at - %s * interval '1 second' WHERE endpoint_id = %s",
            seconds,
            endpoint.endpoint_id,
        )

    async def leases_run_out(self) -> None:
        """All leases, and the slack that they are given, are over."""
        await self.rows("UPDATE leases SET expires_at = now() - interval '1 millisecond' * %s", SLACK_MS + 1000)

    async def falls_silent(self, worker: Worker) -> None:
        """A worker has not beaten for longer than the living do."""
        await self.rows(
            "UPDATE region_heartbeats SET last_beat_at = now() - interval '1 millisecond' * %s WHERE instance_id = %s",
            DEAD_AFTER_MS + 1000,
            worker.worker_id,
        )
