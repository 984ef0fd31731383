"""What a change of the setup touches and what it leaves alone: revisions, pinned values, references, deletion."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import psycopg
import pytest

from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh, in_seconds, instant, retries
from tests.support.receiver import Answer
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

ROTATION_SEC = 5.0


def at(system: System, endpoint: str) -> list[Any]:
    """The bodies that arrived at an endpoint's own path."""
    return [request.json for request in system.receiver.requests(f"/{endpoint}")]


async def config(rest: Rest, **values: Any) -> str:
    name = fresh("config")
    await rest.create("/configs", {"name": name, "values": values})
    return name


# --- configs ---


async def test_a_changed_config_is_used_from_the_next_job_on(system: System, rest: Rest) -> None:
    name = await config(rest, sender="old")
    endpoint = await system.endpoint(config=name, body_template="{{config.sender}} {{input.n}}")
    await system.run(endpoint, input={"n": 1})
    await rest.put(f"/configs/{name}", {"values": {"sender": "new"}})
    await system.run(endpoint, input={"n": 2})
    bodies = [request.body for request in system.receiver.requests(f"/{endpoint}")]
    assert bodies == [b"old 1", b"new 2"]


async def test_a_started_execution_keeps_its_config_over_its_retries(system: System, rest: Rest) -> None:
    name = await config(rest, sender="old")
    endpoint = await system.endpoint(config=name, body_template=["{{config.sender}}"], retry_policy=retries(3, 300))
    system.receiver.script(f"/{endpoint}", Answer(503), Answer(503), Answer(200))
    job = await system.job(endpoint)
    await wait_until(lambda: at(system, endpoint), what="the first attempt")
    await rest.put(f"/configs/{name}", {"values": {"sender": "new"}})
    await system.ended(job["execution"]["execution_id"])
    assert at(system, endpoint) == [["old"]] * 3
    await system.run(endpoint)
    assert at(system, endpoint)[3:] == [["new"]]


async def test_the_revisions_of_a_config_stay_readable(rest: Rest) -> None:
    name = await config(rest, n=1)
    for n in (2, 3):
        updated = await rest.put(f"/configs/{name}", {"values": {"n": n}})
        assert (updated["revision"], updated["values"]) == (n, {"n": n})
    revisions = await rest.items(f"/configs/{name}/revisions")
    assert [(r["name"], r["revision"], r["values"]) for r in revisions] == [(name, n, {"n": n}) for n in (3, 2, 1)]
    page = await rest.get(f"/configs/{name}/revisions?limit=2")
    (last,) = await rest.items(f"/configs/{name}/revisions?limit=2&cursor={page['cursor']}")
    assert last["revision"] == 1


async def test_an_update_changes_updated_at_and_leaves_created_at(rest: Rest) -> None:
    name = await config(rest, n=1)
    before = await rest.get(f"/configs/{name}")
    after = await rest.put(f"/configs/{name}", {"values": {"n": 2}})
    assert after["created_at"] == before["created_at"]
    assert instant(after["updated_at"]) > instant(before["updated_at"])


async def test_a_value_that_an_endpoint_names_can_not_be_taken_away(system: System, rest: Rest) -> None:
    name = await config(rest, sender={"name": "me"})
    endpoint = await system.endpoint(config=name, body_template="{{config.sender.name}}")
    answered = await rest.call("PUT", f"/configs/{name}", {"values": {"sender": {}}})
    assert (answered.status, answered.code) == (409, "CONFLICT")
    assert endpoint in answered.message
    assert (await rest.get(f"/configs/{name}"))["values"] == {"sender": {"name": "me"}}


# --- secrets ---


async def test_a_rotated_secret_is_used_within_seconds(system: System, rest: Rest) -> None:
    secret = fresh("secret")
    await rest.create("/secrets", {"name": secret, "value": "old value"})
    endpoint = await system.endpoint(headers={"X-Token": f"{{{{secret.{secret}}}}}"})

    async def token() -> str:
        await system.run(endpoint)
        return str(system.receiver.requests(f"/{endpoint}")[-1].headers["X-Token"])

    async def is_new() -> bool:
        return await token() == "new value"

    assert await token() == "old value"
    rotated = await rest.put(f"/secrets/{secret}", {"value": "new value"})
    assert sorted(rotated) == ["created_at", "name", "updated_at"]
    await wait_until(is_new, ROTATION_SEC, "the new value")


