"""Cancelling one-shot jobs and their executions, by either route."""

from __future__ import annotations

import asyncio

import pytest

from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, in_seconds, instant, now, retries
from tests.support.receiver import Answer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

ROUTES = ("job", "execution")


def cancel_route(job: Json, route: str) -> str:
    if route == "job":
        return f"/jobs/{job['job_id']}/cancel"
    return f"/executions/{job['execution']['execution_id']}/cancel"


def status_in(answer: Json) -> str:
    """The execution's status, whichever of the two was answered."""
    return str(answer["execution"]["status"] if "trigger" in answer else answer["status"])


@pytest.mark.parametrize("route", ROUTES)
async def test_what_waits_for_its_time_is_cancelled_and_never_sent(system: System, rest: Rest, route: str) -> None:
    endpoint = await system.endpoint()
    job = await system.job(endpoint, trigger="DELAYED", run_at=in_seconds(0.5))
    assert status_in(await rest.post(cancel_route(job, route))) == "CANCELLED"
    execution = await rest.get(f"/executions/{job['execution']['execution_id']}")
    assert (execution["status"], execution["attempt_count"]) == ("CANCELLED", 0)
    assert "completed_at" in execution
    assert (await rest.get(f"/jobs/{job['job_id']}"))["status"] == "RETIRED"

    later = await system.job(endpoint, trigger="DELAYED", run_at=in_seconds(0.6))
    await system.ended(later["execution"]["execution_id"])
    assert now() > instant(job["run_at"])
    assert [request.key for request in system.receiver.requests(f"/{endpoint}")] == [later["execution"]["execution_id"]]


@pytest.mark.parametrize("route", ROUTES)
async def test_what_waits_for_its_retry_is_cancelled_and_not_sent_again(system: System, rest: Rest, route: str) -> None:
    endpoint = await system.endpoint(retry_policy=retries(5, 60_000))
    system.receiver.script(f"/{endpoint}", Answer(503))
    job = await system.job(endpoint)
    await system.in_status(job["execution"]["execution_id"], "RETRYING")
    assert status_in(await rest.post(cancel_route(job, route))) == "CANCELLED"
    assert [a["status"] for a in await system.attempts(job["execution"]["execution_id"])] == ["FAILED"]


@pytest.mark.parametrize("route", ROUTES)
async def test_what_runs_can_not_be_cancelled(system: System, rest: Rest, route: str) -> None:
    endpoint = await system.endpoint()
    system.receiver.script(f"/{endpoint}", Answer(200, delay_sec=1.5))
    job = await system.job(endpoint)
    await wait_until(lambda: system.receiver.requests(f"/{endpoint}"), what="the delivery")
    answered = await rest.call("POST", cancel_route(job, route))
    assert (answered.status, answered.code) == (409, "EXECUTION_NOT_CANCELLABLE")
    assert "RUNNING" in answered.message
    assert (await system.ended(job["execution"]["execution_id"]))["status"] == "SUCCESS"


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize("end", ["SUCCESS", "FAILED"])
async def test_what_has_ended_can_not_be_cancelled(system: System, rest: Rest, route: str, end: str) -> None:
    endpoint = await system.endpoint()
    system.receiver.script(f"/{endpoint}", Answer(200 if end == "SUCCESS" else 500))
    job = await system.job(endpoint)
    await system.ended(job["execution"]["execution_id"])
    answered = await rest.call("POST", cancel_route(job, route))
    assert (answered.status, answered.code) == (409, "EXECUTION_NOT_CANCELLABLE")
    assert end in answered.message
    assert (await rest.get(f"/executions/{job['execution']['execution_id']}"))["status"] == end


@pytest.mark.parametrize("route", ROUTES)
async def test_cancelling_again_answers_the_same(system: System, rest: Rest, route: str) -> None:
    job = await system.job(await system.endpoint(), trigger="DELAYED", run_at=in_seconds(3600))
    first = await rest.post(cancel_route(job, route))
    assert await rest.post(cancel_route(job, route)) == first


async def test_of_many_cancellations_at_once_all_answer_the_same(system: System, rest: Rest) -> None:
    job = await system.job(await system.endpoint(), trigger="DELAYED", run_at=in_seconds(3600))
    answers = await asyncio.gather(*(rest.post(cancel_route(job, ROUTES[n % 2])) for n in range(8)))
    assert {status_in(answer) for answer in answers} == {"CANCELLED"}


async def test_a_cancelled_job_keeps_its_key(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint()
    job = await system.job(endpoint, trigger="DELAYED", run_at=in_seconds(3600), idempotency_key="taken")
    await rest.post(cancel_route(job, "job"))
    again = await rest.post("/jobs", {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": "taken"})
    assert (again["job_id"], again["deduplicated"], status_in(again)) == (job["job_id"], True, "CANCELLED")
