"""The whole system as a CockroachDB cluster would run it: serializable, and 16 lanes. What callers see is the same."""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.e2e.conftest import system_in
from tests.e2e.rest import Json
from tests.e2e.system import System, fresh, in_seconds, now, retries
from tests.support.receiver import Answer, Receiver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

LANES = 16
JOBS = 400
REFUSED_AT_FIRST = 30
MOST_AT_ONCE = 3


@pytest.fixture(scope="module")
async def distributed(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> AsyncIterator[System]:
    """A system of these tests' own, with two dispatchers."""
    folder = tmp_path_factory.mktemp("distributed") / "data"
    mode = {"TE_DB_ISOLATION": "serializable", "TE_LANES": str(LANES), "TE_DISPATCHER_PROCESSES": "2"}
    async with system_in(folder, receiver, **mode) as system:
        yield system


@pytest.fixture(scope="module")
async def tables(distributed: System) -> AsyncIterator[psycopg.AsyncConnection[Any]]:
    """A connection to its database."""
    async with await psycopg.AsyncConnection.connect(distributed.stack.database_url, autocommit=True) as connection:
        yield connection


async def create(system: System, jobs: list[Json]) -> list[Json]:
    """The jobs, in the order in which they were asked for."""
    items: list[Json] = []
    for first in range(0, len(jobs), 100):
        items += (await system.rest.post("/jobs/batch", {"jobs": jobs[first : first + 100]}))["items"]
    return items


def requests_of(system: System, endpoint: str) -> Counter[str]:
    """How often each execution arrived."""
    return Counter(request.key for request in system.receiver.requests(f"/{endpoint}"))


async def test_jobs_of_all_kinds_arrive_from_all_lanes_though_the_scheduler_is_killed(
    distributed: System, tables: psycopg.AsyncConnection[Any]
) -> None:
    endpoint = await distributed.endpoint(retry_policy=retries(5, 100))
    distributed.receiver.script(f"/{endpoint}", *[Answer(503)] * REFUSED_AT_FIRST, Answer(200))
    wanted = [{"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": fresh("key")} for _ in range(JOBS)]
    for job in wanted[::2]:
        job |= {"trigger": "DELAYED", "run_at": in_seconds(1.5)}
    created = await create(distributed, wanted)
    distributed.stack.kill("scheduler")
    again = await create(distributed, wanted)
    assert [item["job"]["job_id"] for item in again] == [item["job"]["job_id"] for item in created]
    executions = [item["job"]["execution"]["execution_id"] for item in created]
    ended = [await distributed.ended(execution, 30) for execution in executions]
    assert {execution["status"] for execution in ended} == {"SUCCESS"}
    tries = {execution["execution_id"]: execution["attempt_count"] for execution in ended}
    assert requests_of(distributed, endpoint) == tries
    assert sum(tries.values()) == JOBS + REFUSED_AT_FIRST
    lanes = await (await tables.execute("SELECT count(DISTINCT lane) FROM executions")).fetchone()
    assert lanes == (LANES,)


async def test_schedules_of_all_lanes_tick_once(distributed: System, tables: psycopg.AsyncConnection[Any]) -> None:
    endpoint = await distributed.endpoint()
    jobs = [await distributed.cron(endpoint, cron="0 0 * * *") for _ in range(2 * LANES)]
    midnight = now().replace(hour=0, minute=0, second=0, microsecond=0)
    ids = [UUID(hex=job["job_id"].removeprefix("job_")) for job in jobs]
    await tables.execute(
        "UPDATE cron_jobs SET next_run_at = %s WHERE job_id = ANY (%s)", (midnight - timedelta(days=2), ids)
    )
    await wait_until(lambda: len(distributed.receiver.requests(f"/{endpoint}")) >= 3 * len(jobs), 20, "all ticks")
    for job in jobs:
        executions = await distributed.rest.items(f"/jobs/{job['job_id']}/executions")
        assert len(executions) == 3
    assert set(requests_of(distributed, endpoint).values()) == {1}


async def test_a_limit_holds_over_all_lanes_and_dispatchers(distributed: System) -> None:
    endpoint = await distributed.endpoint(flow_control={"max_in_flight": MOST_AT_ONCE})
    distributed.receiver.script(f"/{endpoint}", Answer(200, delay_sec=0.01))
    wanted = [{"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": fresh("key")} for _ in range(90)]
    created = await create(distributed, wanted)
    for item in created:
        await distributed.ended(item["job"]["execution"]["execution_id"], 20)
    assert set(requests_of(distributed, endpoint).values()) == {1}
    assert distributed.receiver.most_at_once(f"/{endpoint}") <= MOST_AT_ONCE
    assert (await distributed.rest.get(f"/endpoints/{endpoint}"))["flow_state"]["in_flight"] == 0
