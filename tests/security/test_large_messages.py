"""What a message may hold, as callers and receivers see it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from tests.e2e.conftest import system_in
from tests.e2e.system import System, retries
from tests.support.receiver import running_receiver

pytestmark = pytest.mark.e2e

LARGE = "x" * 100_000


@pytest.fixture(scope="module")
async def system(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[System]:
    """A system of these tests' own."""
    with running_receiver() as receiver:
        async with system_in(tmp_path_factory.mktemp("large") / "data", receiver) as system:
            yield system


async def test_a_message_that_would_be_too_large_fails_at_once_and_is_not_sent(system: System) -> None:
    endpoint = await system.endpoint(body_template=["{{input.x}}"] * 900, retry_policy=retries(5))
    execution = await system.run(endpoint, input={"x": LARGE})
    assert (execution["status"], execution["attempt_count"]) == ("FAILED", 1)
    assert execution["error"]["type"] == "INVALID_DESTINATION"
    assert execution["error"]["message"].startswith(
        "spec: with {{input.x}}, here 900 times, it makes more than 1024 KiB"
    )
    assert system.receiver.requests(f"/{endpoint}") == []
    ordinary = await system.run(endpoint, input={"x": "small"})
    assert ordinary["status"] == "SUCCESS"


async def test_previews_and_tests_of_a_message_that_is_too_large_are_refused_by_field(system: System) -> None:
    for template in (["{{input.x}}"] * 900, ["{{input.x}}"] * 3):
        endpoint = await system.endpoint(body_template=template)
        for what in ("render", "test"):
            answered = await system.rest.call("POST", f"/endpoints/{endpoint}/{what}", {"input": {"x": LARGE}})
            assert (answered.status, answered.code) == (422, "TEMPLATE_RESOLUTION_FAILED")
            assert " more than " in answered.message
        assert system.receiver.requests(f"/{endpoint}") == []


async def test_a_slow_schema_answers_422_and_the_api_lives_on(system: System) -> None:
    schema = {"properties": {"s": {"pattern": "[ab]*a[ab]{1000}c"}}}
    await system.rest.create("/payload-specs", {"name": "slow", "schema": schema})
    endpoint = await system.endpoint(payload_spec="slow")
    pid = system.stack.pid("api")
    job = {"endpoint": endpoint, "trigger": "IMMEDIATE", "idempotency_key": "k", "input": {"s": "ab" * 100_000}}
    answered = await system.rest.call("POST", "/jobs", job)
    assert (answered.status, answered.code) == (422, "INPUT_VALIDATION_FAILED")
    assert answered.message == "input: takes too long to be held against the schema."
    assert system.stack.pid("api") == pid
