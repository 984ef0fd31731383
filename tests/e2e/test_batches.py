"""Many jobs in one call: each gets its own result, in order."""

from __future__ import annotations

import pytest

from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

MOST = 1000


def job(endpoint: str, **fields: object) -> Json:
    return {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": fresh("key"), **fields}


def cron(endpoint: str, expression: str) -> Json:
    return {"endpoint": endpoint, "trigger": "CRON", "cron": expression, "timezone": "UTC"}


async def test_a_batch_of_any_mix_answers_in_order(system: System, rest: Rest) -> None:
    schema = fresh("schema")
    await rest.create("/payload-specs", {"name": schema, "schema": {"required": ["n"]}})
    plain, strict = await system.endpoint(), await system.endpoint(payload_spec=schema)
    jobs = [
        job(plain, input={"n": 1}),
        job("no-such-endpoint"),
        job(strict, input={"n": 1}),
        job(strict, input={}),
        job(plain, trigger="DELAYED", run_at="2099-01-01T00:00:00Z"),
        job(plain, trigger="DELAYED"),
        cron(plain, "0 0 1 1 *"),
        cron(plain, "0 0 30 2 *"),
    ]
    items = (await rest.post("/jobs/batch", {"jobs": jobs}))["items"]
    assert [item["error"]["code"] if "error" in item else item["job"]["trigger"] for item in items] == [
        "IMMEDIATE",
        "ENDPOINT_NOT_FOUND",
        "IMMEDIATE",
        "INPUT_VALIDATION_FAILED",
        "DELAYED",
        "INVALID_REQUEST",
        "CRON",
        "INVALID_CRON",
    ]
    assert [sorted(item) for item in items] == [["error"] if "error" in item else ["job"] for item in items]
    assert "run_at" in items[5]["error"]["message"]
    for item in items:
        if "job" in item:
            stored = await rest.get(f"/jobs/{item['job']['job_id']}")
            assert stored["input"] == item["job"]["input"]


async def test_duplicates_within_a_batch_are_one_job(system: System, rest: Rest) -> None:
    same = job(await system.endpoint(), input={"n": 1})
    first, second = [item["job"] for item in (await rest.post("/jobs/batch", {"jobs": [same, same]}))["items"]]
    assert first["job_id"] == second["job_id"]
    assert ("deduplicated" in first, second["deduplicated"]) == (False, True)
    await system.ended(first["execution"]["execution_id"])
    assert len(system.receiver.requests(f"/{same['endpoint']}")) == 1


async def test_a_batch_sent_again_finds_its_jobs(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint()
    body = {"jobs": [job(endpoint), job(endpoint)]}
    first = (await rest.post("/jobs/batch", body))["items"]
    again = (await rest.post("/jobs/batch", body))["items"]
    assert [item["job"]["job_id"] for item in again] == [item["job"]["job_id"] for item in first]
    assert [item["job"]["execution"]["execution_id"] for item in again] == [
        item["job"]["execution"]["execution_id"] for item in first
    ]
    assert all(item["job"]["deduplicated"] for item in again)


async def test_the_largest_batch_is_created_and_delivered(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint()
    items = (await rest.post("/jobs/batch", {"jobs": [job(endpoint) for _ in range(MOST)]}))["items"]
    wanted = {item["job"]["execution"]["execution_id"] for item in items}
    assert len(wanted) == MOST
    await wait_until(lambda: len(system.receiver.requests(f"/{endpoint}")) >= MOST, 20, "all deliveries")
    assert {request.key for request in system.receiver.requests(f"/{endpoint}")} == wanted
