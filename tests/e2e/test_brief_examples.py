"""The brief's HTTP example, word for word but for addresses."""

from __future__ import annotations

import asyncio
import pathlib
import sys
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from tests.e2e.rest import Json, Rest
from tests.e2e.system import System, fresh, in_seconds, instant
from tests.support.waiting import wait_until

pytestmark = pytest.mark.e2e

SCHEMA: Json = {
    "type": "object",
    "properties": {
        "user_id": {"type": "string", "description": "Target user ID"},
        "order_id": {"type": "string", "description": "Associated order ID"},
    },
    "required": ["user_id"],
}
SPEC: Json = {
    "url": "{{config.api_base_url}}/emails/welcome",
    "method": "POST",
    "headers": {"Authorization": "Bearer {{secret.email_api_key}}", "Content-Type": "application/json"},
    "body_template": {"user_id": "{{input.user_id}}", "sender": "{{config.sender}}"},
    "timeout_ms": 5000,
    "expected_status_codes": [200, 201, 202, 204],
}
RETRY_POLICY: Json = {"max_attempts": 3, "backoff": "exponential", "initial_delay_ms": 1000, "max_delay_ms": 30000}
ENDPOINT: Json = {
    "name": "send-welcome-email",
    "type": "HTTP",
    "payload_spec": "send-welcome-email-input",
    "config": "email-service",
    "spec": SPEC,
    "retry_policy": RETRY_POLICY,
}
INPUT: Json = {"user_id": "u_abc", "order_id": "order-1234"}
CRON: Json = {
    "trigger": "CRON",
    "cron": "0 9 * * MON",
    "timezone": "Asia/Kolkata",
    "starts_at": "2026-03-16T00:00:00Z",
    "ends_at": None,
    "input": {"user_id": "u_abc", "title": "Weekly Summary", "body": "Here's your weekly report"},
}


@pytest.fixture(scope="module")
async def example(system: System) -> Json:
    """The answers of the three setup calls and of the registration, by path."""
    values = {"api_base_url": system.receiver.url(""), "sender": "noreply@myapp.com"}
    made: Json = {}
    for path, body in {
        "/payload-specs": {"name": "send-welcome-email-input", "schema": SCHEMA},
        "/configs": {"name": "email-service", "values": values},
        "/secrets": {"name": "email_api_key", "value": "sk-live-abc123..."},
        "/endpoints": ENDPOINT,
    }.items():
        made[path] = await system.rest.create(path, body)
    return made


@pytest.fixture(scope="module")
async def immediate(system: System, example: Json) -> Json:
    """The answer to the brief's IMMEDIATE job."""
    return await system.rest.create("/jobs", immediate_job())


def immediate_job(**changes: object) -> Json:
    return {
        "endpoint": "send-welcome-email",
        "trigger": "IMMEDIATE",
        "idempotency_key": "order-1234-welcome-email",
        "input": INPUT,
        **changes,
    }


def without_times(answer: Json) -> Json:
    """The answer less its times, which are checked to be of now."""
    for name in ("created_at", "updated_at"):
        assert abs((instant(answer[name]) - datetime.now(UTC)).total_seconds()) < 120
        assert answer[name].endswith("Z")
    return {name: value for name, value in answer.items() if name not in ("created_at", "updated_at")}


def test_a_payload_spec_is_answered_as_the_brief_shows(example: Json) -> None:
    assert without_times(example["/payload-specs"]) == {"name": "send-welcome-email-input", "schema": SCHEMA}


def test_a_config_is_answered_with_its_values(system: System, example: Json) -> None:
    values = {"api_base_url": system.receiver.url(""), "sender": "noreply@myapp.com"}
    assert without_times(example["/configs"]) == {"name": "email-service", "values": values, "revision": 1}


def test_a_secret_is_answered_without_its_value(example: Json) -> None:
    assert without_times(example["/secrets"]) == {"name": "email_api_key"}


