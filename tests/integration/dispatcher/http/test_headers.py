"""What a delivery says about itself."""

from __future__ import annotations

import re
import time

import pytest

from tests.integration.dispatcher.http.conftest import Deliver
from tests.integration.dispatcher.http.deliveries import EXECUTION_ID
from tests.integration.dispatcher.http.receivers import answering, receiving


async def test_every_delivery_carries_its_identity(deliver: Deliver) -> None:
    async with receiving(answering()) as receiver:
        await deliver(receiver.url(), attempt=3)
    (request,) = receiver.requests
    assert request.header("Idempotency-Key") == EXECUTION_ID
    assert request.header("webhook-id") == EXECUTION_ID
    assert abs(int(request.header("webhook-timestamp")) - time.time()) < 60
    assert request.header("Task-Executor-Attempt") == "3"
    assert request.header("Task-Executor-Job-Id") == "job_0190c9e37b7c7d2ea3f4b8c1d2e3f4ff"
    assert request.header("Task-Executor-Scheduled-At") == "2026-03-15T10:00:00Z"
    assert re.fullmatch(r"TaskExecutor/\d+\.\d+\.\d+", request.header("User-Agent"))


async def test_attempts_share_a_trace_and_have_spans_of_their_own(deliver: Deliver) -> None:
    async with receiving(answering()) as receiver:
        await deliver(receiver.url(), attempt=1)
        await deliver(receiver.url(), attempt=2)
    first, second = (request.header("traceparent").split("-") for request in receiver.requests)
    assert first[0] == "00"
    assert first[3] == "01"
    assert first[1] == second[1] == EXECUTION_ID.removeprefix("exec_")
    assert first[2] != second[2]


async def test_the_users_method_headers_and_body_arrive_as_they_are(deliver: Deliver) -> None:
    headers = (("Content-Type", "application/json"), ("X-Tenant", "acme"), ("Authorization", "Bearer t"))
    async with receiving(answering()) as receiver:
        await deliver(receiver.url("/orders?a=b"), method="PUT", headers=headers, body=b'{"a":1}')
    (request,) = receiver.requests
    assert request.line == "PUT /orders?a=b HTTP/1.1"
    assert [request.header(name) for name, _ in headers] == [value for _, value in headers]
    assert request.body == b'{"a":1}'


@pytest.mark.parametrize(
    "name",
    ["idempotency-key", "Webhook-Id", "webhook-signature", "TraceParent", "task-executor-attempt", "USER-AGENT"],
)
async def test_users_cannot_override_the_identity(deliver: Deliver, name: str) -> None:
    async with receiving(answering()) as receiver:
        await deliver(receiver.url(), headers=((name, "forged"),))
    assert "forged" not in receiver.requests[0].all(name)


@pytest.mark.parametrize(
    ("name", "value"),
    [("Content-Length", "1"), ("Transfer-Encoding", "chunked"), ("Connection", "close"), ("Expect", "100-continue")],
)
async def test_users_cannot_touch_the_framing(deliver: Deliver, name: str, value: str) -> None:
    async with receiving(answering()) as receiver:
        outcome = await deliver(receiver.url(), headers=((name, value),), body=b"whole")
    assert outcome.succeeded
    assert receiver.requests[0].body == b"whole"
    assert value not in receiver.requests[0].all(name)


async def test_no_content_type_is_made_up(deliver: Deliver) -> None:
    async with receiving(answering()) as receiver:
        await deliver(receiver.url(), headers=())
    assert receiver.requests[0].all("Content-Type") == []


async def test_a_request_without_a_body_has_none(deliver: Deliver) -> None:
    async with receiving(answering()) as receiver:
        await deliver(receiver.url(), method="GET", body=None)
    (request,) = receiver.requests
    assert request.all("Content-Length") == []
    assert request.body == b""
