"""The receiver in docs/delivery-http.md does what the page says, with real deliveries."""

from __future__ import annotations

import re
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from tests.integration.dispatcher.http.conftest import Deliver
from tests.integration.dispatcher.http.receivers import Received, answering, receiving

PAGE = Path(__file__).parents[4] / "docs" / "delivery-http.md"
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
OTHER_SECRET = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD"


@pytest.fixture
def page() -> dict[str, Any]:
    """What the Python blocks of the page define."""
    defined: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL):
        exec(compile(block, str(PAGE), "exec"), defined)
    return defined


async def signed_delivery(deliver: Deliver, **changes: Any) -> tuple[dict[str, str], Received]:
    async with receiving(answering()) as receiver:
        outcome = await deliver(receiver.url(), signing_secret=SECRET, **changes)
    assert outcome.succeeded
    (request,) = receiver.requests
    return {name.lower(): value for name, value in request.headers}, request


@pytest.mark.parametrize("body", [b'{"sku":"a-1"}', '{"ort":"Köln"}'.encode(), b"", None])
async def test_the_documented_verification_accepts_deliveries(
    deliver: Deliver, page: dict[str, Any], body: bytes | None
) -> None:
    headers, request = await signed_delivery(deliver, body=body)
    assert page["is_genuine"](SECRET, headers, request.body)


async def test_the_documented_verification_refuses_what_was_tampered_with(
    deliver: Deliver, page: dict[str, Any]
) -> None:
    headers, request = await signed_delivery(deliver)
    assert not page["is_genuine"](SECRET, headers, request.body + b" ")
    assert not page["is_genuine"](SECRET, headers | {"webhook-id": "exec_other"}, request.body)
    assert not page["is_genuine"](OTHER_SECRET, headers, request.body)


async def test_the_documented_verification_refuses_what_is_old(deliver: Deliver, page: dict[str, Any]) -> None:
    headers, request = await signed_delivery(deliver)
    hour_ago = str(int(headers["webhook-timestamp"]) - 3600)
    assert not page["is_genuine"](SECRET, headers | {"webhook-timestamp": hour_ago}, request.body)


async def test_signatures_are_those_of_the_standard_webhooks_library(deliver: Deliver) -> None:
    headers, request = await signed_delivery(deliver)
    assert Webhook(SECRET).verify(request.body, headers) == {"sku": "a-1"}
    with pytest.raises(WebhookVerificationError):
        Webhook(OTHER_SECRET).verify(request.body, headers)


async def test_a_secret_may_come_without_its_prefix(deliver: Deliver, page: dict[str, Any]) -> None:
    async with receiving(answering()) as receiver:
        await deliver(receiver.url(), signing_secret=SECRET.removeprefix("whsec_"))
    (request,) = receiver.requests
    assert page["is_genuine"](SECRET, {name.lower(): value for name, value in request.headers}, request.body)


async def test_an_endpoint_without_a_secret_is_not_signed(deliver: Deliver) -> None:
    async with receiving(answering()) as receiver:
        await deliver(receiver.url())
    assert receiver.requests[0].all("webhook-signature") == []


async def test_the_documented_receiver_acts_once_on_repeated_deliveries(deliver: Deliver, page: dict[str, Any]) -> None:
    async with receiving(answering()) as receiver:
        for attempt in (1, 2):
            await deliver(receiver.url(), attempt=attempt)
    database = sqlite3.connect(":memory:")
    database.executescript("CREATE TABLE deliveries (key TEXT PRIMARY KEY); CREATE TABLE account (balance INT);")
    database.execute("INSERT INTO account VALUES (0)")
    for request in receiver.requests:
        assert page["handle"](database, request.header("Idempotency-Key"), 5) == 200
    assert database.execute("SELECT balance FROM account").fetchone() == (5,)
    database.close()


def test_the_documented_headers_are_the_headers(page: dict[str, Any]) -> None:
    rows = re.findall(r"^\| `([\w-]+)` \|", PAGE.read_text(), re.MULTILINE)
    assert {name.lower() for name in rows} == {
        *("idempotency-key", "webhook-id", "webhook-timestamp", "webhook-signature", "traceparent"),
        *("task-executor-attempt", "task-executor-job-id", "task-executor-scheduled-at"),
        *("user-agent", "accept-encoding"),
    }
