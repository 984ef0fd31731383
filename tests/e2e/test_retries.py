"""What happens when a receiver does not take a delivery, and how the execution explains it afterwards."""

from __future__ import annotations

import itertools
import socket
from datetime import timedelta
from email.utils import format_datetime
from typing import Any

import pytest

from tests.e2e.rest import Json
from tests.e2e.system import System, instant, now, retries
from tests.support.receiver import Answer, Received

pytestmark = pytest.mark.e2e

UNAVAILABLE = Answer(503, b"not now")
BUSY_SEC = 2.0  # what a busy machine may add to a pause


def pauses(requests: list[Received]) -> list[float]:
    """Seconds between one request and the next."""
    return [(later.at - earlier.at).total_seconds() for earlier, later in itertools.pairwise(requests)]


async def delivered(system: System, *answers: Answer, **settings: Any) -> tuple[Json, list[Received]]:
    """Runs one job against a receiver that answers so; the execution's end and the requests."""
    endpoint = await system.endpoint(**settings)
    system.receiver.script(f"/{endpoint}", *answers)
    execution = await system.run(endpoint)
    return execution, system.receiver.requests(f"/{endpoint}")


@pytest.fixture(scope="module")
async def course(system: System) -> tuple[Json, list[Received]]:
    """503, 503, 200 under an exponential policy that begins with 200 ms: the execution and the requests."""
    policy = {"max_attempts": 5, "backoff": "exponential", "initial_delay_ms": 200}
    return await delivered(system, UNAVAILABLE, UNAVAILABLE, Answer(200), retry_policy=policy)


async def test_three_requests_carry_the_same_key(course: tuple[Json, list[Received]]) -> None:
    execution, requests = course
    assert (execution["status"], execution["attempt_count"]) == ("SUCCESS", 3)
    assert [request.key for request in requests] == [execution["execution_id"]] * 3
    assert [request.headers["Task-Executor-Attempt"] for request in requests] == ["1", "2", "3"]


async def test_the_requests_are_spaced_by_the_policy(course: tuple[Json, list[Received]]) -> None:
    first, second = pauses(course[1])
    assert 0.150 <= first < 0.250 + BUSY_SEC
    assert 0.300 <= second < 0.500 + BUSY_SEC


async def test_the_attempts_say_what_was_answered(system: System, course: tuple[Json, list[Received]]) -> None:
    attempts = await system.attempts(course[0]["execution_id"])
    assert [(a["attempt_number"], a["status"], a["output"]["status_code"]) for a in attempts] == [
        (1, "FAILED", 503),
        (2, "FAILED", 503),
        (3, "SUCCESS", 200),
    ]
    error = {"type": "HTTP_ERROR", "status_code": 503, "message": "The receiver answered 503 Service Unavailable."}
    assert [a.get("error") for a in attempts] == [error, error, None]
    assert attempts[0]["output"]["body"] == "not now"
    assert all(instant(a["started_at"]) <= instant(a["completed_at"]) for a in attempts)


async def test_the_logs_say_it_in_words(system: System, course: tuple[Json, list[Received]]) -> None:
    warnings = [row for row in await system.logs(course[0]["execution_id"]) if row["level"] == "WARN"]
    assert [row["attempt_number"] for row in warnings] == [1, 2]
    assert all("HTTP_ERROR 503" in row["message"] and "next attempt" in row["message"] for row in warnings)


async def test_a_success_leaves_no_error_behind(course: tuple[Json, list[Received]]) -> None:
    assert "error" not in course[0]


async def test_an_execution_between_attempts_is_retrying_and_names_the_next_time(system: System) -> None:
    endpoint = await system.endpoint(retry_policy=retries(2, 60_000))
    system.receiver.script(f"/{endpoint}", UNAVAILABLE)
    job = await system.job(endpoint)
    execution = await system.in_status(job["execution"]["execution_id"], "RETRYING")
    assert timedelta(seconds=40) < instant(execution["run_at"]) - now() < timedelta(seconds=76)
    assert (await system.rest.get(f"/jobs/{job['job_id']}"))["status"] == "ACTIVE"