def test_an_endpoint_is_answered_as_it_was_registered(example: Json) -> None:
    policy = {**RETRY_POLICY, "non_retryable_status_codes": []}
    added = {"retry_policy": policy, "revision": 1, "flow_state": {}}
    assert without_times(example["/endpoints"]) == {**ENDPOINT, **added}


def test_an_immediate_job_is_answered_as_the_brief_shows(immediate: Json) -> None:
    job = dict(immediate)
    execution = job.pop("execution")
    assert job.pop("job_id").startswith("job_")
    assert abs((instant(job.pop("created_at")) - datetime.now(UTC)).total_seconds()) < 120
    assert job.pop("request_id").startswith("req_")
    assert job == {
        "endpoint": "send-welcome-email",
        "endpoint_type": "HTTP",
        "trigger": "IMMEDIATE",
        "status": "ACTIVE",
        "version": 1,
        "idempotency_key": "order-1234-welcome-email",
        "input": INPUT,
        "endpoint_revision": 1,
    }
    assert execution["execution_id"].startswith("exec_")
    assert execution["status"] == "QUEUED"
    assert "created_at" in execution


async def test_the_receiver_gets_the_rendered_request(system: System, immediate: Json) -> None:
    execution = await system.ended(immediate["execution"]["execution_id"])
    (request,) = [r for r in system.receiver.requests("/emails/welcome") if r.key == execution["execution_id"]]
    assert (request.method, request.target) == ("POST", "/emails/welcome")
    assert request.headers["Authorization"] == "Bearer sk-live-abc123..."
    assert request.headers["Content-Type"] == "application/json"
    assert request.json == {"user_id": "u_abc", "sender": "noreply@myapp.com"}


async def test_the_delivery_carries_its_identity(system: System, immediate: Json) -> None:
    execution = await system.ended(immediate["execution"]["execution_id"])
    (request,) = [r for r in system.receiver.requests("/emails/welcome") if r.key == execution["execution_id"]]
    assert request.headers["webhook-id"] == execution["execution_id"]
    assert abs(int(request.headers["webhook-timestamp"]) - request.at.timestamp()) < 2
    assert request.headers["Task-Executor-Attempt"] == "1"
    assert request.headers["Task-Executor-Job-Id"] == immediate["job_id"]
    assert instant(request.headers["Task-Executor-Scheduled-At"]) == instant(execution["run_at"])
    assert execution["execution_id"].removeprefix("exec_") in request.headers["traceparent"]


async def test_the_execution_tells_what_became_of_it(system: System, immediate: Json) -> None:
    execution = await system.ended(immediate["execution"]["execution_id"])
    times = {name: instant(execution.pop(name)) for name in ("created_at", "run_at", "started_at", "completed_at")}
    assert list(times.values()) == sorted(times.values())
    assert execution.pop("duration_ms") < 5000
    assert execution == {
        "execution_id": immediate["execution"]["execution_id"],
        "job_id": immediate["job_id"],
        "endpoint": "send-welcome-email",
        "endpoint_type": "HTTP",
        "idempotency_key": "order-1234-welcome-email",
        "status": "SUCCESS",
        "input": INPUT,
        "output": {"status_code": 200, "body": "ok"},
        "attempt_count": 1,
        "max_attempts": 3,
    }


async def test_a_finished_one_shot_job_is_retired(system: System, rest: Rest, immediate: Json) -> None:
    await system.ended(immediate["execution"]["execution_id"])
    job = await rest.get(f"/jobs/{immediate['job_id']}")
    assert (job["status"], job["execution"]["status"]) == ("RETIRED", "SUCCESS")


@pytest.mark.parametrize("changes", [{}, {"input": {"user_id": "somebody else"}}], ids=["same", "another input"])
async def test_the_same_key_answers_the_existing_job(rest: Rest, immediate: Json, changes: Json) -> None:
    again = await rest.post("/jobs", immediate_job(**changes))
    assert again["deduplicated"] is True
    assert again["job_id"] == immediate["job_id"]
    assert again["execution"]["execution_id"] == immediate["execution"]["execution_id"]
    assert again["input"] == INPUT


