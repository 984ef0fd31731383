"""kill -9 of each service while 1,000 jobs are under way: none is lost, and what was sent twice says so."""

from __future__ import annotations

import asyncio
import os
import signal
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from typing import TypeVar

import aiohttp
import pytest

from tests.e2e.conftest import system_in
from tests.e2e.rest import Answered, Json
from tests.e2e.system import System, fresh, in_seconds, retries
from tests.support.receiver import Answer, Receiver
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

JOBS = 1000
AT_ONCE = 20
KILLED_AFTER = 300  # requests
REFUSED_AT_FIRST = 40
ALL_DONE_SEC = 45.0
T = TypeVar("T")
R = TypeVar("R")


@pytest.fixture(scope="module")
async def mortal(tmp_path_factory: pytest.TempPathFactory, receiver: Receiver) -> AsyncIterator[System]:
    """A system of these tests' own."""
    async with system_in(tmp_path_factory.mktemp("mortal") / "data", receiver) as system:
        yield system


async def each(things: Iterable[T], do: Callable[[T], Awaitable[R]]) -> list[R]:
    """`do` for all things, some at once."""
    slots = asyncio.Semaphore(AT_ONCE)

    async def one(thing: T) -> R:
        async with slots:
            return await do(thing)

    return await asyncio.gather(*map(one, things))


def wanted(endpoint: str, number: int) -> Json:
    """Every second job is a DELAYED one, so that all three services are needed."""
    job = {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": fresh("key"), "input": {"n": number}}
    return job if number % 2 else {**job, "trigger": "DELAYED", "run_at": in_seconds(1.5)}


async def create_insistently(system: System, job: Json) -> Json:
    """What a client must do: after a connection error or 503 it sends the same key again."""
    answered: Answered | None = None

    async def taken() -> bool:
        nonlocal answered
        try:
            answered = await system.rest.call("POST", "/jobs", job)
        except aiohttp.ClientConnectionError:
            return False
        assert answered.status in (200, 201, 503), answered
        return answered.status != 503

    await wait_until(taken, deadline=20, what="the creation")
    assert answered is not None
    return answered.json


async def all_succeeded(system: System, endpoint: str) -> bool:
    """Whether every job's execution is SUCCESS."""
    seen: Counter[str] = Counter()
    cursor = ""
    while True:
        page = await system.rest.call("GET", f"/jobs?endpoint={endpoint}&limit=200{cursor}")
        if page.status == 503:
            return False
        seen.update(job["execution"]["status"] for job in page.items)
        if "cursor" not in page.json:
            return seen == {"SUCCESS": JOBS}
        cursor = f"&cursor={page.json['cursor']}"


@pytest.mark.parametrize("name", ["api", "scheduler", "dispatcher"])
async def test_a_killed_service_loses_no_job(mortal: System, name: str) -> None:
    endpoint = await mortal.endpoint(retry_policy=retries(5, 100), timeout_ms=2000)
    refusals = [Answer(503)] * REFUSED_AT_FIRST
    mortal.receiver.script(f"/{endpoint}", *refusals, Answer(200, delay_sec=0.1))

    creation = asyncio.create_task(
        each([wanted(endpoint, n) for n in range(JOBS)], lambda job: create_insistently(mortal, job))
    )
    await wait_until(lambda: len(mortal.receiver.requests(f"/{endpoint}")) >= KILLED_AFTER, what="the moment to kill")
    assert not creation.done()
    mortal.stack.kill(name)
    jobs = await creation
    assert len({job["job_id"] for job in jobs}) == JOBS
    await wait_until(lambda: all_succeeded(mortal, endpoint), ALL_DONE_SEC, "all jobs SUCCESS")

    lost = await check_history(mortal, endpoint, [job["execution"]["execution_id"] for job in jobs])
    assert (lost > 0) == (name == "dispatcher")


async def check_history(system: System, endpoint: str, execution_ids: list[str]) -> int:
    """Attempts are numbered without gaps, and each request is one of them; a lost attempt explains a second request.

    Answers how many attempts were lost.
    """
    requests = Counter(request.key for request in system.receiver.requests(f"/{endpoint}"))
    assert requests.keys() == set(execution_ids)
    attempts = await each(execution_ids, system.attempts)
    lost, twice = 0, 0
    for execution_id, rows in zip(execution_ids, attempts, strict=True):
        assert [row["attempt_number"] for row in rows] == list(range(1, len(rows) + 1))
        assert [row["status"] for row in rows] == ["FAILED"] * (len(rows) - 1) + ["SUCCESS"]
        errors = Counter(row["error"]["type"] for row in rows[:-1])
        assert errors.keys() <= {"HTTP_ERROR", "WORKER_LOST"}
        answered = len(rows) - errors["WORKER_LOST"]
        assert answered <= requests[execution_id] <= len(rows)
        lost += errors["WORKER_LOST"]
        twice += requests[execution_id] > answered
    print(f"{lost} attempts lost their worker, {twice} executions were sent once more for it")
    return lost


async def test_what_no_dispatcher_has_taken_yet_can_be_cancelled(mortal: System) -> None:
    """A frozen dispatcher takes nothing, so that a job stays QUEUED for as long as the test needs."""
    endpoint = await mortal.endpoint()
    dispatcher = mortal.stack.pid("dispatcher")
    os.kill(dispatcher, signal.SIGSTOP)
    try:
        job = await mortal.job(endpoint)
        by_execution = await mortal.job(endpoint)
        assert (await mortal.rest.get(f"/jobs/{job['job_id']}"))["execution"]["status"] == "QUEUED"
        await mortal.rest.post(f"/jobs/{job['job_id']}/cancel")
        await mortal.rest.post(f"/executions/{by_execution['execution']['execution_id']}/cancel")
    finally:
        os.kill(dispatcher, signal.SIGCONT)
    later = await mortal.run(endpoint)
    assert [request.key for request in mortal.receiver.requests(f"/{endpoint}")] == [later["execution_id"]]