@pytest.mark.parametrize("form", ["seconds", "date"])
async def test_retry_after_is_obeyed(system: System, form: str) -> None:
    date = now().replace(microsecond=0) + timedelta(seconds=3)
    after = "2" if form == "seconds" else format_datetime(date, usegmt=True)
    policy = retries(2, 10, max_delay_ms=60_000)
    answer = Answer(429, headers={"Retry-After": after})
    execution, (first, second) = await delivered(system, answer, Answer(200), retry_policy=policy)
    assert execution["status"] == "SUCCESS"
    wanted = first.at + timedelta(seconds=2) if form == "seconds" else date
    assert 0 <= (second.at - wanted).total_seconds() < BUSY_SEC


async def test_retry_after_is_bounded_by_the_longest_delay(system: System) -> None:
    policy = retries(2, 10, max_delay_ms=300)
    answer = Answer(503, headers={"Retry-After": "3600"})
    _, requests = await delivered(system, answer, Answer(200), retry_policy=policy)
    assert 0.3 <= pauses(requests)[0] < 0.5 + BUSY_SEC


async def test_a_status_that_the_policy_excludes_is_not_retried(system: System) -> None:
    policy = retries(5, non_retryable_status_codes=[422])
    execution, requests = await delivered(system, Answer(422), retry_policy=policy)
    assert (execution["status"], len(requests)) == ("FAILED", 1)
    (row,) = [row for row in await system.logs(execution["execution_id"]) if row["level"] == "ERROR"]
    assert "the retry policy does not retry this status" in row["message"]


@pytest.mark.parametrize("status", [301, 400, 404, 408, 425, 429, 500, 599])
async def test_every_other_unexpected_status_is_retried(system: System, status: int) -> None:
    execution, requests = await delivered(system, Answer(status), Answer(200), retry_policy=retries(2, 10))
    assert (execution["status"], len(requests)) == ("SUCCESS", 2)


async def test_a_redirect_is_an_answer_and_not_followed(system: System) -> None:
    endpoint = await system.endpoint()
    aside = system.receiver.url(f"/{endpoint}/elsewhere")
    system.receiver.script(f"/{endpoint}", Answer(302, headers={"Location": aside}))
    execution = await system.run(endpoint)
    assert (execution["status"], execution["error"]["status_code"]) == ("FAILED", 302)
    assert system.receiver.requests(f"/{endpoint}/elsewhere") == []


async def test_only_the_expected_statuses_count_as_success(system: System) -> None:
    execution, _ = await delivered(system, Answer(200), expected_status_codes=[202])
    assert (execution["status"], execution["error"]["status_code"]) == ("FAILED", 200)


async def test_spent_attempts_end_in_failure_with_the_last_error(system: System) -> None:
    execution, requests = await delivered(system, UNAVAILABLE, retry_policy=retries(3, 20))
    assert len(requests) == 3
    assert (execution["status"], execution["attempt_count"], execution["max_attempts"]) == ("FAILED", 3, 3)
    assert (execution["error"]["type"], execution["error"]["status_code"]) == ("HTTP_ERROR", 503)
    assert "completed_at" in execution
    last = (await system.logs(execution["execution_id"]))[-1]
    assert (last["level"], last["attempt_number"]) == ("ERROR", 3)
    assert "no attempts are left" in last["message"]


async def test_without_a_policy_there_is_one_attempt(system: System) -> None:
    execution, requests = await delivered(system, UNAVAILABLE)
    assert (execution["status"], execution["max_attempts"], len(requests)) == ("FAILED", 1, 1)


async def test_a_receiver_that_does_not_answer_is_a_timeout(system: System) -> None:
    execution, requests = await delivered(
        system, Answer(hangs=True), Answer(200), timeout_ms=150, retry_policy=retries(2, 10)
    )
    assert (execution["status"], len(requests)) == ("SUCCESS", 2)
    failed = (await system.attempts(execution["execution_id"]))[0]
    assert failed["error"]["type"] == "TIMEOUT"
    assert "150 ms" in failed["error"]["message"]
    assert failed["duration_ms"] >= 150