async def test_of_many_creations_at_once_with_one_key_one_creates(system: System, rest: Rest) -> None:
    body = {"endpoint": await system.endpoint(), "trigger": "IMMEDIATE", "idempotency_key": "once"}
    answers = await asyncio.gather(*(rest.call("POST", "/jobs", {**body, "input": {"n": n}}) for n in range(50)))
    assert sorted(answer.status for answer in answers) == [200] * 49 + [201]
    assert len({answer.json["job_id"] for answer in answers}) == 1
    await system.ended(answers[0].json["execution"]["execution_id"])
    assert len(system.receiver.requests(f"/{body['endpoint']}")) == 1


async def test_the_same_key_at_another_endpoint_is_another_job(system: System, immediate: Json) -> None:
    other = await system.endpoint()
    job = await system.job(other, idempotency_key=immediate["idempotency_key"])
    assert job["job_id"] != immediate["job_id"]


async def test_a_delayed_job_waits_for_its_time(system: System, rest: Rest, example: Json) -> None:
    run_at = in_seconds(0.7)
    job = await rest.create("/jobs", immediate_job(trigger="DELAYED", idempotency_key=fresh("key"), run_at=run_at))
    assert (job["trigger"], job["execution"]["status"], instant(job["run_at"])) == (
        "DELAYED",
        "PENDING",
        instant(run_at),
    )
    execution = await system.ended(job["execution"]["execution_id"])
    assert execution["status"] == "SUCCESS"
    assert instant(execution["started_at"]) >= instant(run_at)


async def test_the_cron_example_names_its_next_monday_morning(system: System, rest: Rest) -> None:
    endpoint = await system.endpoint(body_template={"title": "{{input.title}}"})
    job = await rest.create("/jobs", {**CRON, "endpoint": endpoint})
    next_run = instant(job["next_run_at"]).astimezone(ZoneInfo("Asia/Kolkata"))
    assert (next_run.strftime("%a %H:%M:%S"), next_run > datetime.now(UTC)) == ("Mon 09:00:00", True)
    assert (next_run - datetime.now(UTC)).days < 7 or next_run < instant("2026-03-24T00:00:00Z")
    shown = {name: job[name] for name in ("trigger", "status", "version", "cron", "timezone", "input")}
    assert shown == {
        "trigger": "CRON",
        "status": "ACTIVE",
        "version": 1,
        "cron": "0 9 * * MON",
        "timezone": "Asia/Kolkata",
        "input": CRON["input"],
    }
    assert instant(job["starts_at"]) == instant(CRON["starts_at"])
    assert "ends_at" not in job  # absent instead of null
    assert "execution" not in job


@pytest.fixture
async def pythons_own_server(tmp_path: pathlib.Path) -> AsyncIterator[tuple[str, pathlib.Path]]:
    """`python -m http.server`, a receiver that is no part of the project: its URL and its log."""
    (tmp_path / "hello.txt").write_text("hello from a file")
    log = tmp_path / "log.txt"
    with log.open("wb") as output:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory", str(tmp_path)),
            stdout=output,
            stderr=output,
        )
    try:
        await wait_until(lambda: "http://" in log.read_text(), what="http.server")
        yield log.read_text().partition("(")[2].partition("/)")[0], log
    finally:
        process.terminate()
        await process.wait()


async def test_pythons_own_http_server_gets_a_delivery(
    system: System, pythons_own_server: tuple[str, pathlib.Path]
) -> None:
    url, log = pythons_own_server
    endpoint = await system.endpoint(url=f"{url}/{{{{input.file}}}}", method="GET")
    execution = await system.run(endpoint, input={"file": "hello.txt"})
    assert (execution["status"], execution["output"]["body"]) == ("SUCCESS", "hello from a file")
    assert '"GET /hello.txt HTTP/1.1" 200' in log.read_text()