# --- payload specs ---


async def test_a_changed_schema_is_asked_from_the_next_job_on(system: System, rest: Rest) -> None:
    schema = fresh("schema")
    await rest.create("/payload-specs", {"name": schema, "schema": {"required": ["a"]}})
    endpoint = await system.endpoint(payload_spec=schema)
    waiting = await system.job(endpoint, trigger="DELAYED", run_at=in_seconds(0.5), input={"a": 1})
    await rest.put(f"/payload-specs/{schema}", {"schema": {"required": ["b"]}})
    body = {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": "k", "input": {"a": 1}}
    assert (await rest.call("POST", "/jobs", body)).code == "INPUT_VALIDATION_FAILED"
    await rest.create("/jobs", {**body, "input": {"b": 1}})
    assert (await system.ended(waiting["execution"]["execution_id"]))["status"] == "SUCCESS"


async def test_a_repeated_creation_gets_its_job_though_the_schema_would_refuse_it_now(
    system: System, rest: Rest
) -> None:
    schema, key = fresh("schema"), fresh("key")
    await rest.create("/payload-specs", {"name": schema, "schema": {"required": ["a"]}})
    endpoint = await system.endpoint(payload_spec=schema)
    job = await system.job(endpoint, idempotency_key=key, input={"a": 1})
    await rest.put(f"/payload-specs/{schema}", {"schema": {"required": ["b"]}})
    call = {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": key, "input": {"a": 1}}
    refused = await rest.call("POST", "/jobs", {**call, "idempotency_key": fresh("key")})
    assert refused.code == "INPUT_VALIDATION_FAILED"
    repeated = await rest.post("/jobs", call)
    assert (repeated["job_id"], repeated["deduplicated"]) == (job["job_id"], True)
    batch = [call, {**call, "idempotency_key": fresh("key")}]
    in_batch, new = (await rest.post("/jobs/batch", {"jobs": batch}))["items"]
    assert in_batch["job"]["job_id"] == job["job_id"]
    assert new["error"]["code"] == "INPUT_VALIDATION_FAILED"


# --- endpoints ---


def spec(system: System, path: str, text: str) -> Json:
    return {"url": system.receiver.url(path), "method": "POST", "body_template": [text]}


async def test_a_job_keeps_the_endpoint_that_it_was_created_with(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint(body_template=["old"])
    waiting = await system.job(endpoint, trigger="DELAYED", run_at=in_seconds(0.5))
    updated = await rest.put(f"/endpoints/{endpoint}", {"spec": spec(system, f"/{endpoint}", "new")})
    assert updated["revision"] == 2
    new = await system.job(endpoint)
    assert (waiting["endpoint_revision"], new["endpoint_revision"]) == (1, 2)
    await system.ended(new["execution"]["execution_id"])
    await system.ended(waiting["execution"]["execution_id"])
    assert at(system, endpoint) == [["new"], ["old"]]


async def test_a_cron_job_keeps_its_endpoint_until_it_is_updated_itself(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint(body_template=["old"])
    job = await system.cron(endpoint)
    await rest.put(f"/endpoints/{endpoint}", {"spec": spec(system, f"/{endpoint}", "new")})
    await tick(system, job)
    await wait_until(lambda: at(system, endpoint) == [["old"]], what="a firing of the old revision")
    updated = await rest.put(f"/jobs/{job['job_id']}", {"cron": job["cron"]})
    assert updated["endpoint_revision"] == 2
    await tick(system, updated)
    await wait_until(lambda: at(system, endpoint) == [["old"], ["new"]], what="a firing of the new revision")


async def tick(system: System, job: Json) -> None:
    """Makes a cron job due: its next tick is moved to now."""
    async with await psycopg.AsyncConnection.connect(system.stack.database_url, autocommit=True) as database:
        job_id = UUID(hex=job["job_id"].removeprefix("job_"))
        now = datetime.now(UTC)
        await database.execute("UPDATE cron_jobs SET next_run_at = %s WHERE job_id = %s", (now, job_id))


async def test_the_revisions_of_an_endpoint_stay_readable(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint(body_template=["1"], retry_policy={"max_attempts": 2})
    await rest.put(f"/endpoints/{endpoint}", {"spec": spec(system, "/", "2")})
    new, old = await rest.items(f"/endpoints/{endpoint}/revisions")
    assert [(r["revision"], r["spec"]["body_template"], r["retry_policy"]["max_attempts"]) for r in (new, old)] == [
        (2, ["2"], 1),
        (1, ["1"], 2),
    ]


async def test_an_endpoint_with_a_live_job_can_not_be_deleted(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint()
    for job in (await system.job(endpoint, trigger="DELAYED", run_at=in_seconds(3600)), await system.cron(endpoint)):
        answered = await rest.call("DELETE", f"/endpoints/{endpoint}")
        assert (answered.status, answered.code) == (409, "CONFLICT")
        assert job["job_id"] in answered.message
        await rest.post(f"/jobs/{job['job_id']}/cancel")
    await rest.delete(f"/endpoints/{endpoint}")


async def test_a_deleted_endpoint_is_gone_and_its_history_stays(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint()
    execution = await system.run(endpoint, idempotency_key="k")
    await rest.delete(f"/endpoints/{endpoint}")
    for method, target, body in (
        ("GET", f"/endpoints/{endpoint}", None),
        ("DELETE", f"/endpoints/{endpoint}", None),
        ("POST", "/jobs", {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": "l"}),
    ):
        answered = await rest.call(method, target, body)
        assert (answered.status, answered.code) == (404, "ENDPOINT_NOT_FOUND")
    assert endpoint not in [item["name"] for item in await rest.items("/endpoints?limit=200")]
    assert await rest.get(f"/executions/{execution['execution_id']}") == execution
    assert (await rest.get(f"/jobs/{execution['job_id']}"))["endpoint"] == endpoint


async def test_the_name_of_a_deleted_endpoint_can_be_used_again(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint()
    old = await system.run(endpoint, idempotency_key="k")
    await rest.delete(f"/endpoints/{endpoint}")
    again = await rest.create("/endpoints", {"name": endpoint, "type": "HTTP", "spec": spec(system, "/", "x")})
    assert again["revision"] == 1
    assert (await system.run(endpoint, idempotency_key="k"))["execution_id"] != old["execution_id"]


async def test_what_an_endpoint_refers_to_can_not_be_deleted_before_it(system: System, rest: Rest) -> None:
    schema, secret, values = fresh("schema"), fresh("secret"), await config(rest, a=1)
    await rest.create("/payload-specs", {"name": schema, "schema": {}})
    await rest.create("/secrets", {"name": secret, "value": "x"})
    endpoint = await system.endpoint(payload_spec=schema, config=values, headers={"X-A": f"{{{{secret.{secret}}}}}"})
    referred = (f"/payload-specs/{schema}", f"/configs/{values}", f"/secrets/{secret}")
    for target in referred:
        answered = await rest.call("DELETE", target)
        assert (answered.status, answered.code) == (409, "CONFLICT")
        assert endpoint in answered.message
    await rest.delete(f"/endpoints/{endpoint}")
    for target in referred:
        await rest.delete(target)
        assert (await rest.call("GET", target)).status == 404


async def test_an_update_releases_what_it_refers_to_no_more(system: System, rest: Rest) -> None:
    secret = fresh("secret")
    await rest.create("/secrets", {"name": secret, "value": "x"})
    endpoint = await system.endpoint(headers={"X-A": f"{{{{secret.{secret}}}}}"})
    await rest.put(f"/endpoints/{endpoint}", {"spec": spec(system, "/", "no secret")})
    await rest.delete(f"/secrets/{secret}")