async def test_a_port_where_nobody_listens_is_a_connection_error(system: System) -> None:
    with socket.socket() as silent:  # bound, but not listening: connections are refused and the port stays ours
        silent.bind(("127.0.0.1", 0))
        endpoint = await system.endpoint(
            url=f"http://127.0.0.1:{silent.getsockname()[1]}/", retry_policy=retries(2, 10)
        )
        execution = await system.run(endpoint)
    assert (execution["status"], execution["attempt_count"]) == ("FAILED", 2)
    assert execution["error"]["type"] == "CONNECTION_ERROR"
    assert "refused" in execution["error"]["message"]


async def test_an_address_that_is_not_allowed_is_refused_without_a_retry(system: System) -> None:
    endpoint = await system.endpoint(url="http://169.254.169.254/latest/meta-data/", retry_policy=retries(3, 10))
    execution = await system.run(endpoint)
    assert (execution["status"], execution["attempt_count"]) == ("FAILED", 1)
    assert execution["error"]["type"] == "ADDRESS_REFUSED"


async def test_a_path_that_the_input_lacks_fails_with_its_name_and_sends_nothing(system: System) -> None:
    endpoint = await system.endpoint(body_template={"who": "{{input.user.name}}"}, retry_policy=retries(3, 10))
    execution = await system.run(endpoint, input={"user": {"id": 7}})
    assert (execution["status"], execution["attempt_count"]) == ("FAILED", 1)
    assert execution["error"]["type"] == "TEMPLATE_RESOLUTION_FAILED"
    assert "input.user.name" in execution["error"]["message"]
    assert system.receiver.requests(f"/{endpoint}") == []
    (row,) = [row for row in await system.logs(execution["execution_id"]) if row["level"] == "ERROR"]
    assert "input.user.name" in row["message"]


async def test_placeholders_keep_the_type_of_what_they_name(system: System) -> None:
    body = {
        "amount": "{{input.amount}}",
        "text": "{{input.amount}} euros",
        "sku": "{{input.items.0.sku}}",
        "flags": "{{input.flags}}",
        "none": "{{input.none}}",
        "execution": "{{execution.id}}",
        "attempt": "{{execution.attempt}}",
        "job": "{{job.id}}",
        "version": "{{job.version}}",
    }
    endpoint = await system.endpoint(body_template=body)
    value = {"amount": 12.5, "items": [{"sku": "a-1"}], "flags": {"new": True}, "none": None}
    execution = await system.run(endpoint, input=value)
    assert execution["status"] == "SUCCESS", execution
    assert system.receiver.requests(f"/{endpoint}")[0].json == {
        "amount": 12.5,
        "text": "12.5 euros",
        "sku": "a-1",
        "flags": {"new": True},
        "none": None,
        "execution": execution["execution_id"],
        "attempt": 1,
        "job": execution["job_id"],
        "version": 1,
    }


async def test_input_in_a_url_can_not_leave_its_place(system: System) -> None:
    endpoint = await system.endpoint()
    await system.rest.put(
        f"/endpoints/{endpoint}",
        {"spec": {"url": system.receiver.url(f"/{endpoint}") + "?q={{input.q}}", "method": "GET"}},
    )
    await system.run(endpoint, input={"q": "a/b?c=d&e#f é"})
    (request,) = system.receiver.requests(f"/{endpoint}")
    assert request.target == f"/{endpoint}?q=a%2Fb%3Fc%3Dd%26e%23f%20%C3%A9"


async def test_a_long_answer_is_kept_in_part_and_says_so(system: System) -> None:
    execution, _ = await delivered(system, Answer(200, b"x" * 100_000))
    assert execution["output"] == {"status_code": 200, "body": "x" * 65_536, "truncated": True}


async def test_an_answer_that_is_no_text_is_kept_as_base64(system: System) -> None:
    execution, _ = await delivered(system, Answer(200, b"\xff\x00\xfe"))
    assert execution["output"] == {"status_code": 200, "body": "/wD+", "body_encoding": "base64"}
