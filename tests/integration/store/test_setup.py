"""Endpoints and what they refer to: what somebody still needs stays, and a change beside another breaks neither."""

from __future__ import annotations

import uuid
from collections.abc import Awaitable, Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from taskexecutor_common.model.endpoint import EndpointType
from taskexecutor_common.model.setup import Reference, ReferenceKind, Referrer
from taskexecutor_common.store.endpoints import EndpointSettings
from tests.support.engine import NAMESPACE, Engine, MadeEndpoint, retrying, succeeded

NAMES_IT = Reference(ReferenceKind.CONFIG, "shop", "base")


def settings(engine: Engine, *references: Reference) -> EndpointSettings:
    return replace(engine.settings(), references=list(references))


async def update(engine: Engine, endpoint: MadeEndpoint, *references: Reference) -> bool:
    return await engine.endpoints.update(NAMESPACE, endpoint.name, EndpointType.HTTP, settings(engine, *references))


async def endpoint_that_names_it(engine: Engine, name: str = "shop-door") -> MadeEndpoint:
    """An endpoint whose first revision refers to the config `shop`."""
    await engine.setup.create_config(NAMESPACE, "shop", {"base": 1})
    endpoint = MadeEndpoint(uuid.uuid4(), name)
    created = settings(engine, NAMES_IT)
    assert await engine.endpoints.create(NAMESPACE, name, endpoint.endpoint_id, EndpointType.HTTP, created)
    return endpoint


async def referrers(engine: Engine) -> list[Referrer]:
    """Who stands in the way of values that lack everything."""
    return (await engine.setup.update_config(NAMESPACE, "shop", {}, lambda path: True))[1]


async def delete_config(engine: Engine) -> tuple[bool, list[str]]:
    return await engine.setup.delete(ReferenceKind.CONFIG, NAMESPACE, "shop")


async def in_its_queue(engine: Engine, endpoint: MadeEndpoint) -> None:
    await engine.create(endpoint)


async def among_the_timers(engine: Engine, endpoint: MadeEndpoint) -> None:
    await engine.create(endpoint, run_at=await engine.now() + timedelta(hours=1))


async def under_way(engine: Engine, endpoint: MadeEndpoint) -> None:
    await engine.create(endpoint)
    await engine.claim_one(endpoint, await engine.worker())


async def waiting_for_its_retry(engine: Engine, endpoint: MadeEndpoint) -> None:
    await engine.create(endpoint)
    worker = await engine.worker()
    await worker.queue.finalise([retrying(await engine.claim_one(endpoint, worker), delay_ms=60_000)])


async def on_a_schedule(engine: Engine, endpoint: MadeEndpoint) -> None:
    await engine.create_cron(endpoint, await engine.now() + timedelta(hours=1))


PLACES = [in_its_queue, among_the_timers, under_way, waiting_for_its_retry, on_a_schedule]


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.__name__)
async def test_what_a_live_job_of_an_old_revision_needs_can_not_be_taken_away(
    engine: Engine, place: Callable[[Engine, MadeEndpoint], Awaitable[None]]
) -> None:
    endpoint = await endpoint_that_names_it(engine)
    await place(engine, endpoint)
    for _ in range(3):
        assert await update(engine, endpoint)
    assert await referrers(engine) == [Referrer(endpoint.name, "base")]
    assert await delete_config(engine) == (True, [endpoint.name])
    assert await engine.setup.get_config(NAMESPACE, "shop") is not None


async def test_what_only_old_revisions_without_live_jobs_named_can_be_deleted(engine: Engine) -> None:
    endpoint = await endpoint_that_names_it(engine)
    await engine.create(endpoint)
    worker = await engine.worker()
    await worker.queue.finalise([succeeded(await engine.claim_one(endpoint, worker))])
    assert await update(engine, endpoint)
    # Live, but of a revision that does not name it.
    await engine.create(replace(endpoint, revision=2))
    # Live and of the same number, but another endpoint's.
    await engine.create(await engine.endpoint())
    assert await referrers(engine) == []
    assert await delete_config(engine) == (True, [])
    assert await engine.setup.get_config(NAMESPACE, "shop") is None


async def test_what_the_current_revision_names_is_needed_without_any_job(engine: Engine) -> None:
    endpoint = await endpoint_that_names_it(engine)
    assert await referrers(engine) == [Referrer(endpoint.name, "base")]
    assert await delete_config(engine) == (True, [endpoint.name])


async def test_an_update_for_one_type_is_not_written_to_an_endpoint_of_another(engine: Engine) -> None:
    # As when the endpoint is deleted and its name taken again, after the caller's look at its type.
    endpoint = await engine.endpoint()
    assert await engine.endpoints.delete(NAMESPACE, endpoint.name) == (True, [])
    spec = {"bootstrap_servers": "k:9092", "topic": "t", "value_template": {"a": 1}}
    kafka = replace(engine.settings(), spec=spec)
    assert await engine.endpoints.create(NAMESPACE, endpoint.name, uuid.uuid4(), EndpointType.KAFKA, kafka)
    assert not await update(engine, endpoint)
    now_there = await engine.endpoints.get(NAMESPACE, endpoint.name)
    assert now_there is not None
    assert (now_there.endpoint_type, now_there.revision, now_there.spec) == (EndpointType.KAFKA, 1, spec)
