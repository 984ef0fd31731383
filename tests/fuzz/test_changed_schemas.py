"""What the state machine found, alone: a changed payload spec is asked from the next job on, whichever way it changed."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.fuzz.conversation import Conversation, Json, expect
from tests.fuzz.world import World

pytestmark = pytest.mark.e2e

WITH_N, WITHOUT_N = {"n": 1}, {"m": 1}
NEEDS_N, NEEDS_NOTHING = {"required": ["n"]}, {}
SHOT: Json = {"endpoint": "it", "trigger": "DELAYED", "idempotency_key": "k", "run_at": "2199-01-01T00:00:00Z"}
CRON: Json = {"endpoint": "it", "trigger": "CRON", "cron": "0 0 1 1 *", "timezone": "UTC"}


@pytest.fixture
def talk(new_world: Callable[[], World]) -> Conversation:
    """An endpoint with a payload spec, in a namespace of its own."""
    world = new_world()
    expect(world.talk.call("POST", "/payload-specs", {"name": "it", "schema": {}}), (201, ""))
    endpoint = {"name": "it", "type": "HTTP", "payload_spec": "it", "spec": {"url": world.url, "method": "POST"}}
    expect(world.talk.call("POST", "/endpoints", endpoint), (201, ""))
    return world.talk


def change(talk: Conversation, before: Json, after: Json) -> str:
    """Replaces the schema, after the api has seen the endpoint with the one before; answers the cron job that made it look."""
    expect(talk.call("PUT", "/payload-specs/it", {"schema": before}), (200, ""))
    job = talk.call("POST", "/jobs", {**CRON, "input": WITH_N})
    expect(job, (201, ""))
    expect(talk.call("PUT", "/payload-specs/it", {"schema": after}), (200, ""))
    return str(job.json["job_id"])


@pytest.mark.parametrize("job", [SHOT, CRON], ids=["one-shot", "cron"])
def test_a_stricter_schema_refuses_the_next_job(talk: Conversation, job: Json) -> None:
    change(talk, NEEDS_NOTHING, NEEDS_N)
    expect(talk.call("POST", "/jobs", {**job, "input": WITHOUT_N}), (422, "INPUT_VALIDATION_FAILED"))


@pytest.mark.parametrize("job", [SHOT, CRON], ids=["one-shot", "cron"])
def test_a_more_lenient_schema_lets_the_next_job_pass(talk: Conversation, job: Json) -> None:
    change(talk, NEEDS_N, NEEDS_NOTHING)
    expect(talk.call("POST", "/jobs", {**job, "input": WITHOUT_N}), (201, ""))


def test_an_update_of_a_cron_job_is_held_against_the_schema_as_it_is(talk: Conversation) -> None:
    job_id = change(talk, NEEDS_NOTHING, NEEDS_N)
    expect(talk.call("PUT", f"/jobs/{job_id}", {"input": WITHOUT_N}), (422, "INPUT_VALIDATION_FAILED"))
    job_id = change(talk, NEEDS_N, NEEDS_NOTHING)
    expect(talk.call("PUT", f"/jobs/{job_id}", {"input": WITHOUT_N}), (200, ""))


def test_a_batch_is_held_against_the_schema_as_it_is(talk: Conversation) -> None:
    change(talk, NEEDS_N, NEEDS_NOTHING)
    items = talk.call("POST", "/jobs/batch", {"jobs": [{**job, "input": WITHOUT_N} for job in (SHOT, CRON)]}).json[
        "items"
    ]
    assert ["job" in item for item in items] == [True, True]
